"""P9: a decision of the engine's policy divided by a deny set of the same conditions, written by hand.

First both are shown to find the same, finding by finding, in the inputs of all cases and in good
inputs with every field spoiled in turn. Then OPA's evaluation time of the whole decision (findings,
their levels, what hides what, outcome, limits) is divided by that of the bare set of findings: for
one request by OPA's own clock, for a batch, which no time slice holds, by its CPU time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.documents import Documents
from benchmarks.measure import Bench, NotMeasuredError, Row, ratios
from benchmarks.served import Question, Served

_GOAL = 1.3
_ITEMS = 100
_SINGLE_TIMES, _BATCH_TIMES = 100, 5
"""Pairs in a round: a single evaluation takes a fraction of a millisecond, a batch tens of them."""
_OURS_ALONE = "limits_missing"
"""The deny set gives no limits, so it cannot miss them."""
_NOT_IN_INPUTS = "budget_unknown"
"""The policy as shipped states every budget, and no input changes that."""


def rows(bench: Bench) -> Iterator[Row]:
    """Two single requests of point `source`, one of `license`, and batches of a hundred.

    The findings alone are what both have to find; the rest of a decision is more than a deny set gives.
    """
    documents = Documents(bench.root / "fixtures" / "cases", bench.folder("p9-cases"))
    with ExitStack() as stack:
        archives = [bench.policy.rules.path, bench.policy.values.path]
        ours = stack.enter_context(Served(bench.binary.path, archives, bench.folder("p9-ours")))
        archives = [_deny_set(bench), bench.policy.values.path]
        by_hand = stack.enter_context(Served(bench.binary.path, archives, bench.folder("p9-by-hand")))
        for point in ("source", "license"):
            prove(point, documents, ours, by_hand, bench)

        for point, name in (("source", "offline_fixture"), ("source", "external_contacts"), ("license", "accepted")):
            document = documents.of(point, name)
            deny = Question.of(by_hand, f"deny_set/{point}/deny", document)
            for part, path, goal in (
                ("decision", "admission/decision", _GOAL),
                ("  its findings alone", f"admission/compiled/{point}/_unproven", None),
            ):
                what = f"{part} ÷ deny set by hand, one {point} ({name})"
                found = ratios(
                    Question.of(ours, path, document).evaluation,
                    deny.evaluation,
                    _SINGLE_TIMES,
                    bench.rounds,
                    partial(bench.report_round, f"P9 {what}"),
                )
                yield Row("P9", what, goal, found)
        for point, kind, chosen in (
            ("source", "all allowed", documents.good("source")),
            ("source", "most refused", documents.every("source")),
            ("license", "all allowed", documents.good("license")),
        ):
            batch = {"items": list(islice(cycle(chosen), _ITEMS))}
            what = f"decisions ÷ deny set by hand, {_ITEMS} {point} ({kind}), CPU"
            found = ratios(
                Question.of(ours, "admission/decisions", batch).processor,
                Question.of(by_hand, f"deny_set/batch/{point}", batch).processor,
                _BATCH_TIMES,
                bench.rounds,
                partial(bench.report_round, f"P9 {what}"),
            )
            yield Row("P9", what, _GOAL, found)


def prove(point: str, documents: Documents, ours: Served, by_hand: Served, bench: Bench) -> None:
    """NotMeasuredError unless both find the same in all inputs, and something in some of them."""
    seen: set[str] = set()
    for number, document in enumerate(chain(documents.every(point), documents.spoiled(point)), start=1):
        if number % 100 == 0:
            bench.report(f"P9: proving that both find the same for point {point}: {number} inputs")
        found = _findings(ours.ask(f"admission/compiled/{point}/findings", document))
        wanted = _findings(by_hand.ask(f"deny_set/{point}/deny", document))
        if {one for one in found if one[0] != _OURS_ALONE} != wanted:
            differences = sorted(map(str, found ^ wanted))
            raise NotMeasuredError(f"P9 compares two policies: {differences} for {json.dumps(document)}")
        seen |= {code for code, _ in wanted}
    declared = set(bench.policy.catalogue.points[point].requirements)
    if not_seen := sorted(declared - seen - {_OURS_ALONE, _NOT_IN_INPUTS}):
        raise NotMeasuredError(f"no input of point `{point}` shows that both find {not_seen}")


def _findings(result: list[dict[str, Any]]) -> set[tuple[str, str | None]]:
    return {(one["code"], one["subject"]) for one in result}


def _deny_set(bench: Bench) -> Path:
    """The deny set as a bundle, read like the engine's own rules."""
    folder = bench.scratch / "deny_set"
    shutil.copytree(bench.root / "benchmarks" / "deny_set", folder)
    manifest = {"roots": ["deny_set"], "rego_version": 2, "revision": "by hand"}
    (folder / ".manifest").write_text(json.dumps(manifest), encoding="utf-8")
    return folder

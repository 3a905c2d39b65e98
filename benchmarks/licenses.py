"""A license table of a thousand rows divided by one of ten, OPA's evaluation time of one input.

A row is looked up and never searched for, so the two should cost the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.documents import Documents
from benchmarks.measure import Bench, Row, ratios
from benchmarks.served import Question, Served
from engine.documents.files import load, read_bytes
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.settings import ReadLimits

_GOAL = 1.5
_MANY, _FEW = 1000, 10
_NEEDED = ("CC-BY-4.0", "CC0-1.0", "MIT", "Apache-2.0")
"""Both tables have the licenses of the inputs below."""
_TIMES = 100


def rows(bench: Bench) -> Iterator[Row]:
    """One input of point `license` and one of `source`."""
    documents = Documents(bench.root / "fixtures" / "cases", bench.folder("licenses-cases"))
    with ExitStack() as stack:
        many, few = (
            stack.enter_context(
                Served(bench.binary.path, [policy.rules.path, policy.values.path], bench.folder(f"licenses-{count}"))
            )
            for count, policy in ((count, policy_of(bench, count)) for count in (_MANY, _FEW))
        )
        for point, name in (("license", "accepted"), ("source", "external_contacts")):
            document = documents.of(point, name)
            for opa in (many, few):
                opa.allow(document)
            first, second = (Question.of(opa, "admission/decision", document) for opa in (many, few))
            on_round = partial(bench.report_round, f"licenses {point}")
            found = ratios(first.evaluation, second.evaluation, _TIMES, bench.rounds, on_round)
            yield Row("licenses", f"{_MANY} license rows ÷ {_FEW}, one {point} request", _GOAL, found)


def license_rows(table: dict[str, Any], count: int) -> dict[str, Any]:
    """That many rows: those the inputs need, then made-up licenses of our own."""
    chosen = {key: table[key] for key in _NEEDED}
    made_up = {f"LicenseRef-bench-{number:04}": table["MIT"] for number in range(count - len(chosen))}
    return chosen | made_up


def read_licenses(path: Path) -> dict[str, Any]:
    """The license values of a policy folder."""
    limits = ReadLimits()
    read: dict[str, Any] = load(read_bytes(path, limits.document_bytes), str(path), limits).value
    return read


def policy_of(bench: Bench, count: int) -> PolicyBundle:
    """The policy as shipped with so many rows in its license table."""
    bench.report(f"building a policy of {count} licenses")
    folder = bench.scratch / f"policy-{count}"
    shutil.copytree(bench.policy.sources.policy, folder, dirs_exist_ok=True)
    path = folder / "licenses.yaml"
    written = read_licenses(path)
    written["licenses"] = license_rows(written["licenses"], count)
    path.write_text(json.dumps(written), encoding="utf-8")
    sources = replace(bench.policy.sources, policy=folder)
    return build(sources, POINTS, bench.binary, bench.cache)

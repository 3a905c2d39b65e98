"""P19: a corpus of licenses with equal cases decided once, against the same with every request asked.

CPU of this process and of OPA for the questions alone: what is gathered, recorded and enforced besides is the same on
both sides. And a request that repeats against one that is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.processes import cpu_seconds
from benchmarks.workload import POINT, as_it_comes, engine
from engine.drive import Ask, Steps, run, run_all
from engine.engine import Engine
from engine.model import Mode
from engine.opa.sharing import WORTH, SharedAnswers
from engine.policy_bundle.serving import Unavailable

_REQUESTS, _BATCH, _SINGLE = 20_000, 100, 2_000
_LEARN_SECONDS = 60.0


def rows(bench: Bench) -> Iterator[Row]:
    """Both ratios, and how many of the requests were asked."""
    folder = bench.folder("p19")
    with ExitStack() as stack:
        asking = stack.enter_context(engine(bench, folder / "asking"))
        sharing = stack.enter_context(engine(bench, folder / "sharing", 8_192))
        answers = asking.decide_many(POINT, [*as_it_comes(_REQUESTS)], mode=Mode.CHECK)
        documents = [answer.document for answer in answers if answer.document is not None]
        learned = await_learned(sharing)
        asked: list[int] = []
        parts = (
            lambda: _decided(sharing, documents, _BATCH, fresh=learned, asked=asked),
            lambda: _decided(asking, documents, _BATCH),
            lambda: _decided(sharing, [documents[0]] * _SINGLE, 1, fresh=learned),
            lambda: _decided(asking, [documents[0]] * _SINGLE, 1),
        )
        found = interleaved(parts, bench.rounds, partial(bench.report_round, "P19"))
    what = f"{_REQUESTS:,} license requests, equal cases once ÷ every one asked, CPU"
    yield Row("P19", what, 0.35, tuple(shared / every for shared, every, _, _ in found))
    share = tuple(100 * one / _REQUESTS for one in asked[1:])
    yield Row("P19", "  of these OPA is asked about", None, share, unit="%")
    yield Row(
        "P19", "a request that repeats ÷ one that is asked, CPU", 0.1, tuple(one / all_ for _, _, one, all_ in found)
    )
    yield Row("P19", "  a request that repeats", None, tuple(one / _SINGLE * 1e6 for _, _, one, _ in found), unit="µs")


def await_learned(running: Engine) -> SharedAnswers:
    """Ask until it is known what the point reads. Raises NotMeasuredError."""
    shared = None if isinstance(running.opa, Unavailable) else running.opa.shared
    if shared is None:
        raise NotMeasuredError("the engine shares no answers")
    running.decide_many(POINT, [*as_it_comes(WORTH)], mode=Mode.CHECK)
    deadline = time.monotonic() + _LEARN_SECONDS
    while not shared.finds(POINT):
        if time.monotonic() > deadline:
            raise NotMeasuredError("what the point reads was not found")
        time.sleep(0.05)
    return shared


def _decided(
    running: Engine,
    documents: Sequence[dict[str, Any]],
    batch: int,
    fresh: SharedAnswers | None = None,
    asked: list[int] | None = None,
) -> float:
    """CPU seconds of OPA's answers to these; `fresh` forgets what it has kept, `asked` gets how many OPA was asked."""
    if isinstance(running.opa, Unavailable):
        raise running.opa.fault
    if fresh is not None:
        fresh.forget()
    before = cpu_seconds(running.opa.pid) + time.process_time()
    paths = [_path(running, document, str(number)) for number, document in enumerate(documents)]
    replies = (
        [run(path) for path in paths]
        if batch == 1
        else [one for at in range(0, len(paths), batch) for one in run_all(paths[at : at + batch])]
    )
    taken = cpu_seconds(running.opa.pid) + time.process_time() - before
    if asked is not None:
        asked.append(sum(reply.source is None for reply in replies))
    return taken


def _path(running: Engine, document: dict[str, Any], decision_id: str) -> Steps[Any]:
    reply = yield Ask(running.opa, document, decision_id)
    return reply

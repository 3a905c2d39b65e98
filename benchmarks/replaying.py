"""P23: recorded decisions decided again by a candidate policy, against the same requests decided one by one.

A replay reads the record strictly and asks an OPA of its own in batches. The other side is a loop of dry runs of an
engine in process, each with its record on disk; and a loop of opa-python-client over the same inputs, which reads and
records nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.bare import with_settings_of_the_engine
from benchmarks.bulk import asked_by_client, decided
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.workload import POINT, engine, request
from engine.model import Mode
from engine.record.reader import Filter
from engine.replay.candidate import Candidate, opened
from engine.replay.run import replay
from engine.settings import OpaLimits

_DECISIONS = 5_000
_SINGLE = 500
_GOAL = 10.0


def rows(bench: Bench) -> Iterator[Row]:
    """Wall time of one decision on each side."""
    folder = bench.folder("p23")
    requests = [request(number) for number in range(_DECISIONS)]
    with engine(bench, folder / "recorded") as own:
        documents = [answer.document for answer in own.decide_many(POINT, requests, mode=Mode.CHECK)]
    with ExitStack() as stack:
        single = stack.enter_context(engine(bench, folder / "single"))
        bare = stack.enter_context(with_settings_of_the_engine(bench, "p23/opa"))
        candidate = stack.enter_context(opened(bench.policy, OpaLimits(), frozenset({POINT})))
        parts = (
            lambda: _replayed(folder / "recorded", candidate) / _DECISIONS,
            lambda: decided(lambda: [single.check(POINT, one) for one in requests[:_SINGLE]]) / _SINGLE,
            lambda: asked_by_client(bare, documents[:_SINGLE]) / _SINGLE,
        )
        found = interleaved(parts, bench.rounds, partial(bench.report_round, "P23"))
    what = f"replay of {_DECISIONS:,} decisions ÷"
    faster = tuple(one / again for again, one, _ in found)
    yield Row("P23", f"{what} dry runs one by one, decisions a second", _GOAL, faster, least=True)
    faster = tuple(client / again for again, _, client in found)
    yield Row("P23", f"{what} opa-python-client loop, decisions a second", None, faster)
    yield Row("P23", "  a decision of a replay", None, tuple(again * 1e6 for again, _, _ in found), unit="µs")


def _replayed(state: Path, candidate: Candidate) -> float:
    started = time.perf_counter()
    done = replay(state, Filter(), candidate, None, lambda *_: None)
    taken = time.perf_counter() - started
    if done.count("unchanged") != _DECISIONS:
        raise NotMeasuredError(f"the policy of the record decides differently: {done.points}")
    return taken

"""P14: what a person waits for. Whole processes with warm caches, CPU seconds and wall seconds.

The work of `engine check` that cannot be saved is OPA: started on the same archives, waited for and
asked once with the same input, which is the divisor.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.documents import Documents
from benchmarks.measure import Bench, Row, interleaved
from benchmarks.processes import Cost, cost, environment, reap
from benchmarks.served import Served

_HELP_GOAL, _CHECK_GOAL = 1.5, 4.0
_NOW = "2026-11-21T00:00:00Z"


def rows(bench: Bench) -> Iterator[Row]:
    """`engine --help` and `engine check`, each by CPU time and by wall time."""
    surroundings = environment(bench.folder("p14"))

    def run(*arguments: str) -> Cost:
        return cost([sys.executable, *arguments], bench.root, surroundings)

    yield from _both(
        "engine --help ÷ python -c 'import typer'",
        _HELP_GOAL,
        interleaved(
            (lambda: run("-m", "engine", "--help"), lambda: run("-c", "import typer")),
            bench.rounds,
            partial(bench.report_round, "P14 engine --help"),
        ),
    )
    document = Documents(bench.root / "fixtures" / "cases", bench.folder("p14-cases")).of("source", "offline_fixture")
    bundle = str(bench.root / "fixtures" / "source_bundles" / "offline_fixture")
    yield from _both(
        "engine check, 1 record ÷ opa run to ready + one POST",
        _CHECK_GOAL,
        interleaved(
            (lambda: run("-m", "engine", "check", bundle, "--now", _NOW), lambda: _opa(bench, document)),
            bench.rounds,
            partial(bench.report_round, "P14 engine check"),
        ),
    )


def _both(what: str, goal: float, found: list[tuple[Cost, ...]]) -> Iterator[Row]:
    yield Row("P14", f"{what}, CPU", goal, tuple(ours.cpu / other.cpu for ours, other in found))
    yield Row("P14", f"{what}, wall", goal, tuple(ours.wall / other.wall for ours, other in found))


def _opa(bench: Bench, document: object) -> Cost:
    folder = bench.scratch / "p14-opa"
    folder.mkdir(exist_ok=True)
    body = json.dumps({"input": document}).encode()
    started = time.perf_counter()
    with Served(bench.binary.path, [bench.policy.rules.path, bench.policy.values.path], folder) as opa:
        opa.post("admission/decision", body)
        wall = time.perf_counter() - started
        opa.process.kill()
        return Cost(reap(opa.process), wall)

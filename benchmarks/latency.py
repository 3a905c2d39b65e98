"""P4: half of the answers at one connection come within this time, the engine's divided by raw OPA's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.measure import Bench, Row
from benchmarks.targets import Kind, started
from benchmarks.throughput import against, measured
from benchmarks.workload import workload
from benchmarks.wrk import Wrk

_GOALS = {Kind.WRITTEN: 2.0, Kind.DURABLE: 3.5, Kind.SHARED: 3.5}


def rows(bench: Bench) -> Iterator[Row]:
    """With a record that is not waited for, with one on disk, and with that where equal cases share an answer."""
    wrk = Wrk.find(bench)
    with started(bench, "latency", workload(bench), {Kind.RAW, *_GOALS}) as targets:
        shorter = replace(bench, seconds=bench.seconds / 2)  # half of the answers are many even so
        runs = measured(shorter, wrk, targets, 1, "P4")
    for kind, goal in _GOALS.items():
        p50 = against(runs, kind, Kind.RAW, lambda run: run.load.p50)
        yield Row("P4", f"{kind} ÷ {Kind.RAW}, p50 at one connection", goal, p50)

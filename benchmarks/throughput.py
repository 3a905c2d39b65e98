"""P1, P2, P3, P5, P6, P10: 32 connections that ask without pause, answered by the engine and by its peers.

All of them run all the time and are asked in their turn, so that they meet the same machine. wrk takes
its share of the cores from each of them alike. The ratios of CPU time count all processes that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from admission_adapters.sandbox.run.proc import tree_seconds
from benchmarks.measure import Bench, Row, interleaved
from benchmarks.targets import Kind, Target, started
from benchmarks.workload import workload
from benchmarks.wrk import Load, Wrk

_CONNECTIONS = 32
_ENGINES = (Kind.WRITTEN, Kind.DURABLE)
_NEEDED: Mapping[str, tuple[Kind, ...]] = {
    "P1": (Kind.WRITTEN, Kind.SHARED, Kind.FORWARDER, Kind.RECORDER, Kind.RAW),
    "P2": (Kind.DURABLE, Kind.SHARED, Kind.DURABLE_RECORDER, Kind.RECALLER, Kind.RAW),
    "P3": (*_ENGINES, Kind.SHARED, Kind.DEFAULT),
    "P5": (*_ENGINES, Kind.SHARED, Kind.RAW),
    "P6": (*_ENGINES, Kind.SHARED, Kind.FASTAPI),
    "P10": _ENGINES,
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of wrk, and the CPU seconds that the answering side took for each request."""

    load: Load
    cpu: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.load.rate

    @property
    def p99(self) -> float:
        """Seconds within which 99 of 100 answers came."""
        return self.load.p99


Runs = Mapping[Kind, Sequence[Run]]
"""The runs of each target, one a round."""


def rows(bench: Bench) -> Iterator[Row]:
    """The rows that were asked for, from one set of rounds."""
    asked = [name for name in _NEEDED if name in bench.asked]
    kinds = {kind for name in asked for kind in _NEEDED[name]}
    wrk = Wrk.find(bench)
    work = workload(bench)
    with started(bench, "throughput", work, kinds) as targets:
        runs = measured(bench, wrk, targets, _CONNECTIONS, " ".join(asked))
    for name in asked:
        yield from _ROWS[name](runs)
    for kind, each in runs.items():
        yield Row("rate", f"{kind}, requests a second", None, tuple(run.rate for run in each), "")


def measured(
    bench: Bench, wrk: Wrk, targets: Mapping[Kind, Target], connections: int, what: str
) -> dict[Kind, tuple[Run, ...]]:
    """One run on each target in turn, round by round."""

    def run(target: Target) -> Run:
        before = sum(map(tree_seconds, target.pids))
        load = wrk.post(target.url, target.body, connections, bench.seconds)
        return Run(load, (sum(map(tree_seconds, target.pids)) - before) / load.requests)

    parts = [partial(run, target) for target in targets.values()]
    found = interleaved(parts, bench.rounds, partial(bench.report_round, what))
    return dict(zip(targets, zip(*found, strict=True), strict=True))


def against(runs: Runs, kind: Kind, peer: Kind, of: Callable[[Run], float]) -> tuple[float, ...]:
    """One figure of a target divided by that of its peer, round by round."""
    return tuple(of(ours) / of(theirs) for ours, theirs in zip(runs[kind], runs[peer], strict=True))


def _without_waiting(runs: Runs) -> Iterator[Row]:
    for kind in (Kind.WRITTEN, Kind.SHARED):
        yield from _share("P1", kind, 0.70, runs)
    yield from _floors("P1", (Kind.FORWARDER, Kind.RECORDER), runs)


def _durable(runs: Runs) -> Iterator[Row]:
    for kind in (Kind.DURABLE, Kind.SHARED):
        yield from _share("P2", kind, 0.60, runs)
    yield from _floors("P2", (Kind.DURABLE_RECORDER, Kind.RECALLER), runs)


def _floors(name: str, kinds: Sequence[Kind], runs: Runs) -> Iterator[Row]:
    for kind in kinds:
        rate = against(runs, kind, Kind.RAW, lambda run: run.rate)
        yield Row(name, f"  the floor: {kind} ÷ {Kind.RAW}, requests a second", None, rate, least=True)


def _share(name: str, kind: Kind, goal: float, runs: Runs) -> Iterator[Row]:
    rate = against(runs, kind, Kind.RAW, lambda run: run.rate)
    yield Row(name, f"{kind} ÷ {Kind.RAW}, requests a second", goal, rate, least=True)
    yield Row(name, f"{kind} ÷ {Kind.RAW}, CPU a request", None, against(runs, kind, Kind.RAW, lambda run: run.cpu))


def _rates(name: str, peer: Kind, goal: float, runs: Runs) -> Iterator[Row]:
    """The goal is that of an engine that waits for no disk, as the peer has no record at all."""
    for kind, aim in ((Kind.WRITTEN, goal), (Kind.DURABLE, None), (Kind.SHARED, goal)):
        rate = against(runs, kind, peer, lambda run: run.rate)
        yield Row(name, f"{kind} ÷ {peer}, requests a second", aim, rate, least=True)


def _tail(runs: Runs) -> Iterator[Row]:
    for kind in (*_ENGINES, Kind.SHARED):
        p99 = against(runs, kind, Kind.RAW, lambda run: run.p99)
        yield Row("P5", f"{kind} ÷ {Kind.RAW}, p99 at {_CONNECTIONS} connections", 0.7, p99)


def _lost(runs: Runs) -> Iterator[Row]:
    kept = against(runs, Kind.DURABLE, Kind.WRITTEN, lambda run: run.rate)
    yield Row("P10", "throughput lost to records on disk", 15.0, tuple(100 * (1 - share) for share in kept), "%")


_ROWS: Mapping[str, Callable[[Runs], Iterator[Row]]] = {
    "P1": _without_waiting,
    "P2": _durable,
    "P3": partial(_rates, "P3", Kind.DEFAULT, 0.90),
    "P5": _tail,
    "P6": partial(_rates, "P6", Kind.FASTAPI, 2.5),
    "P10": _lost,
}

"""P12, P13, analysis and actions: what a sandbox costs beside a plain subprocess that runs the same program.

Everything is timed from asking to the answer, handshake and death of the whole tree included. The divisor is
`python3 -I -S -c 'print(1)'`, the system's interpreter as a plain subprocess, started and waited for.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import shared_folder
from admission_adapters.sandbox.run.pool import Pooled
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved, ratios

_COLD_GOAL, _WARM_GOAL = 1.8, 0.5
_TIMES = 20
"""Pairs in a round."""
_ACTIONS, _AT_ONCE = 500, 4
_POOL = 8
_PLAIN = ["/usr/bin/python3", "-I", "-S", "-c", "print(1)"]
_MIB = 1024 * 1024
_BOUNDS = Bounds(
    wall_seconds=30.0,
    cpu_seconds=10,
    memory_bytes=256 * _MIB,
    processes=16,
    open_files=64,
    file_bytes=8 * _MIB,
    disk_bytes=16 * _MIB,
    stdout_bytes=4096,
    stderr_bytes=4096,
    artifact_files=0,
    artifact_bytes=0,
)
_ROOMY = replace(
    _BOUNDS, memory_bytes=1024 * _MIB, processes=32, open_files=256, file_bytes=64 * _MIB, disk_bytes=256 * _MIB
)
_ANALYSIS = {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
"""What policy sets for the profile `analysis`."""


def rows(bench: Bench, actions: int = _ACTIONS) -> Iterator[Row]:
    """Wall time; what a machine lacks for a sandbox is reported, and nothing is measured."""
    backend = Bubblewrap()
    if (lacking := backend.available()) is not None:
        raise NotMeasuredError(lacking)
    if "P12" in bench.asked:
        on_round = partial(bench.report_round, "P12 cold sandbox")
        what = "cold sandbox, start to death ÷ plain subprocess"
        yield Row("P12", what, _COLD_GOAL, ratios(partial(_cold, backend), _plain, _TIMES, bench.rounds, on_round))
    if "P13" in bench.asked:
        with Pooled(1) as pool:
            on_round = partial(bench.report_round, "P13 warm sandbox")
            what = "warm sandbox, submit to death ÷ plain subprocess"
            yield Row("P13", what, _WARM_GOAL, ratios(partial(_warm, pool), _plain, _TIMES, bench.rounds, on_round))
    if "analysis" in bench.asked:
        with _packages() as folder:
            on_round = partial(bench.report_round, "analysis cold sandbox with packages")
            what = "cold sandbox with the limits and packages of analysis ÷ plain subprocess"
            part = partial(_cold, backend, replace(_program(), packages=folder, environment=_ANALYSIS), _ROOMY)
            yield Row("analysis", what, None, ratios(part, _plain, _TIMES, bench.rounds, on_round))
    if "actions" in bench.asked:
        yield from _many(bench, backend, actions)


def _many(bench: Bench, backend: Bubblewrap, actions: int) -> Iterator[Row]:
    """Short actions, several at once: a round of each way, in turn."""
    with Pooled(_POOL) as pool:
        parts: list[Callable[[], float]] = [
            partial(_seconds, partial(_run, pool), actions),
            partial(_seconds, partial(_run, backend), actions),
            partial(_seconds, _plain, actions),
        ]
        found = interleaved(parts, bench.rounds, partial(bench.report_round, f"{actions} actions"))
    what = f"{actions} short actions, {_AT_ONCE} at once"
    yield Row("actions", f"{what}: pool ÷ plain", None, tuple(warm / plain for warm, _, plain in found))
    yield Row("actions", f"{what}: cold ÷ plain", None, tuple(cold / plain for _, cold, plain in found))
    yield Row("actions", "  pool, a second", None, tuple(actions / warm for warm, _, _ in found), "/s")
    yield Row("actions", "  cold, a second", None, tuple(actions / cold for _, cold, _ in found), "/s")


def _seconds(action: Callable[[], object], actions: int) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for asked in [threads.submit(action) for _ in range(actions)]:
            asked.result()
    return time.perf_counter() - started


@contextmanager
def _packages() -> Iterator[str]:
    """A folder of one package that every sandbox can read; how large an environment is does not change its start."""
    with TemporaryDirectory(dir=shared_folder()) as folder:
        Path(folder).chmod(0o755)
        Path(folder, "tiny.py").touch(0o644)
        yield folder


def _cold(backend: Bubblewrap, program: Program | None = None, bounds: Bounds = _BOUNDS) -> float:
    started = time.perf_counter()
    _run(backend, program, bounds)
    return time.perf_counter() - started


def _warm(pool: Pooled) -> float:
    if pool.prepare(_program(), _BOUNDS) == 0:
        raise NotMeasuredError("no sandbox became ready")
    started = time.perf_counter()
    _run(pool)
    return time.perf_counter() - started


def _plain() -> float:
    started = time.perf_counter()
    done = subprocess.run(_PLAIN, stdin=subprocess.DEVNULL, capture_output=True, env={}, check=True)
    taken = time.perf_counter() - started
    if done.stdout != b"1\n":
        raise NotMeasuredError("the plain subprocess said something else")
    return taken


def _run(backend: Bubblewrap | Pooled, program: Program | None = None, bounds: Bounds = _BOUNDS) -> RunResult:
    ended = backend.run(program or _program(), bounds)
    if (ended.status, ended.stdout) != (Status.OK, b"1\n"):
        raise NotMeasuredError(f"the sandbox ended with {ended.status}: {ended.stderr.decode(errors='replace')[:200]}")
    return ended


def _program() -> Program:
    return Program("python", "print(1)", environment={"PYTHONHASHSEED": "0"})

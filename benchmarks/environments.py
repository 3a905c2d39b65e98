"""E1: building an environment of 100,000 contacts divided by reading the same JSON and a bare `executemany`.

An engine in this process, its record on disk. The build hashes the source bundle, takes two decisions and records
them, reads the contacts strictly and writes the database twice; the other side does none of that.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from admission_adapters.environments.database import TABLES
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from engine.engine import Engine
from engine.settings import Settings
from tests.environments.bundles import MOMENT, bundle, contacts

_ROWS = 100_000
_GOAL = 2.0
Cost = tuple[float, float]
"""Seconds of CPU and of wall time."""


def rows(bench: Bench) -> Iterator[Row]:
    """CPU and wall time of this process; the decisions of OPA cost about a millisecond each."""
    folder = bench.folder("e1")
    source = bundle(folder / "bundle", contacts(_ROWS))
    with Engine(Settings(state=folder / "state", cache=bench.cache), now=lambda: MOMENT) as engine:
        parts = [partial(_built, engine, source, folder / "into"), partial(_bare, source, folder / "bare.sqlite")]
        found = interleaved(parts, bench.rounds, partial(bench.report_round, "E1"))
    what = f"environment of {_ROWS:,} contacts ÷ JSON and bare executemany"
    for at, kind in enumerate(("CPU", "wall")):
        yield Row("E1", f"{what}, {kind}", _GOAL, tuple(ours[at] / bare[at] for ours, bare in found))


def _built(engine: Engine, source: Path, into: Path) -> Cost:
    shutil.rmtree(into, ignore_errors=True)
    cpu, wall = time.process_time(), time.perf_counter()
    answer = engine.build(source, into)
    if answer.result is None or answer.fault is not None:
        raise NotMeasuredError(f"E1 measures a refusal: {answer.decision.findings}")
    return time.process_time() - cpu, time.perf_counter() - wall


def _bare(source: Path, file: Path) -> Cost:
    file.unlink(missing_ok=True)
    cpu, wall = time.process_time(), time.perf_counter()
    found = json.loads((source / "content" / "0.dat").read_bytes())
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(TABLES["contacts"][0])
        values = ((str(one["id"]), one["name"], "", one["city"], "", "", "[]") for one in found)
        database.executemany("INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    return time.process_time() - cpu, time.perf_counter() - wall

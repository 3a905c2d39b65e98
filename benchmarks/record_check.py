"""P11: checking the chain of a whole record, divided by one SHA-256 over the same bytes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.unsynced import UnsyncedStorage
from benchmarks.workload import POINT, engine, request
from engine import __version__
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, utc_now
from engine.record.verify import verify
from engine.times import timestamp

_GOAL = 4.0
_BYTES = 100_000_000


def rows(bench: Bench, size: int = _BYTES) -> Iterator[Row]:
    """CPU time of both, of a record of license decisions as the engine writes it."""
    state = bench.folder("p11") / "state"
    lines = _write(bench, state, size)
    files = sorted((state / "records").rglob("*.jsonl"))

    def check() -> float:
        started = time.process_time()
        found = verify(state)
        taken = time.process_time() - started
        if not found.ok or found.records != lines:
            raise NotMeasuredError(f"the record does not hold: {found}")
        return taken

    found = interleaved((check, lambda: _hash(files)), bench.rounds, partial(bench.report_round, "P11"))
    what = f"record verify, {lines:,} lines ÷ one SHA-256 over them, CPU"
    yield Row("P11", what, _GOAL, tuple(ours / hashing for ours, hashing in found))


def _write(bench: Bench, state: Path, size: int) -> int:
    """A record of about so many bytes below `state`; gives the number of its lines."""
    with engine(bench, bench.scratch / "p11" / "one") as running:
        answer = running.check(POINT, request())
    body = DecisionRecord.of(
        answer.decision,
        time=timestamp(utc_now()),
        document=answer.document,
        versions={"engine": __version__, "opa": bench.binary.version},
        durations={"gather": 150, "decide": 900},
    )
    with RecordLog.open(UnsyncedStorage(state), lock_seconds=1.0, clock=utc_now) as log:
        log.append(body)
        lines = size // max(sum(file.stat().st_size for file in (state / "records").rglob("*.jsonl")), 1)
        for number in range(1, lines):
            if number % 1000 == 0:
                bench.report(f"P11: writing a record, line {number:,} of {lines:,}")
            log.append(body)
        return log.seq


def _hash(files: list[Path]) -> float:
    started = time.process_time()
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return time.process_time() - started

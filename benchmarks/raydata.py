"""P24: the rows of a corpus decided on by workers of Ray, against one worker, our own batch and opa-python-client.

From the first unit that comes back to the last: starting Ray takes seconds, whatever the corpus. Our own batch has the
same rows, read from the same files, with its record on disk; its first unit is left out too. OPA is asked about every
row, except where a title says that equal cases are decided once.

    python -m benchmarks.raydata 1000000 --into DIR     the trial on two nodes of this machine, with one number per line
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.bare import with_settings_of_the_engine
from benchmarks.bulk import asked_by_client
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.workload import engine
from engine.engine import Engine
from engine.model import Mode
from engine.ray.columns import POINT
from engine.ray.corpus import check_corpus
from engine.ray.packages import package
from engine.ray.rows import batches
from engine.ray.units import plan
from engine.record.bulk import signer, verify_run
from engine.settings import Settings
from tests.ray.samples import COLUMNS

_ROWS, _UNIT = 24_000, 2_000
_LICENSES = ("CC-BY-4.0", "MIT", "CC-BY-NC-4.0", "Apache-2.0", "LicenseRef-unknown")
_STORE_BYTES = 150 << 20


def rows(bench: Bench) -> Iterator[Row]:
    """Ratios of rows a second, in turns."""
    folder = bench.folder("p24")
    corpus = str(written(folder / "corpus.parquet", _ROWS, _UNIT))
    with ExitStack() as stack:
        own = stack.enter_context(engine(bench, folder / "state"))
        sharing = stack.enter_context(engine(bench, folder / "sharing", 8_192))
        bare = stack.enter_context(with_settings_of_the_engine(bench, "p24/opa"))
        first = next(batches(plan([corpus], COLUMNS)[0], COLUMNS)).requests
        documents = [answer.document for answer in own.decide_many(POINT, first, mode=Mode.CHECK)]
        address = stack.enter_context(nodes())
        numbers = iter(range(1_000_000))

        def by(workers: int, asked: Engine = own) -> float:
            return _by_ray(asked, address, corpus, folder / f"run-{next(numbers)}", workers)

        parts = (
            lambda: by(2),
            lambda: by(1),
            lambda: _by_batch(own, corpus),
            lambda: by(2, sharing),
            lambda: len(documents) / asked_by_client(bare, documents, allowed=False),
        )
        found = interleaved(parts, bench.rounds, partial(bench.report_round, "P24"))
    what = f"{_ROWS:,} rows in units of {_UNIT:,}:"
    faster = tuple(two / one for two, one, *_ in found)
    yield Row("P24", f"{what} two workers ÷ one, rows a second", 1.7, faster, least=True)
    slower = tuple(batch / one for _, one, batch, *_ in found)
    yield Row("P24", f"{what} one worker of Ray ÷ own batch, time a row", 1.3, slower)
    yield Row("P24", "  a row of own batch", None, tuple(1e6 / batch for _, _, batch, *_ in found), unit="µs")
    loop = tuple(shared / client for *_, shared, client in found)
    what = "two workers, equal cases once ÷ opa-python-client loop"
    yield Row("P24", f"{what}, rows a second", None, loop, least=True)


def written(path: Path, count: int, row_group: int) -> Path:
    """A corpus of so many rows, each with content of its own; a row group at a time."""
    pa, parquet = package("pyarrow"), package("pyarrow.parquet")
    out = None
    for first in range(0, count, row_group):
        table = pa.Table.from_pylist([_row(number) for number in range(first, min(first + row_group, count))])
        out = out or parquet.ParquetWriter(path, table.schema)
        out.write_table(table)
    if out is not None:
        out.close()
    return path


def _row(number: int) -> dict[str, Any]:
    return {
        "license": _LICENSES[number % len(_LICENSES)],
        "origin": f"site-{number % 97}",
        "sha256": sha256(f"row {number}".encode()).hexdigest(),
        "decision": "accepted",
        "decided_at": "2026-11-03T10:00:00Z",
    }


@contextmanager
def nodes() -> Iterator[str]:
    """Two nodes on this machine with two logical processors each, known to this process only."""
    os.environ |= {
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_BACKEND_LOG_LEVEL": "fatal",
        "RAY_worker_niceness": "0",  # as what they are compared with; by default they yield to all others
    }
    small = {"num_cpus": 2, "object_store_memory": _STORE_BYTES}
    cluster = package("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={**small, "include_dashboard": False}
    )
    try:
        cluster.add_node(**small)
        yield cluster.address
    finally:
        cluster.shutdown()


def _by_ray(own: Engine, address: str, corpus: str, into: Path, workers: int) -> float:
    """Rows a second between the first unit and the last."""
    seen: list[tuple[float, int]] = []
    done = check_corpus(
        own,
        [corpus],
        COLUMNS,
        into,
        address=address,
        workers=workers,
        on_progress=lambda units, _: seen.append((time.perf_counter(), units)),
    )
    if done.manifest.outcomes.total() != _ROWS or seen[0] is seen[-1]:
        raise NotMeasuredError(f"{done.manifest.outcomes.total()} of {_ROWS} rows were decided")
    (first, few), (last, all_) = seen[0], seen[-1]
    return (all_ - few) * _UNIT / (last - first)


def _by_batch(own: Engine, corpus: str) -> float:
    first, *rest = plan([corpus], COLUMNS)
    _decided(own, first)
    started = time.perf_counter()
    for unit in rest:
        _decided(own, unit)
    return _UNIT * len(rest) / (time.perf_counter() - started)


def _decided(own: Engine, unit: Any) -> None:
    for some in batches(unit, COLUMNS):
        own.decide_many(POINT, some.requests, mode=Mode.CHECK)


def trial() -> None:
    """Decide a large corpus on two nodes, and verify it."""
    parser = argparse.ArgumentParser(description=trial.__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--into", type=Path, required=True, help="new folder for corpus, state and run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--unit", type=int, default=10_000, help="rows of a row group (default: 10,000)")
    options = parser.parse_args()
    options.into.mkdir(parents=True)
    corpus = str(written(options.into / "corpus.parquet", options.rows, options.unit))
    began = time.perf_counter()

    def on_progress(done: int, of: int) -> None:
        if done % 10 in {0, 1} or done == of:
            seconds = time.perf_counter() - began
            largest = max(_resident(), default=0) >> 20
            print(
                f"{done} of {of} units, {seconds:.0f} s, worker {largest} MiB, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )

    with nodes() as address, Engine(Settings(state=options.into / "state")) as own:
        run = options.into / "run"
        done = check_corpus(
            own, [corpus], COLUMNS, run, address=address, workers=options.workers, on_progress=on_progress
        )
    seconds = time.perf_counter() - began
    print(f"{options.rows:,} rows in {seconds:.0f} s: {options.rows / seconds:,.0f} a second; {done.manifest.outcomes}")
    began = time.perf_counter()
    found = verify_run(run, signer(options.into / "state"))
    print(
        f"verified {found.records:,} records, {found.size:,} bytes in {time.perf_counter() - began:.1f} s: {found.ok}"
    )
    sys.exit(not found.ok)


def _resident() -> Iterator[int]:
    """Resident bytes of each worker on this machine, without its OPA."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                yield int((folder / "statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    trial()

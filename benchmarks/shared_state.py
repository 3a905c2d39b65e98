"""State in PostgreSQL against state in a file: reservations of one hot counter, and idempotency keys.

Both sync each commit. A file groups what threads of one engine write into one commit; in PostgreSQL, the writer of a
row waits for the commit of the writer before. What PostgreSQL is for, several engines, a file on one machine cannot do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import count

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from engine.state import open_shared, open_store
from engine.state.rows import Counter
from engine.state.store import Store
from tests.postgres import SERVING, binaries, running

_CALLERS = (1, 8, 64)
_NOW = 1_800_000_000
_HOT = Counter("bench.all", "", 3600)
_SHARE = 0.5
"""Of `Bench.seconds`, for one side of a round."""

Operation = Callable[[Store, str], object]
_OPERATIONS: dict[str, Operation] = {
    "reserve, one hot counter": lambda store, name: store.reserve(name, (_HOT,), _NOW),
    "begin, keys of their own": lambda store, name: store.begin("bench", name, "body", _NOW),
}


def rows(bench: Bench) -> Iterator[Row]:
    """Calls a second with PostgreSQL ÷ with a file, for each operation and number of callers."""
    if binaries() is None:
        raise NotMeasuredError("there is no PostgreSQL on this machine; install Debian's package postgresql")
    names = map(str, count())
    with ExitStack() as stack:
        server = stack.enter_context(running())
        shared = stack.enter_context(closing(open_shared(server.address(server.database(), SERVING))))
        file = stack.enter_context(closing(open_store(bench.folder("state-file"))))
        for what, operation in _OPERATIONS.items():
            for callers in _CALLERS:
                parts = [
                    partial(_rate, partial(operation, store), callers, names, bench.seconds * _SHARE)
                    for store in (shared, file)
                ]
                found = interleaved(
                    parts, bench.rounds, partial(bench.report_round, f"state: {what}, {callers} callers")
                )
                values = tuple(ours / theirs for ours, theirs in found)
                yield Row("state", f"{what}, {callers} callers: PostgreSQL ÷ SQLite", None, values, least=True)


def _rate(call: Callable[[str], object], callers: int, names: Iterator[str], seconds: float) -> float:
    """Calls a second of this many threads."""
    begin, end = threading.Barrier(callers + 1), [0.0]
    done: list[int] = []

    def work() -> None:
        mine = 0
        begin.wait()
        while time.monotonic() < end[0]:
            call(next(names))
            mine += 1
        done.append(mine)

    threads = [threading.Thread(target=work) for _ in range(callers)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    end[0] = began + seconds
    begin.wait()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)

"""An open PostgreSQL database: a pool of connections, and recovery by itself once the server is back.

Each operation is one transaction at READ COMMITTED. A transaction whose commit is not confirmed may have happened:
it is never run again. One that was surely undone, because others were faster, is.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from engine.errors import StateError
from engine.state.backend import Connection, Operation, Sweep
from engine.state.part import clock
from engine.state.postgres import faults
from engine.state.postgres.combining import Combined
from engine.state.postgres.connecting import connect, hung_up, parameters, prepare, unusable
from engine.state.postgres.deadlines import Deadlines
from engine.state.postgres.schema import version
from engine.state.rows import StateLimits
from engine.state.schema import VERSION

T = TypeVar("T")

_TRIES = 4
"""Of a transaction that others were faster than."""

_TICK_SECONDS = 0.5
"""Between two looks of the keeper: whether PostgreSQL is back, and what is old enough to be removed."""

_MOST_FAILED = 10_000
"""Maximum number of operations that are run again once PostgreSQL is back; beyond it, the oldest is dropped."""

_THERE = "SELECT pid FROM pg_stat_activity WHERE pid = ANY(?) AND pid <> pg_backend_pid()"
_END = _THERE.replace("SELECT pid", "SELECT pg_terminate_backend(pid)")
"""Processes of the same role. An id that is used again ends another engine's operation, which is refused then."""

_EARLIER = "SELECT least(?::bigint, extract(epoch FROM clock_timestamp())::bigint)"
"""A time of an engine, or that of the server if the engine's clock is ahead of it."""

_LOCKING = re.compile(r"/\* (FOR UPDATE[A-Z ]*) \*/")


@lru_cache(maxsize=1_000)
def _translated(statement: str) -> bytes:
    return _LOCKING.sub(r"\1", statement).replace("?", "%s").encode()


class _Statements:
    """A connection as the parts of the store see it."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor:
        return self._connection.execute(_translated(statement), values)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> psycopg.Cursor:
        cursor = self._connection.cursor()
        cursor.executemany(_translated(statement), rows)
        return cursor

    def lock(self, *names: str) -> None:
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", ("\x1f".join(names),))


class PostgresDatabase:
    """The open database of a shared state; threads may share it. Every method raises StateError alone."""

    failed = False
    """It is never opened again: connections are replaced one by one."""

    def __init__(self, address: str, limits: StateLimits) -> None:
        self._address, self._limits = address, limits
        self.lag = limits.lag_seconds
        self._owner = os.getpid()
        self._closed = False
        self._down: faults.Reason | None = None
        self._weakness: faults.Reason | None = None
        self._answered_at = time.monotonic()
        self._sweeps: dict[str, Operation[None]] = {}
        self._failed: deque[Operation[object]] = deque(maxlen=_MOST_FAILED)
        self._lost: set[int] = set()
        """Processes of PostgreSQL whose connection was cut: what was sent to them may still be run."""
        self._stop = threading.Event()
        with closing(connect(address, limits)) as first:
            self.identity = self._demand_version(first)
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it writes addresses
        try:
            self._open_pool()
        except RuntimeError as error:
            raise self._unusable(("no thread can be started", "raise the limit of threads")) from error

    def _open_pool(self) -> None:
        limits = self._limits
        with ExitStack() as opened:
            self._deadlines = Deadlines(limits.answer_seconds)
            opened.callback(self._deadlines.close)
            self._pool = ConnectionPool(
                kwargs=parameters(self._address, limits),
                min_size=0,
                max_size=limits.connections,
                open=False,
                configure=self._configure,
                timeout=limits.wait_seconds,
                reconnect_timeout=0,  # a thread that needs a connection asks for one: waits do not grow
                name="engine-state",
            )
            opened.callback(self._pool.close)
            self._pool.open()
            self._keeper = threading.Thread(target=self._keep, name="engine-state", daemon=True)
            self._keeper.start()
            opened.pop_all()

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only reads; it sees what was committed before, by any engine."""
        with self._connection() as connection:
            return operation(_Statements(connection))

    def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction; its result is durable. It may run again after it was undone."""

        def transaction() -> T:
            with self._connection() as connection:
                return self._transaction(connection, operation)

        return _repeated(transaction)

    def write_one(self, operation: Operation[T]) -> T:
        """The same for an operation that writes by one statement alone, which is a transaction of its own."""
        return _repeated(lambda: self.read(operation))

    def combined(self, operation: Callable[[Connection, Sequence[Any]], Sequence[Any]]) -> Callable[[Any], Any] | None:
        """A function that runs an operation of one statement for the items of several threads at once."""

        def run(items: Sequence[Any]) -> Sequence[Any]:
            return self.write_one(lambda connection: operation(connection, items))

        return Combined(run, self._limits.batch)

    def _transaction(self, connection: psycopg.Connection, operation: Operation[T]) -> T:
        connection.execute("BEGIN")
        try:
            result = operation(_Statements(connection))
        except BaseException:
            with suppress(psycopg.Error):  # a connection that is cut refuses it
                connection.execute("ROLLBACK")
            raise
        if connection.execute("COMMIT").statusmessage != "COMMIT":
            raise self._unusable(faults.UNSAFE_COMMIT)
        return result

    def tidy(self, _connection: Connection, name: str, now: int, sweep: Sweep) -> None:
        """Sweep soon, in a transaction of its own, so that no request waits for it."""
        self._sweeps[name] = lambda connection: sweep(connection, connection.execute(_EARLIER, (now,)).fetchone()[0])

    def give_back(self, operation: Operation[object]) -> None:
        """Undo by `write`, after the operation that is undone; where that fails, again once PostgreSQL answers."""
        try:
            self._end_lost()
            self.write(operation)
        except StateError:
            self._failed.append(operation)  # the oldest are forgotten where there are too many
            raise

    def moment(self, _connection: Connection | None) -> int:
        """A number that is another one after `lag` seconds."""
        return int(clock() / self.lag)

    def demand_open(self) -> None:
        """Raise StateError if this database cannot be used, as far as known without asking it."""
        if os.getpid() != self._owner:  # a fork shares the sockets: two writers would mix their messages
            raise self._unsent(("it was opened in another process", "open a store in each process, after the fork"))
        if self._closed:
            raise self._unsent(("it is closed", "open it again"))
        if self._down is not None:
            raise self._unsent(self._down)

    def close(self) -> None:
        """Close all connections, those in use when they are given back; no effect in a forked process."""
        if os.getpid() != self._owner or self._closed:
            return
        self._closed = True
        self._stop.set()
        self._keeper.join()
        self._pool.close()
        self._deadlines.close()

    @contextmanager
    def _connection(self, *, looking: bool = False) -> Iterator[psycopg.Connection]:
        """A connection for one operation, given back afterwards, and closed unless it is whole."""
        if not looking:
            self.demand_open()
        connection = self._take()
        process = connection.info.backend_pid
        try:
            with self._deadlines.over(connection):
                try:
                    yield connection
                except psycopg.Error as error:
                    raise self._wrapped(error, connection) from error
            self._answered_at = time.monotonic()
        finally:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                self._lost.add(process)
                connection.close()
            self._pool.putconn(connection)

    def _take(self) -> psycopg.Connection:
        due = time.monotonic() + self._limits.wait_seconds
        try:
            while hung_up(connection := self._pool.getconn(due - time.monotonic())):
                connection.close()
                self._pool.putconn(connection)
        except (psycopg.Error, PoolTimeout) as error:
            if self._closed:
                self.demand_open()
            if self._weakness is None and time.monotonic() - self._answered_at < self._limits.wait_seconds:
                raise self._unsent(faults.BUSY) from error
            self._down = self._weakness or faults.UNREACHABLE
            raise self._unsent(self._down) from error
        return connection

    def _wrapped(self, error: psycopg.Error, connection: psycopg.Connection) -> Exception:
        if self._deadlines.passed(connection):
            self._down = faults.HANGING
            return self._unusable(self._down)
        return unusable(self._address, faults.reason(error), faults.kind(error))

    def _configure(self, connection: psycopg.Connection) -> None:
        """Refuse a server that was started again with other promises."""
        with self._deadlines.over(connection):
            self._weakness = prepare(connection)
        if self._weakness is not None:
            connection.close()
            raise self._unusable(self._weakness)

    def _demand_version(self, connection: psycopg.Connection) -> str:
        """The identity of the database. Raises StateError unless its tables have our version."""
        try:
            known = version(connection)
            if known == VERSION:
                row = connection.execute("SELECT identity FROM versions").fetchone()
                return "" if row is None else str(row[0])
        except psycopg.Error as error:
            raise self._unusable(faults.reason(error)) from error
        if known:
            old = f"its tables have version {known}, this engine needs version {VERSION}"
            raise self._unusable((old, faults.NOT_PREPARED[1]))
        raise self._unusable(faults.NOT_PREPARED)

    def _keep(self) -> None:
        """The loop of the keeper, until the database is closed."""
        while not self._stop.wait(_TICK_SECONDS):
            with suppress(Exception):  # without the keeper, nothing would go on after a fault
                if self._down is None:
                    self._catch_up()
                else:
                    self._look()

    def _catch_up(self) -> None:
        """Give back what could not be given back, then remove what is old."""
        self._end_lost()
        while self._failed:
            with suppress(faults.OneFaultError):  # it will never succeed
                self.write(self._failed[0])
            self._failed.popleft()
        while self._sweeps:
            self.write(self._sweeps.popitem()[1])

    def _end_lost(self) -> None:
        """End the processes whose connection was cut. Raises StateError while one is there: it may still commit."""
        lost = [*self._lost]
        if not lost:
            return

        def operation(connection: Connection) -> set[int]:
            connection.execute(_END, (lost,)).fetchall()
            return {row[0] for row in connection.execute(_THERE, (lost,))}

        there = self.read(operation)
        self._lost.difference_update({*lost} - there)
        if there:
            raise self._unusable(faults.HANGING)

    def _look(self) -> None:
        """Whether PostgreSQL answers again; until then every operation is refused at once."""
        with self._connection(looking=True) as connection:
            connection.execute("SELECT 1")
            self._down = None

    def _unusable(self, reason: faults.Reason) -> StateError:
        return unusable(self._address, reason)

    def _unsent(self, reason: faults.Reason) -> StateError:
        return unusable(self._address, reason, faults.UnsentError)


def _repeated(transaction: Callable[[], T]) -> T:
    """The result of a transaction, which runs again if it was undone because others were faster."""
    for _ in range(_TRIES - 1):
        with suppress(faults.UndoneError):
            return transaction()
    return transaction()

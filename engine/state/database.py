"""The open state file: one writing and one reading connection; translates all SQLite errors.

Writers share commits. Each submits an operation and waits; one thread runs all submitted operations
in one transaction and syncs once. Meanwhile, the next ones queue up.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from urllib.parse import quote

from engine.errors import Location, StateError
from engine.state.backend import Connection, Sweep
from engine.state.location import identity, locate
from engine.state.part import clock
from engine.state.rows import StateLimits
from engine.state.schema import APPLICATION, VERSION, statements

T = TypeVar("T")


class SqliteConnection(sqlite3.Connection):
    """A connection as the parts of the store see it."""

    def lock(self, *_names: str) -> None:
        """Nothing to wait for: SQLite has one writer at a time."""


Operation = Callable[[SqliteConnection], T]

_POLL_SECONDS = 0.001
"""Between two tries for another process's lock. SQLite's own waiting sleeps up to 100 times as long and
loses against a process that commits without a pause."""

_WAL_BYTES = 16 << 20
"""Size to which the write-ahead log is truncated when it restarts, so that a burst does not keep disk space."""

_FINAL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""Errors after which nothing more is tried: a sync that failed once may succeed with the data lost (fsync(2))."""

_REASONS = {
    sqlite3.SQLITE_BUSY: ("another process holds it", "end the process that holds the state"),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room"),
    sqlite3.SQLITE_READONLY: ("it may not be written", "repair the permissions of the state folder"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "repair the permissions of the state folder"),
    sqlite3.SQLITE_IOERR: ("the disk failed or is full", "make room or repair the disk"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", "restore it from a backup, or move it aside and start empty"),
    sqlite3.SQLITE_NOTADB: ("it is not a state file", "restore it from a backup, or move it aside"),
}


_OWN_FAULTS = (sqlite3.DataError, sqlite3.IntegrityError)
"""Errors of one statement's values; every other error ends the transaction for all its participants."""

_PRAGMAS = (
    "synchronous = FULL",  # a commit is on disk before its caller continues
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    f"journal_size_limit = {_WAL_BYTES}",
)
_CLOSED = ("it is closed", "open it again")


class _Job:
    """An operation, its outcome, and the lock that its caller waits for."""

    __slots__ = ("done", "error", "operation", "result")

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation
        self.result: Any = None
        self.error: Exception | None = None
        self.done = threading.Lock()
        self.done.acquire()


class Database:
    """An open state file; threads may share it. Every method raises StateError, never a sqlite3 error."""

    lag = 0.0

    def __init__(self, folder: Path, limits: StateLimits, *, after_fault: bool = False) -> None:
        self._limits = limits
        self._path = folder
        self._closed = False
        self._booted_at = time.time() - clock()
        self._failure: tuple[str, str] | None = None
        self._owner = os.getpid()
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._handing_in, self._reading = threading.Lock(), threading.Lock()
        try:
            self._path = locate(folder, _create)
            found = identity(self._path, least=1)
            self._mode, self._journal = _opening(self._path)
            self._writer = self._connect()
            self._reader = self._connect()
            self._prepare()
            if after_fault:
                self._write_again()
            self._wal = Path(f"{self._path}-wal")
            self._identity = found, identity(self._wal)
            self._committer = threading.Thread(target=self._commit_all, name="engine-state", daemon=True)
            self._committer.start()
        except BaseException as error:
            self._release()
            if isinstance(error, sqlite3.Error):
                raise self._wrapped(error) from error
            if isinstance(error, UnicodeDecodeError):  # SQLite quotes a damaged text in its message
                raise self._unusable(*_REASONS[sqlite3.SQLITE_CORRUPT]) from error
            if isinstance(error, RuntimeError):
                raise self._unusable("no thread can be started", "raise the limit of threads") from error
            raise

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that only reads; it sees what was committed before, by any process."""
        self._check()
        with self._reading:
            try:
                return operation(self._reader)
            except sqlite3.Error as error:
                raise self._wrapped(error) from error

    def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction; its result is durable. An error undoes only its own writes."""
        self._check()
        job = _Job(operation)
        with self._handing_in:
            if self._closed:
                raise self._unusable(*_CLOSED)
            self._waiting.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    write_one = write

    def combined(self, _operation: object) -> None:
        """Nothing: writers share commits here, whatever they write."""

    def tidy(self, connection: Connection, _name: str, now: int, sweep: Sweep) -> None:
        """Sweep as part of this transaction, by a clock that cannot be set while the file is open."""
        sweep(connection, min(now, int(self._booted_at + clock())))

    def give_back(self, operation: Callable[[Connection], object]) -> None:
        """`write`: a fault of the file is one of its disk, and passes only with a new store."""
        self.write(operation)

    def moment(self, connection: Connection | None) -> int | None:
        """A number that is another one after each commit of another connection."""
        return None if connection is None else int(connection.execute("PRAGMA data_version").fetchone()[0])

    @property
    def failed(self) -> bool:
        """Whether an error ended this store for good: another one may be opened on the same file."""
        return self._failure is not None

    def close(self) -> None:
        """Finish submitted operations and close both connections.

        Does nothing in a forked process, which would drop the parent's locks.
        """
        if os.getpid() != self._owner:
            return
        with self._handing_in:
            self._closed = True
            self._waiting.put(None)
        self._committer.join()
        with self._reading:
            self._release()

    def _commit_all(self) -> None:
        """The loop of the committing thread, until the store is closed."""
        while (job := self._waiting.get()) is not None:
            jobs = [job]
            with suppress(Empty):
                while len(jobs) < self._limits.batch:
                    more = self._waiting.get_nowait()
                    if more is None:
                        self._waiting.put(None)  # nothing is handed in after it
                        break
                    jobs.append(more)
            self._commit(jobs)

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            self._begin()
            for job in jobs:
                self._run(job)
            self._writer.execute("COMMIT")
            self._demand_in_place()
        except Exception as error:  # noqa: BLE001  (every waiting caller gets it)
            with suppress(sqlite3.Error):
                self._writer.rollback()
            for job in jobs:
                job.error = self._wrapped(error) if isinstance(error, sqlite3.Error) else error
        finally:
            for job in jobs:
                job.done.release()

    def _begin(self) -> None:
        if self._failure is not None:
            raise self._unusable(*self._failure)
        deadline = time.monotonic() + self._limits.busy_seconds
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _run(self, job: _Job) -> None:
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.operation(self._writer)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, _OWN_FAULTS):
                raise
            job.error = self._wrapped(error) if isinstance(error, sqlite3.Error) else error
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def _connect(self) -> SqliteConnection:
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self._path.absolute()))}?{self._mode}",
            uri=True,
            timeout=self._limits.busy_seconds,
            isolation_level=None,  # transactions are begun and ended here
            check_same_thread=False,  # the locks see to that
            factory=SqliteConnection,
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        """Check that the file is one of ours and intact, before its content is used."""
        self._writer.execute("PRAGMA busy_timeout = 0")  # `_begin` waits
        if self._version(self._reader) < VERSION:
            self._upgrade()
        self._demand_whole(self._reader, VERSION)
        self._reader.execute("PRAGMA query_only = ON")

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of a file of ours, no later one than ours."""
        version: int = _pragma(connection, "user_version")
        if _pragma(connection, "application_id") != APPLICATION:
            raise self._unusable(*_REASONS[sqlite3.SQLITE_NOTADB])
        if not 1 <= version <= VERSION:
            raise self._unusable(
                f"it has version {version}, this engine knows version {VERSION}",
                "use the engine that wrote it, or move it aside",
            )
        return version

    def _write_again(self) -> None:
        """Copy the write-ahead log into the file and sync that: a log whose sync failed may not be on disk."""
        if self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise self._unusable(*_REASONS[sqlite3.SQLITE_BUSY])

    def _upgrade(self) -> None:
        """Upgrade a file of an earlier version in one transaction; its rows stay unchanged."""
        self._begin()
        try:
            version = self._version(self._writer)  # another process may have been first: then nothing is lacking
            self._demand_whole(self._writer, version)
            for statement in (*statements(version), f"PRAGMA user_version = {VERSION}"):
                self._writer.execute(statement)
            self._writer.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._writer.rollback()
            raise

    def _demand_whole(self, connection: sqlite3.Connection, version: int) -> None:
        with sqlite3.connect(":memory:") as reference:
            reference.executescript(";".join(statements(0, version)))
            intact = _schema(reference) == _schema(connection) and _pragma(connection, "journal_mode") == self._journal
        reference.close()
        size = _pragma(connection, "page_count") * _pragma(connection, "page_size")
        if intact and size <= self._limits.checked_bytes:
            intact = _pragma(connection, "quick_check(1)") == "ok"
        if not intact:
            raise self._unusable(*_REASONS[sqlite3.SQLITE_CORRUPT])

    def demand_open(self) -> None:
        """Raise StateError if this store cannot be used any more; whether the file is still there is not looked at."""
        if os.getpid() != self._owner:  # a fork shares the file's locks: two writers would break it
            raise self._unusable("it was opened in another process", "open a store in each process, after the fork")
        if self._closed:
            raise self._unusable(*_CLOSED)
        if self._failure is not None:
            raise self._unusable(*self._failure)

    def _check(self) -> None:
        self.demand_open()
        self._demand_in_place()

    def _demand_in_place(self) -> None:
        """Check that the file and its write-ahead log still have their names: commits to a removed file are lost."""
        if (identity(self._path, least=1), identity(self._wal)) != self._identity:
            raise self._unusable("the file was moved, replaced or emptied", "put it back, or start the engine again")

    def _wrapped(self, error: sqlite3.Error) -> StateError:
        code = _code(error)
        reason = _REASONS.get(code, ("SQLite refused", "start the engine again; if that does not help, report this"))
        if code in _FINAL:
            self._failure = reason
        return self._unusable(*reason)

    def _unusable(self, message: str, remedy: str) -> StateError:
        return StateError(f"the state cannot be used: {message}", remedy=remedy, where=Location(str(self._path)))

    def _release(self) -> None:
        for name in ("_reader", "_writer"):
            connection: sqlite3.Connection | None = getattr(self, name, None)
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()


def _create(path: Path) -> None:
    """Create an empty state file at this path. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        tables = ";".join(statements(0))
        connection.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; {tables}; COMMIT;"
        )
    finally:
        connection.close()


def _opening(path: Path) -> tuple[str, str]:
    """How SQLite opens the file, never making it anew, and the journal that it then reports.

    In a folder that cannot be written it is only read; where no write-ahead log is beside it, nobody has it open and
    it does not change, which SQLite cannot see by itself.
    """
    if os.access(path.parent, os.W_OK):
        return "mode=rw", "wal"
    return ("mode=ro", "wal") if Path(f"{path}-wal").exists() else ("immutable=1", "delete")


def _code(error: sqlite3.Error) -> int:
    """The primary result code of SQLite; 0 for an error of Python's module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()

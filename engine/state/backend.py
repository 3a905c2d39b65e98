"""What the parts of the store need of a database: SQLite in one file, or PostgreSQL for several engines.

Statements are written once, in what both understand: marks `?`, UPSERT, RETURNING, `coalesce` and CASE. A comment
`/* FOR UPDATE */` is a locking clause of PostgreSQL; SQLite has one writer at a time and needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Result(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement has written, or all runs of it together."""

    def fetchone(self) -> Any:
        """The next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """Every row that was not fetched yet."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside an operation."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Result:
        """Run one statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Result:
        """Run one statement for each row of values."""

    def lock(self, *names: str) -> None:
        """Wait until no other transaction has this lock; it is held until the transaction ends."""


Operation = Callable[[Connection], T]

Sweep = Callable[[Connection, int], None]
"""Removes some rows that are too old to matter at a time."""


class Backend(Protocol):
    """An open database; threads may share it. Every method raises StateError, never an error of a driver."""

    lag: float
    """Seconds for which a row that was read may be used although another process has changed it."""

    def read(self, operation: Operation[T], /) -> T:
        """Run an operation that only reads; it sees what was committed before, by any process."""

    def write(self, operation: Operation[T], /) -> T:
        """Run an operation in a transaction; its result is durable. An error undoes only its own writes."""

    def write_one(self, operation: Operation[T], /) -> T:
        """The same for an operation that writes by one statement alone: in PostgreSQL it needs one round trip."""

    def combined(
        self, operation: Callable[[Connection, Sequence[Any]], Sequence[Any]], /
    ) -> Callable[[Any], Any] | None:
        """A function that runs an operation for one item, with those of other threads; None where commits are shared.

        The operation writes by one statement and returns a result for each item.
        """

    def tidy(self, connection: Connection, name: str, now: int, sweep: Sweep, /) -> None:
        """Remove some rows that are too old to matter: in this transaction, or soon after it.

        Only what is that old at `now` and by the clock of the database, too: an engine whose clock is ahead removes
        nothing that others need.
        """

    def give_back(self, operation: Operation[object], /) -> None:
        """`write` for what undoes an operation that failed or had no effect; it runs again later where that may help.

        It runs after the operation that it undoes, also where that was cut off.
        """

    def moment(self, connection: Connection | None, /) -> int | None:
        """A number that is another one once rows that were read may have changed; None if that is unknown."""

    def demand_open(self) -> None:
        """Raise StateError if this database cannot be used, as far as known without asking it."""

    @property
    def failed(self) -> bool:
        """Whether an error ended it for good: another one may be opened in its place."""

    def close(self) -> None:
        """Finish submitted operations and close; no effect in a forked process."""

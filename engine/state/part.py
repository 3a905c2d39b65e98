"""The base of the store's parts: the open database, and rows as they are stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar, get_origin, get_type_hints

from engine.errors import StateError
from engine.state.backend import Backend, Connection, Operation
from engine.state.rows import StateLimits

RowT = TypeVar("RowT")
T = TypeVar("T")


class Part:
    """One part of the store, on a database that all parts share."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        self._database = database
        self._limits = limits

    def _change(self, statement: str, *values: object) -> None:
        """Run one statement in a transaction."""
        self._database.write_one(lambda connection: connection.execute(statement, values))

    def _withdraw(self, statement: str, *values: object) -> None:
        """Give back by one statement what an id of one decision has taken. Raises StateError."""
        self._database.give_back(lambda connection: connection.execute(statement, values))

    def _end(self, row: type[RowT], query: str, id_: str, statement: str, *values: object) -> RowT | None:
        """Run one statement about the row with this id, and return that row then, None if there is none."""

        def operation(connection: Connection) -> RowT | None:
            connection.execute(statement, (*values, storable(id_)))
            return find(connection, row, query, id_)

        return self._database.write(operation)

    def _found(self, query: str, *values: object) -> list[Any]:
        """The columns of each row that a query finds."""
        return self._database.read(lambda connection: connection.execute(query, values).fetchall())

    def _rows(self, row: type[RowT], query: str, *values: object) -> tuple[RowT, ...]:
        return tuple(made(row, *found) for found in self._found(query, *values))

    def _row(self, row: type[RowT], query: str, *values: object) -> RowT | None:
        """The first row that a query finds."""
        return next(iter(self._rows(row, query, *values)), None)

    def _tidy(self, connection: Connection, table: str, key: str, old: str, now: int, seconds: int = 0) -> None:
        """Remove some rows for which `old` holds, a condition on a time that is `seconds` before now."""

        def sweep(sweeping: Connection, at: int) -> None:
            remove_some(sweeping, table, key, old, (at - seconds, self._limits.sweep))

        self._database.tidy(connection, table, now, sweep)


class Recent(Generic[T]):
    """What every request reads and people change now and then: it is read again after `recent_seconds`.

    A change calls `changed` before it is answered. It returns when no process decides by an older value: each has read
    the new one or reads it before its next decision: an old value was read before the change, so it is too old after
    `recent_seconds` on every machine, whatever their clocks show. Threads may share it.
    """

    def __init__(self, database: Backend, limits: StateLimits, operation: Operation[T]) -> None:
        self._database, self._seconds, self._operation = database, limits.recent_seconds, operation
        self._read: tuple[float, T] | None = None

    def get(self) -> T:
        """The value as it was at most `recent_seconds` ago. Raises StateError."""
        now, read = clock(), self._read
        if read is not None and now - read[0] < self._seconds:
            self._database.demand_open()
            return read[1]
        self._read = None
        value = self._database.read(self._operation)
        self._read = now, value
        return value

    def at_hand(self) -> bool:
        """Whether the value can be had without asking the database."""
        read = self._read
        return read is not None and clock() - read[0] < self._seconds

    def changed(self) -> None:
        """Wait until every process has read the change, or reads it before its next decision."""
        self._read = None
        time.sleep(self._seconds)


def clock() -> float:
    """Seconds since this machine was started; also while it is suspended, unlike those of `time.monotonic`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def columns(row: type[Any]) -> str:
    """The columns of a row in the order of its fields, for a query."""
    return ", ".join(f'"{field.name}"' for field in fields(row))


def made(row: type[RowT], *found: Any) -> RowT:
    """A row from its columns, as `insert` has stored them. Raises StateError for a tuple that no engine wrote."""
    readers = _readers(row)  # type: ignore[arg-type]
    return row(*(read(value) for read, value in zip(readers, found, strict=True)))


@cache
def _readers(row: type[Any]) -> tuple[Callable[[Any], Any], ...]:
    types = get_type_hints(row)
    return tuple(_reader(types[field.name]) for field in fields(row))


def _reader(type_: Any) -> Callable[[Any], Any]:
    if get_origin(type_) is tuple:
        return _names
    return bool if type_ is bool else lambda value: value


def find(connection: Connection, row: type[RowT], query: str, id_: str) -> RowT | None:
    """The row with this id, which may be any text; None if there is none."""
    found = connection.execute(query, (storable(id_),)).fetchone()
    return None if found is None else made(row, *found)


def remove_some(connection: Connection, table: str, key: str, old: str, values: tuple[object, ...]) -> None:
    """Remove rows for which a condition holds; the last value is how many at most."""
    some = f"SELECT {key} FROM {table} WHERE {old} LIMIT ? /* FOR UPDATE SKIP LOCKED */"  # noqa: S608
    connection.execute(f"DELETE FROM {table} WHERE ({key}) IN ({some})", values)  # noqa: S608


def storable(id_: str) -> str:
    """Any text as a database compares it; one that cannot be stored is the id of nothing."""
    return id_.encode("utf-8", "replace").decode().replace("\0", "?")


def insert(connection: Connection, table: str, row: Any) -> None:
    """Insert a row under the names of its fields, but for those that are None; a tuple is stored as a JSON list."""
    connection.execute(*_insertion(table, row))


def insert_new(connection: Connection, table: str, row: Any) -> bool:
    """Insert a row unless its id is taken; returns whether it was inserted."""
    statement, values = _insertion(table, row)
    return connection.execute(f"{statement} ON CONFLICT (id) DO NOTHING RETURNING id", values).fetchone() is not None


def _insertion(table: str, row: Any) -> tuple[str, list[Any]]:
    found = {field.name: value for field in fields(row) if (value := getattr(row, field.name)) is not None}
    named, marks = ", ".join(f'"{name}"' for name in found), ", ".join("?" * len(found))
    statement = f"INSERT INTO {table} ({named}) VALUES ({marks})"  # noqa: S608
    return statement, [json.dumps(value) if isinstance(value, tuple) else value for value in found.values()]


def _names(stored: str) -> tuple[str, ...]:
    """Stored names, a JSON list."""
    try:
        found = json.loads(stored)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise StateError("the state cannot be used: it is damaged", remedy="restore it from a backup, or move it aside")
    return tuple(found)

"""The base of the store's parts: the open database and checks of arguments."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.errors import StateError
from engine.state.backend import Backend, Connection, Operation
from engine.state.rows import LONGEST_TEXT, StateLimits

RowT = TypeVar("RowT")
T = TypeVar("T")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


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

        def operation(connection: Connection) -> None:
            connection.execute(statement, values)

        self._database.give_back(operation)

    def _rows(self, make: Callable[..., RowT], query: str, *values: object) -> tuple[RowT, ...]:
        """The result of `make` for the columns of each found row."""
        return self._database.read(lambda connection: tuple(make(*row) for row in connection.execute(query, values)))


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


def find(connection: Connection, make: Callable[..., RowT], query: str, id_: str) -> RowT | None:
    """The row with this id, which may be any text; None if there is none."""
    found = connection.execute(query, (storable(id_),)).fetchone()
    return None if found is None else make(*found)


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


def whole(name: str, value: object) -> int:
    """An amount or a time: an integer, no bool, from 0 to 2^53. Raises ValueError."""
    if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
        raise ValueError(f"{name} is an integer from 0 to 2^53")
    return value


def text(name: str, value: object, *, empty: bool = False) -> str:
    """A name, key or id: of limited length, with a UTF-8 form, without the NUL that ends a text. Raises ValueError."""
    if type(value) is not str or not (0 if empty else 1) <= len(value) <= LONGEST_TEXT or "\0" in value:
        raise ValueError(f"{name} is text of at most {LONGEST_TEXT} characters, without NUL")
    return encodable(name, value)


def uuid_text(name: str, value: object) -> str:
    """A UUID in canonical form, lower case with hyphens (RFC 9562). Raises ValueError."""
    if type(value) is not str or _UUID.fullmatch(value) is None:
        raise ValueError(f"{name} is a UUID in lower case")
    return value


def sha256_text(name: str, value: object) -> str:
    """A SHA-256 in lower-case hex. Raises ValueError."""
    if type(value) is not str or _SHA256.fullmatch(value) is None:
        raise ValueError(f"{name} is a SHA-256, 64 hex digits in lower case")
    return value


def encodable(name: str, value: object) -> str:
    """Text of any length that has a UTF-8 form. Raises ValueError."""
    if type(value) is not str or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} is text without half surrogate pairs")
    return value


def names(stored: str) -> tuple[str, ...]:
    """Stored names, a JSON list. Raises StateError for anything else: no engine wrote it."""
    try:
        found = json.loads(stored)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise StateError("the state cannot be used: it is damaged", remedy="restore it from a backup, or move it aside")
    return tuple(found)

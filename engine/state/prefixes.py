"""Approved prefixes: commands that a principal may run in one folder without being asked again.

Whether one counts, being neither revoked nor expired, is for policy to say. Rows are evidence and stay for ever.
"""

# ruff: noqa: A002, D102 - the names and words of the interface

from __future__ import annotations

import json
import sqlite3
import uuid
from typing import Any

from engine.state.part import Part, names, text, whole
from engine.state.store import MOST_WORDS, IdTakenError, NewPrefix, PrefixRow

_COLUMNS = "id, principal, cwd, tool, words, approver, created_at, expires_at, revoked_at"
_ONE = f"SELECT {_COLUMNS} FROM prefixes WHERE id = ?"  # noqa: S608
_NEWEST = (
    f"SELECT {_COLUMNS} FROM prefixes WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR cwd = ?2)"  # noqa: S608
    " ORDER BY number DESC LIMIT ?3"
)
_BOUND = (
    f"SELECT {_COLUMNS} FROM prefixes WHERE principal = ? AND cwd = ?"  # noqa: S608
    " ORDER BY number DESC LIMIT ?"
)


class Prefixes(Part):
    """The part of the store that remembers which commands were approved for good."""

    def approve_prefix(self, new: NewPrefix, id: str | None = None) -> PrefixRow:
        _check(new)

        def operation(connection: sqlite3.Connection) -> PrefixRow:
            id_ = id or uuid.uuid4().hex
            if connection.execute(_ONE, (id_,)).fetchone() is not None:
                raise IdTakenError("there is an approved prefix of this id already", remedy="use a new id")
            connection.execute(
                "INSERT INTO prefixes (id, principal, cwd, tool, words, approver, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(id_, new.principal, new.cwd, new.tool, json.dumps(new.words)),
                    *(new.approver, new.created_at, new.expires_at),
                ),
            )
            return _row(connection.execute(_ONE, (id_,)).fetchone())

        return self._database.write(operation)

    def prefixes(self, principal: str | None, cwd: str | None, limit: int) -> tuple[PrefixRow, ...]:
        whole("limit", limit)
        for name, value in (("principal", principal), ("cwd", cwd)):
            if value is not None:
                text(name, value)
        query = _NEWEST if principal is None or cwd is None else _BOUND  # the second one has an index
        return self._database.read(
            lambda connection: tuple(map(_row, connection.execute(query, (principal, cwd, limit))))
        )

    def prefix(self, id: str) -> PrefixRow | None:
        known = id.encode("utf-8", "replace").decode()
        found = self._database.read(lambda connection: connection.execute(_ONE, (known,)).fetchone())
        return None if found is None else _row(found)

    def revoke_prefix(self, id: str, now: int) -> PrefixRow | None:
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> PrefixRow | None:
            known = id.encode("utf-8", "replace").decode()
            connection.execute("UPDATE prefixes SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, known))
            found = connection.execute(_ONE, (known,)).fetchone()
            return None if found is None else _row(found)

        return self._database.write(operation)


def _check(new: NewPrefix) -> None:
    for name in ("principal", "cwd", "tool", "approver"):
        text(name, getattr(new, name))
    if type(new.words) is not tuple or not 1 <= len(new.words) <= MOST_WORDS:
        raise ValueError(f"a prefix has 1 to {MOST_WORDS} words")
    for word in new.words:
        text("word", word)
    if whole("created_at", new.created_at) >= whole("expires_at", new.expires_at):
        raise ValueError("a prefix expires after it is approved")


def _row(values: tuple[Any, ...]) -> PrefixRow:
    id_, principal, cwd, tool, words, *rest = values
    return PrefixRow(id_, principal, cwd, tool, names(words), *rest)

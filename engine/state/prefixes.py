"""Approved command prefixes: commands that a principal may run in one folder without another approval.

The policy decides whether one counts, being neither revoked nor expired. Rows are evidence and stay for ever.
"""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

from typing import Any

from engine.state.backend import Connection
from engine.state.part import Part, columns, find, insert_new, names, storable, text, whole
from engine.state.rows import MOST_WORDS, IdTakenError, PrefixRow

_ALL = f"SELECT {columns(PrefixRow)} FROM prefixes"  # noqa: S608
_NEWEST = " WHERE principal = coalesce(?, principal) AND cwd = coalesce(?, cwd) ORDER BY number DESC LIMIT ?"
_BOUND = " WHERE principal = ? AND cwd = ? ORDER BY number DESC LIMIT ?"


class Prefixes(Part):
    """The part of the store for approved command prefixes."""

    def approve_prefix(self, new: PrefixRow) -> PrefixRow:
        """Store an approved prefix; an equal one of another id is another row. Raises IdTakenError."""
        _check(new)

        def operation(connection: Connection) -> PrefixRow:
            if not insert_new(connection, "prefixes", new):
                raise IdTakenError("an approved prefix with this id already exists", remedy="use a new id")
            return new

        return self._database.write(operation)

    def prefixes(self, principal: str | None, cwd: str | None, limit: int) -> tuple[PrefixRow, ...]:
        """The newest prefixes of a principal and a folder (None: any), including revoked and expired ones."""
        whole("limit", limit)
        for name, value in (("principal", principal), ("cwd", cwd)):
            if value is not None:
                text(name, value)
        query = _NEWEST if principal is None or cwd is None else _BOUND  # the second one has an index
        return self._rows(_row, _ALL + query, principal, cwd, limit)

    def prefix(self, id: str) -> PrefixRow | None:
        """The approved prefix with this id, in any state."""
        return self._database.read(lambda connection: _find(connection, id))

    def revoke_prefix(self, id: str, now: int) -> PrefixRow | None:
        """Revoke an approved prefix and return its row, None if it is unknown. Idempotent."""
        whole("now", now)

        def operation(connection: Connection) -> PrefixRow | None:
            revoke = "UPDATE prefixes SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
            connection.execute(revoke, (now, storable(id)))
            return _find(connection, id)

        return self._database.write(operation)


def _check(new: PrefixRow) -> None:
    for name in ("principal", "cwd", "tool", "approver"):
        text(name, getattr(new, name))
    if type(new.words) is not tuple or not 1 <= len(new.words) <= MOST_WORDS:
        raise ValueError(f"a prefix has 1 to {MOST_WORDS} words")
    for word in new.words:
        text("word", word)
    if whole("created_at", new.created_at) >= whole("expires_at", new.expires_at):
        raise ValueError("a prefix expires after it is approved")


def _row(principal: str, cwd: str, tool: str, words: str, *rest: Any) -> PrefixRow:
    return PrefixRow(principal, cwd, tool, names(words), *rest)


def _find(connection: Connection, id_: str) -> PrefixRow | None:
    return find(connection, _row, f"{_ALL} WHERE id = ?", id_)

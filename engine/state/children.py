"""Children: the conversations of subagents, whose they are, and how they ended.

Rows are evidence and stay for ever: whose child it is, is asked for as long as somebody can name it.
"""

# ruff: noqa: A002, D102 - the names and words of the interface

from __future__ import annotations

import sqlite3

from engine.state.part import Part, text, uuid_text, whole
from engine.state.store import ChildRow, ChildState, NewChild

_ENDS = ("ended", "cancelled", "killed")
_COLUMNS = "id, parent, state, created_at, ended_at"
_ONE = f"SELECT {_COLUMNS} FROM children WHERE id = ?"  # noqa: S608
_NEWEST = f"SELECT {_COLUMNS} FROM children ORDER BY number DESC LIMIT ?"  # noqa: S608
_NEWEST_OF = f"SELECT {_COLUMNS} FROM children WHERE parent = ? ORDER BY number DESC LIMIT ?"  # noqa: S608


class Children(Part):
    """The part of the store that knows whose child a conversation is."""

    def add_child(self, new: NewChild) -> ChildRow:
        uuid_text("id", new.id)
        text("parent", new.parent)
        whole("created_at", new.created_at)

        def operation(connection: sqlite3.Connection) -> ChildRow:
            connection.execute(
                "INSERT INTO children (id, parent, state, created_at) VALUES (?, ?, 'running', ?)"
                " ON CONFLICT (id) DO NOTHING",
                (new.id, new.parent, new.created_at),
            )
            return ChildRow(*connection.execute(_ONE, (new.id,)).fetchone())

        return self._database.write(operation)

    def child(self, id: str) -> ChildRow | None:
        return self._database.read(lambda connection: _find(connection, id))

    def end_child(self, id: str, state: ChildState, now: int) -> ChildRow | None:
        if state not in _ENDS:
            raise ValueError(f"a child ends in one of the states {', '.join(_ENDS)}")
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> ChildRow | None:
            found = _find(connection, id)
            if found is None or found.state != "running":
                return found
            connection.execute("UPDATE children SET state = ?, ended_at = ? WHERE id = ?", (state, now, found.id))
            return ChildRow(found.id, found.parent, state, found.created_at, now)

        return self._database.write(operation)

    def children(self, parent: str | None, limit: int) -> tuple[ChildRow, ...]:
        whole("limit", limit)
        query, values = (_NEWEST, (limit,)) if parent is None else (_NEWEST_OF, (text("parent", parent), limit))
        return self._database.read(
            lambda connection: tuple(ChildRow(*found) for found in connection.execute(query, values))
        )


def _find(connection: sqlite3.Connection, id_: str) -> ChildRow | None:
    found = connection.execute(_ONE, (id_.encode("utf-8", "replace").decode(),)).fetchone()
    return None if found is None else ChildRow(*found)

"""Children: the conversations of subagents, with owner and final state.

Rows are evidence and stay for ever: the parent of a child must be known as long as requests can name the child.
"""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.part import Part, columns, find, insert_new, storable, text, uuid_text, whole
from engine.state.rows import ChildRow, ChildState

_ENDS = ("ended", "cancelled", "killed")
_ALL = f"SELECT {columns(ChildRow)} FROM children"  # noqa: S608


class Children(Part):
    """The part of the store for children."""

    def add_child(self, new: ChildRow) -> ChildRow:
        """Store a new, running child; for a known id, return the present row, of any parent."""
        uuid_text("id", new.id)
        text("parent", new.parent)
        text("principal", new.principal, empty=True)
        whole("created_at", new.created_at)
        if new.state != "running":
            raise ValueError("a new child must be in state running")

        def operation(connection: Connection) -> ChildRow:
            if insert_new(connection, "children", new):
                return new
            return _find(connection, new.id) or new

        return self._database.write(operation)

    def child(self, id: str) -> ChildRow | None:
        """The child with this id, in any state."""
        return self._database.read(lambda connection: _find(connection, id))

    def end_child(self, id: str, state: ChildState, now: int) -> ChildRow | None:
        """Store the end of a running child and return its row, None if it is unknown. The first end is final."""
        if state not in _ENDS:
            raise ValueError(f"a child ends in one of the states {', '.join(_ENDS)}")
        whole("now", now)

        def operation(connection: Connection) -> ChildRow | None:
            end = "UPDATE children SET state = ?, ended_at = ? WHERE id = ? AND state = 'running'"
            connection.execute(end, (state, now, storable(id)))
            return _find(connection, id)

        return self._database.write(operation)

    def children(self, parent: str | None, limit: int) -> tuple[ChildRow, ...]:
        """The newest children of a conversation, or of all; at most `limit`."""
        whole("limit", limit)
        if parent is None:
            return self._rows(ChildRow, f"{_ALL} ORDER BY number DESC LIMIT ?", limit)
        return self._rows(
            ChildRow, f"{_ALL} WHERE parent = ? ORDER BY number DESC LIMIT ?", text("parent", parent), limit
        )


def _find(connection: Connection, id_: str) -> ChildRow | None:
    return find(connection, ChildRow, f"{_ALL} WHERE id = ?", id_)

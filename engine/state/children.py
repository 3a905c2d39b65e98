"""Children: the conversations of subagents, with owner and final state.

Rows are evidence and stay for ever: the parent of a child must be known as long as requests can name the child.
"""

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.checks import demand_storable, text, whole
from engine.state.part import Part, columns, find, insert_new, storable
from engine.state.rows import ChildRow, ChildState

_ENDS = ("ended", "cancelled", "killed")
_ALL = f"SELECT {columns(ChildRow)} FROM children"  # noqa: S608
_ONE = f"{_ALL} WHERE id = ?"


class Children(Part):
    """The part of the store for children."""

    def add_child(self, new: ChildRow) -> ChildRow:
        """Store a new, running child; for a known id, return the present row, of any parent."""
        demand_storable(new)
        if new.state != "running":
            raise ValueError("a new child must be in state running")

        def operation(connection: Connection) -> ChildRow:
            if insert_new(connection, "children", new):
                return new
            return find(connection, ChildRow, _ONE, new.id) or new

        return self._database.write(operation)

    def child(self, id: str) -> ChildRow | None:
        """The child with this id, in any state."""
        return self._row(ChildRow, _ONE, storable(id))

    def end_child(self, id: str, state: ChildState, now: int) -> ChildRow | None:
        """Store the end of a running child and return its row, None if it is unknown. The first end is final."""
        if state not in _ENDS:
            raise ValueError(f"a child ends in one of the states {', '.join(_ENDS)}")
        end = "UPDATE children SET state = ?, ended_at = ? WHERE id = ? AND state = 'running'"
        return self._end(ChildRow, _ONE, id, end, state, whole("now", now))

    def children(self, parent: str | None, limit: int) -> tuple[ChildRow, ...]:
        """The newest children of a conversation, or of all; at most `limit`."""
        whole("limit", limit)
        if parent is None:
            return self._rows(ChildRow, f"{_ALL} ORDER BY number DESC LIMIT ?", limit)
        return self._rows(
            ChildRow, f"{_ALL} WHERE parent = ? ORDER BY number DESC LIMIT ?", text("parent", parent), limit
        )

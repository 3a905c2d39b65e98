"""Entries of agents' memory. Which may be written and who reads them is decided at point `memory`."""

from __future__ import annotations

from engine.state.checks import demand_storable, text, whole
from engine.state.part import Part, columns, insert, storable
from engine.state.rows import MemoryRow

_ALL = f"SELECT {columns(MemoryRow)} FROM memories"  # noqa: S608


class Memories(Part):
    """The part of the store for entries of memory."""

    def add_memory(self, new: MemoryRow) -> None:
        """Store an entry."""
        demand_storable(new)
        self._database.write(lambda connection: insert(connection, "memories", new))

    def memory(self, id: str) -> MemoryRow | None:
        """The entry with this id, of any owner."""
        return self._row(MemoryRow, f"{_ALL} WHERE id = ?", storable(id))

    def memories(self, owner: str, limit: int) -> tuple[MemoryRow, ...]:
        """The newest entries of an owner, the newest one first."""
        query = f"{_ALL} WHERE owner = ? ORDER BY number DESC LIMIT ?"
        return self._rows(MemoryRow, query, text("owner", owner), whole("limit", limit))

    def forget_memory(self, id: str) -> None:
        """Remove an entry; no effect if there is none."""
        self._change("DELETE FROM memories WHERE id = ?", text("id", id))

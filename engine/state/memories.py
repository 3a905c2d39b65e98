"""Entries of agents' memory. Which may be written and who reads them is decided at point `memory`."""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

from engine.state.part import Part, columns, encodable, insert, sha256_text, storable, text, whole
from engine.state.rows import MemoryRow

_ALL = f"SELECT {columns(MemoryRow)} FROM memories"  # noqa: S608


class Memories(Part):
    """The part of the store for entries of memory."""

    def add_memory(self, new: MemoryRow) -> None:
        """Store an entry."""
        for name in ("id", "owner", "sensitivity", "origin", "origin_name", "decision_id"):
            text(name, getattr(new, name))
        encodable("text", new.text)
        sha256_text("sha256", new.sha256)
        whole("created_at", new.created_at)
        self._database.write(lambda connection: insert(connection, "memories", new))

    def memory(self, id: str) -> MemoryRow | None:
        """The entry with this id, of any owner."""
        found = self._rows(MemoryRow, f"{_ALL} WHERE id = ?", storable(id))
        return found[0] if found else None

    def memories(self, owner: str, limit: int) -> tuple[MemoryRow, ...]:
        """The newest entries of an owner, the newest one first."""
        query = f"{_ALL} WHERE owner = ? ORDER BY number DESC LIMIT ?"
        return self._rows(MemoryRow, query, text("owner", owner), whole("limit", limit))

    def forget_memory(self, id: str) -> None:
        """Remove an entry; no effect if there is none."""
        self._change("DELETE FROM memories WHERE id = ?", text("id", id))

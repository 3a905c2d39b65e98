"""Approved command prefixes: commands that a principal may run in one folder without another approval.

The policy decides whether one counts, being neither revoked nor expired. Rows are evidence and stay for ever.
"""

from __future__ import annotations

from engine.state.backend import Connection
from engine.state.checks import demand_storable, text, whole
from engine.state.part import Part, columns, insert_new, storable
from engine.state.rows import MOST_WORDS, IdTakenError, PrefixRow

_ALL = f"SELECT {columns(PrefixRow)} FROM prefixes"  # noqa: S608
_ONE = f"{_ALL} WHERE id = ?"
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
        return self._rows(PrefixRow, _ALL + query, principal, cwd, limit)

    def prefix(self, id: str) -> PrefixRow | None:
        """The approved prefix with this id, in any state."""
        return self._row(PrefixRow, _ONE, storable(id))

    def revoke_prefix(self, id: str, now: int) -> PrefixRow | None:
        """Revoke an approved prefix and return its row, None if it is unknown. Idempotent."""
        revoke = "UPDATE prefixes SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        return self._end(PrefixRow, _ONE, id, revoke, whole("now", now))


def _check(new: PrefixRow) -> None:
    demand_storable(new)
    if type(new.words) is not tuple or not 1 <= len(new.words) <= MOST_WORDS:
        raise ValueError(f"a prefix has 1 to {MOST_WORDS} words")
    if new.created_at >= new.expires_at:
        raise ValueError("a prefix expires after it is approved")

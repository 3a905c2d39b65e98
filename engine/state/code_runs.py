"""Runs of generated code that have ended, with their results, until each expires."""

from __future__ import annotations

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.state.backend import Connection
from engine.state.checks import demand_storable, whole
from engine.state.part import Part, columns, insert, storable
from engine.state.rows import CodeRunRow

_SOME = f"SELECT {columns(CodeRunRow)} FROM code_runs"  # noqa: S608


class CodeRuns(Part):
    """The part of the store for runs of generated code."""

    def add_code_run(self, new: CodeRunRow) -> None:
        """Keep the end of a run, and remove some that have expired."""
        demand_storable(new)

        def operation(connection: Connection) -> None:
            self._tidy(connection, "code_runs", "number", "expires_at <= ?", new.ended_at)
            insert(connection, "code_runs", new)

        self._database.write(operation)

    def code_runs(self, owner: str | None, before: int | None, now: int, limit: int) -> tuple[CodeRunRow, ...]:
        """The newest runs of an owner, or of all, that have not expired; with `before`, those with a lower number."""
        query = " number < coalesce(?, ?) AND expires_at > ? ORDER BY number DESC LIMIT ?"
        values = (before, MAX_SAFE_INTEGER, whole("now", now), whole("limit", limit))
        if owner is None:
            return self._rows(CodeRunRow, f"{_SOME} WHERE{query}", *values)
        return self._rows(CodeRunRow, f"{_SOME} WHERE owner = ? AND{query}", owner, *values)

    def code_run(self, id: str, owner: str | None, now: int) -> CodeRunRow | None:
        """The newest run with this id, of one owner or of any; None if it is unknown or has expired."""
        return self._row(
            CodeRunRow,
            f"{_SOME} WHERE id = ? AND owner = coalesce(?, owner) AND expires_at > ? ORDER BY number DESC LIMIT 1",
            storable(id),
            owner,
            whole("now", now),
        )

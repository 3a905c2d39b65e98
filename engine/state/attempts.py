"""What generated code was tried and checked: attempts at a task (C63), checks of artifacts (A01, A02).

What has ended is evidence and stays for ever: the same program must not be tried twice. So do the checks, which the
engine itself performed.
"""

from __future__ import annotations

from typing import Literal

from engine.state.backend import Connection
from engine.state.checks import demand_storable, sha256_text, text, uuid_text, whole
from engine.state.part import Part, columns, insert, insert_new
from engine.state.rows import ArtifactCheckRow, AttemptRow

_EARLIER = (
    f"SELECT {columns(AttemptRow)} FROM attempts WHERE principal = ? AND task = ?"  # noqa: S608
    " AND number < coalesce((SELECT number FROM attempts WHERE id = ? AND principal = ? AND task = ?), ?)"
    " ORDER BY number DESC LIMIT ?"
)
_ANY = 2**62


class Attempts(Part):
    """The part of the store for attempts."""

    def begin_attempt(self, new: AttemptRow) -> None:
        """Store an attempt at a task before its decision. Idempotent."""
        demand_storable(new)
        if new.state != "begun":
            raise ValueError("a new attempt must be in progress")

        def operation(connection: Connection) -> None:
            connection.lock("attempts", new.principal, new.task)  # numbers are given in the order of the commits
            insert_new(connection, "attempts", new)

        self._database.write(operation)

    def end_attempt(self, id: str, state: Literal["ok", "failed"], now: int) -> None:
        """Store the result of an attempt; the first one is final."""
        uuid_text("id", id)
        whole("now", now)
        if state not in {"ok", "failed"}:
            raise ValueError("an attempt must end as ok or failed")
        self._change("UPDATE attempts SET state = ?, ended_at = ? WHERE id = ? AND state = 'begun'", state, now, id)

    def withdraw_attempt(self, id: str) -> None:
        """Remove an attempt without effect; one that has ended stays."""
        self._withdraw("DELETE FROM attempts WHERE id = ? AND state = 'begun'", uuid_text("id", id))

    def attempts(self, principal: str, task: str, before: str | None, limit: int) -> tuple[AttemptRow, ...]:
        """The newest attempts of a principal at a task; if `before` is one of them, only earlier ones."""
        text("principal", principal, empty=True)
        whose = principal, text("task", task)
        return self._rows(AttemptRow, _EARLIER, *whose, before, *whose, _ANY, whole("limit", limit))


_NAMES = ("sandbox", "validation")
_NEWEST = (
    f"SELECT {columns(ArtifactCheckRow)} FROM artifact_checks WHERE sha256 = ?"  # noqa: S608
    " ORDER BY number DESC LIMIT ?"
)


class ArtifactChecks(Part):
    """The part of the store for checks of artifacts."""

    def add_artifact_check(self, new: ArtifactCheckRow) -> None:
        """Store the result of a check of an artifact."""
        demand_storable(new)
        if new.name not in _NAMES or type(new.passed) is not bool:
            raise ValueError(f"a check is one of {', '.join(_NAMES)}, and passed or not")
        self._database.write(lambda connection: insert(connection, "artifact_checks", new))

    def artifact_checks(self, sha256: str, limit: int) -> tuple[ArtifactCheckRow, ...]:
        """The newest checks of an artifact."""
        return self._rows(ArtifactCheckRow, _NEWEST, sha256_text("sha256", sha256), whole("limit", limit))

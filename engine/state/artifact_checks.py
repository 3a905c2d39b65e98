"""Checks of generated artifacts: what the engine itself saw of each, by digest (A01, A02).

Rows are evidence and stay for ever.
"""

# ruff: noqa: D102 - the words of the interface

from __future__ import annotations

import sqlite3

from engine.state.part import Part, sha256_text, text, whole
from engine.state.store import ArtifactCheckRow, NewArtifactCheck

_NAMES = ("sandbox", "validation")


class ArtifactChecks(Part):
    """The part of the store that knows which checks an artifact has passed."""

    def add_artifact_check(self, new: NewArtifactCheck) -> None:
        sha256_text("sha256", new.sha256)
        if new.name not in _NAMES or type(new.passed) is not bool:
            raise ValueError(f"a check is one of {', '.join(_NAMES)}, and passed or not")
        text("ran_in", new.ran_in)
        text("decision_id", new.decision_id)
        whole("made_at", new.made_at)
        self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO artifact_checks (sha256, name, passed, ran_in, decision_id, made_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (new.sha256, new.name, int(new.passed), new.ran_in, new.decision_id, new.made_at),
            )
        )

    def artifact_checks(self, sha256: str, limit: int) -> tuple[ArtifactCheckRow, ...]:
        sha256_text("sha256", sha256)
        whole("limit", limit)

        def operation(connection: sqlite3.Connection) -> tuple[ArtifactCheckRow, ...]:
            found = connection.execute(
                "SELECT number, name, passed, ran_in, decision_id, made_at FROM artifact_checks WHERE sha256 = ?"
                " ORDER BY number DESC LIMIT ?",
                (sha256, limit),
            )
            return tuple(ArtifactCheckRow(number, name, passed == 1, *rest) for number, name, passed, *rest in found)

        return self._database.read(operation)

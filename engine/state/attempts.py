"""Attempts: which programs were tried for a task, and how each try ended (C63).

What has ended is evidence and stays for ever: the same program must not be tried twice.
"""

# ruff: noqa: A002, D102 - the names and words of the interface

from __future__ import annotations

import sqlite3
from typing import Literal

from engine.state.part import Part, sha256_text, text, uuid_text, whole
from engine.state.store import AttemptRow, NewAttempt

_EARLIER = (
    "SELECT id, code_sha256, state, created_at, ended_at FROM attempts WHERE principal = ?1 AND task = ?2"
    " AND number < ifnull((SELECT number FROM attempts WHERE id = ?3 AND principal = ?1 AND task = ?2), ?4)"
    " ORDER BY number DESC LIMIT ?5"
)
_ANY = 2**62


class Attempts(Part):
    """The part of the store that knows what was tried for a task."""

    def begin_attempt(self, new: NewAttempt) -> None:
        uuid_text("id", new.id)
        text("principal", new.principal, empty=True)
        text("task", new.task)
        sha256_text("code_sha256", new.code_sha256)
        whole("created_at", new.created_at)
        self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO attempts (id, principal, task, code_sha256, state, created_at)"
                " VALUES (?, ?, ?, ?, 'begun', ?) ON CONFLICT (id) DO NOTHING",
                (new.id, new.principal, new.task, new.code_sha256, new.created_at),
            )
        )

    def end_attempt(self, id: str, state: Literal["ok", "failed"], now: int) -> None:
        uuid_text("id", id)
        whole("now", now)
        if state not in {"ok", "failed"}:
            raise ValueError("an attempt ends in one of the states ok, failed")
        self._database.write(
            lambda connection: connection.execute(
                "UPDATE attempts SET state = ?, ended_at = ? WHERE id = ? AND state = 'begun'", (state, now, id)
            )
        )

    def withdraw_attempt(self, id: str) -> None:
        uuid_text("id", id)
        self._database.write(
            lambda connection: connection.execute("DELETE FROM attempts WHERE id = ? AND state = 'begun'", (id,))
        )

    def attempts(self, principal: str, task: str, before: str | None, limit: int) -> tuple[AttemptRow, ...]:
        text("principal", principal, empty=True)
        text("task", task)
        whole("limit", limit)

        def operation(connection: sqlite3.Connection) -> tuple[AttemptRow, ...]:
            found = connection.execute(_EARLIER, (principal, task, before, _ANY, limit))
            return tuple(AttemptRow(*row) for row in found)

        return self._database.read(operation)

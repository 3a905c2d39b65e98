"""Idempotency keys: the first request runs, repetitions get its answer, nothing runs twice.

A request whose engine ended in between may have had its effect. So its key stays `pending` and refuses
repetitions until it expires; it is never quietly run again.
"""

from __future__ import annotations

import secrets
import sqlite3

from engine.errors import StateError
from engine.state.database import Database
from engine.state.part import Part, encodable, text, whole
from engine.state.rows import Begun, StateLimits


class Idempotency(Part):
    """The part of the store for idempotency keys."""

    def __init__(self, database: Database, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._self = secrets.token_hex(16)
        """Who began a request: only this open store may finish or abandon it."""

    def begin(self, scope: str, key: str, body: str, now: int) -> Begun:
        """Take an idempotency key within a scope, for a body with this digest."""
        for name, value in (("scope", scope), ("key", key), ("body", body)):
            text(name, value)
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> Begun:
            _sweep(connection, now - self._limits.idempotency_seconds, self._limits.sweep)
            connection.execute(
                "DELETE FROM idempotency WHERE scope = ? AND key = ? AND begun_at <= ?",
                (scope, key, now - self._limits.idempotency_seconds),
            )
            found = connection.execute(
                'SELECT body, answer, rules, "values" FROM idempotency WHERE scope = ? AND key = ?', (scope, key)
            ).fetchone()
            if found is None:
                connection.execute(
                    "INSERT INTO idempotency (scope, key, body, owner, begun_at) VALUES (?, ?, ?, ?, ?)",
                    (scope, key, body, self._self, now),
                )
                return Begun("new")
            known, answer, rules, values = found
            if known != body:
                return Begun("conflict")
            return Begun("pending") if answer is None else Begun("done", answer, rules, values)

        return self._database.write(operation)

    def finish(self, scope: str, key: str, answer: str, rules: str, values: str) -> None:
        """Store the answer to a request that this store began, and its policy revisions."""
        encodable("answer", answer)
        text("rules", rules)
        text("values", values)

        def operation(connection: sqlite3.Connection) -> None:
            done = connection.execute(
                'UPDATE idempotency SET answer = ?, rules = ?, "values" = ?'
                " WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL",
                (answer, rules, values, scope, key, self._self),
            )
            if done.rowcount != 1:
                raise StateError(
                    "the request was not started under this idempotency key",
                    remedy="send it again with another idempotency key",
                )

        self._database.write(operation)

    def abandon(self, scope: str, key: str) -> None:
        """Free the key of a request that this store began and that has had no effect."""
        self._change(
            "DELETE FROM idempotency WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL",
            scope,
            key,
            self._self,
        )


def _sweep(connection: sqlite3.Connection, before: int, limit: int) -> None:
    connection.execute(
        "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency WHERE begun_at <= ? LIMIT ?)",
        (before, limit),
    )

"""Idempotency keys: the first request runs, repetitions get its answer, nothing runs twice.

A request whose engine ended in between may have had its effect. So its key stays `pending` and refuses
repetitions until it expires; it is never quietly run again.
"""

from __future__ import annotations

import secrets

from engine.errors import StateError
from engine.state.backend import Backend, Connection
from engine.state.part import Part, encodable, text, whole
from engine.state.rows import Begun, StateLimits

_TAKE = (
    "INSERT INTO idempotency (scope, key, body, owner, begun_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (scope, key) DO UPDATE SET body = excluded.body, owner = excluded.owner,"
    ' begun_at = excluded.begun_at, answer = NULL, rules = NULL, "values" = NULL'
    " WHERE idempotency.begun_at <= ? RETURNING key"
)
"""Take a key that is free or has expired."""

_KNOWN = 'SELECT body, answer, rules, "values" FROM idempotency WHERE scope = ? AND key = ?'


class Idempotency(Part):
    """The part of the store for idempotency keys."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._self = secrets.token_hex(16)
        """Who began a request: only this open store may finish or abandon it."""

    def begin(self, scope: str, key: str, body: str, now: int) -> Begun:
        """Take an idempotency key within a scope, for a body with this digest."""
        for name, value in (("scope", scope), ("key", key), ("body", body)):
            text(name, value)
        whole("now", now)

        expired, limit = now - self._limits.idempotency_seconds, self._limits.sweep

        def operation(connection: Connection) -> Begun:
            self._database.tidy(connection, "idempotency", lambda sweeping: _sweep(sweeping, expired, limit))
            found = None
            while found is None:  # it was there, and was removed before it was read
                if connection.execute(_TAKE, (scope, key, body, self._self, now, expired)).fetchone() is not None:
                    return Begun("new")
                found = connection.execute(_KNOWN, (scope, key)).fetchone()
            known, answer, rules, values = found
            if known != body:
                return Begun("conflict")
            return Begun("pending") if answer is None else Begun("done", answer, rules, values)

        return self._database.write_one(operation)

    def finish(self, scope: str, key: str, answer: str, rules: str, values: str) -> None:
        """Store the answer to a request that this store began, and its policy revisions."""
        encodable("answer", answer)
        text("rules", rules)
        text("values", values)

        def operation(connection: Connection) -> None:
            done = connection.execute(
                'UPDATE idempotency SET answer = ?, rules = ?, "values" = ?'
                " WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL RETURNING key",
                (answer, rules, values, scope, key, self._self),
            )
            if done.fetchone() is None:
                raise StateError(
                    "the request was not started under this idempotency key",
                    remedy="send it again with another idempotency key",
                )

        self._database.write_one(operation)

    def abandon(self, scope: str, key: str) -> None:
        """Free the key of a request that this store began and that has had no effect."""
        self._change(
            "DELETE FROM idempotency WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL",
            scope,
            key,
            self._self,
        )


def _sweep(connection: Connection, before: int, limit: int) -> None:
    connection.execute(
        "DELETE FROM idempotency WHERE (scope, key) IN"
        " (SELECT scope, key FROM idempotency WHERE begun_at <= ? LIMIT ? /* FOR UPDATE SKIP LOCKED */)",
        (before, limit),
    )

"""Idempotency keys: the first request runs, repetitions get its answer, nothing runs twice.

A request whose engine ended in between may have had its effect. So its key stays `pending` and refuses
repetitions until it expires; it is never quietly run again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from engine.errors import StateError
from engine.state.backend import Backend, Connection
from engine.state.checks import encodable, text, whole
from engine.state.part import Part
from engine.state.rows import Begun, StateLimits

_TAKE = (
    "INSERT INTO idempotency (scope, key, body, owner, begun_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (scope, key) DO UPDATE SET body = excluded.body, owner = excluded.owner,"
    ' begun_at = excluded.begun_at, answer = NULL, rules = NULL, "values" = NULL'
    " WHERE idempotency.begun_at <= excluded.begun_at - ? RETURNING scope, key"
)
"""Take a key that is free or has expired."""

_TAKE_MANY = _TAKE.replace(
    "VALUES (?, ?, ?, ?, ?)",
    "SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[]) AS asked (scope, key, a, b, c)"
    ' ORDER BY scope COLLATE "C", key COLLATE "C"',
)
"""PostgreSQL only: several keys, each once, in an order that rules deadlocks out."""

_KNOWN = 'SELECT body, answer, rules, "values" FROM idempotency WHERE scope = ? AND key = ?'

_Claim = tuple[str, str, str, str, int]
"""Scope, key, body, owner and time."""


class Idempotency(Part):
    """The part of the store for idempotency keys."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._owners: dict[tuple[str, str], str] = {}
        """The owner of each key that was begun in this open store: only it may finish or abandon the key."""
        self._begin_together: Callable[[_Claim], Begun | None] | None = database.combined(self._begin_many)

    def begin(self, scope: str, key: str, body: str, now: int) -> Begun:
        """Take an idempotency key within a scope, for a body with this digest.

        After a StateError the key is free again, now or once the state works.
        """
        for name, value in (("scope", scope), ("key", key), ("body", body)):
            text(name, value)
        owner = secrets.token_hex(16)
        claim = scope, key, body, owner, whole("now", now)
        begin = self._begin_together or (
            lambda claim: self._database.write_one(lambda connection: self._begin_one(connection, claim))
        )
        found = None
        try:
            while found is None:  # it was there, and was removed before it was read
                found = begin(claim)
        except StateError as error:
            if not error.undone:
                self._drop_key(scope, key, owner)
            raise
        if found.kind == "new":
            self._owners[scope, key] = owner
        return found

    def _begin_one(self, connection: Connection, claim: _Claim) -> Begun | None:
        self._tidy_keys(connection, claim[4])
        if connection.execute(_TAKE, (*claim, self._limits.idempotency_seconds)).fetchone() is not None:
            return Begun("new")
        return _known(connection, claim)

    def _begin_many(self, connection: Connection, claims: Sequence[_Claim]) -> list[Begun | None]:
        self._tidy_keys(connection, claims[-1][4])
        first = {one[:2]: one for one in reversed(claims)}
        rows = [list(column) for column in zip(*first.values(), strict=True)]
        taken = set(connection.execute(_TAKE_MANY, (*rows, self._limits.idempotency_seconds)))
        return [
            Begun("new") if one[:2] in taken and first[one[:2]] is one else _known(connection, one) for one in claims
        ]

    def _tidy_keys(self, connection: Connection, now: int) -> None:
        seconds = self._limits.idempotency_seconds
        self._tidy(connection, "idempotency", "scope, key", "begun_at <= ?", now, seconds)

    def finish(self, scope: str, key: str, answer: str, rules: str, values: str) -> None:
        """Store the answer to a request that this store began, and its policy revisions."""
        encodable("answer", answer)
        text("rules", rules)
        text("values", values)
        owner = self._owners.get((scope, key), "")

        def operation(connection: Connection) -> None:
            done = connection.execute(
                'UPDATE idempotency SET answer = ?, rules = ?, "values" = ?'
                " WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL RETURNING key",
                (answer, rules, values, scope, key, owner),
            )
            if done.fetchone() is None:
                raise StateError(
                    "the request was not started under this idempotency key",
                    remedy="send it again with another idempotency key",
                )

        self._database.write_one(operation)
        self._owners.pop((scope, key), None)

    def abandon(self, scope: str, key: str) -> None:
        """Free the key of a request that this store began and that has had no effect."""
        self._drop_key(scope, key, self._owners.pop((scope, key), ""))

    def _drop_key(self, scope: str, key: str, owner: str) -> None:
        self._withdraw(
            "DELETE FROM idempotency WHERE scope = ? AND key = ? AND owner = ? AND answer IS NULL", scope, key, owner
        )


def _known(connection: Connection, claim: _Claim) -> Begun | None:
    """What a key that could not be taken stands for; None if it was removed meanwhile."""
    scope, key, body, *_ = claim
    found = connection.execute(_KNOWN, (scope, key)).fetchone()
    if found is None:
        return None
    known, answer, rules, values = found
    if known != body:
        return Begun("conflict")
    return Begun("pending") if answer is None else Begun("done", answer, rules, values)

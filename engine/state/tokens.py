"""Scoped tokens: `aet_<id>_<secret>`. Only the SHA-256 of the whole text is stored.

A lookup does the same work for every text: hash, one row by id, one comparison of digests in constant
time, then its times. A row is cached until anything in the state file changes, by any process,
so that a revocation takes effect at once.
"""

# ruff: noqa: A002 - the names of the interface

from __future__ import annotations

import base64
import hmac
import json
import secrets
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from engine.state.database import Database
from engine.state.part import Part, Recent, columns, find, names, text, whole
from engine.state.rows import IdTakenError, IssuedToken, StateLimits, TokenRow

_PREFIX = "aet_"
_ID_BYTES = 4
_SECRET_BYTES = 32
_ID = slice(len(_PREFIX), len(_PREFIX) + 2 * _ID_BYTES)
_LONGEST = 128
"""Maximum length of a presented text that is checked; a token has 56 characters, and longer text is never a token."""

_NO_DIGEST = bytes(32)
"""What unknown ids are compared with: no text is known to have this SHA-256."""

_COLUMNS = columns(TokenRow)
_ANY = "SELECT 1 FROM tokens"
_Cached = tuple[bytes, TokenRow]


class Tokens(Part):
    """The part of the store for tokens."""

    def __init__(self, database: Database, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._cache: dict[str, _Cached] = {}
        self._cached_at: int | None = None
        self._any = Recent(database, limits, lambda connection: connection.execute(_ANY).fetchone() is not None)
        self._issued = False

    def issue(  # noqa: PLR0913  (all that a token says)
        self,
        principal: str,
        points: Sequence[str],
        expires_at: int,
        now: int,
        approves: Sequence[str] = (),
        id: str | None = None,
        audience: str | None = None,
        *,
        single_use: bool = False,
    ) -> IssuedToken:
        """Create a token for decisions at some points and approvals at others; only its digest is kept.

        When this returns, every process knows that there are tokens.
        `id` comes from `new_token_id`; by default a new one. Raises IdTakenError.
        """
        text("principal", principal)
        if audience is not None:
            text("audience", audience)
        asks, resolves = (json.dumps(sorted({text("point", point) for point in some})) for some in (points, approves))
        if isinstance(points, str) or isinstance(approves, str) or not (points or approves):
            raise ValueError("a token needs at least one decision point")
        if whole("expires_at", expires_at) <= whole("now", now):
            raise ValueError("a token expires after it is issued")

        def operation(connection: sqlite3.Connection) -> IssuedToken:
            issued = _new(id or new_token_id())
            while _row_of(connection, issued.id) is not None:
                if id is not None:
                    raise IdTakenError("a token with this id already exists", remedy="use a new id")
                issued = _new(new_token_id())
            connection.execute(
                "INSERT INTO tokens"
                " (id, digest, principal, points, created_at, expires_at, approves, audience, single_use)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(issued.id, sha256(issued.text.encode()).digest(), principal, asks, now, expires_at, resolves),
                    *(audience, single_use),
                ),
            )
            return issued

        issued = self._database.write(operation)
        if not self._issued:
            self._any.changed()
            self._issued = True
        return issued

    def any_issued(self) -> bool:
        """Whether any token was ever issued."""
        return self._any.get()

    def tokens(self) -> tuple[TokenRow, ...]:
        """Every token ever issued, newest first."""
        return self._rows(_row, f"SELECT {_COLUMNS} FROM tokens ORDER BY number DESC")  # noqa: S608

    def revoke(self, id: str, now: int) -> TokenRow | None:
        """Revoke a token and return its row, None if it is unknown. Idempotent."""
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> TokenRow | None:
            connection.execute("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, id))
            found = _row_of(connection, id)
            return None if found is None else found[1]

        return self._database.write(operation)

    def token(self, presented: str, now: int, audience: str | None = None) -> TokenRow | None:
        """The valid token with this text, else None; does the same work for unknown, expired and revoked ones.

        `audience` is the name of the server that was asked. A token for a single use is used up by this call, of
        several at the same time by one.
        """
        presented_bytes = presented[:_LONGEST].encode("utf-8", "surrogatepass")
        digest = sha256(presented_bytes).digest()
        known, row = self._database.read(lambda connection: self._look_up(connection, presented[_ID]))
        matches = hmac.compare_digest(digest, known)
        if not matches or row is None or not _holds(row, whole("now", now), audience):
            return None
        return row if not row.single_use or self._use(row.id, now) else None

    def _use(self, id_: str, now: int) -> bool:
        """Whether this was the first use of the token."""
        use = "UPDATE tokens SET used_at = ? WHERE id = ? AND used_at IS NULL AND revoked_at IS NULL"
        return self._database.write(lambda connection: connection.execute(use, (now, id_)).rowcount == 1)

    def _look_up(self, connection: sqlite3.Connection, id_: str) -> tuple[bytes, TokenRow | None]:
        """The digest and row of an id. Called by one thread at a time: `Database.read` ensures it."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._cached_at:
            self._cache, self._cached_at = {}, version
        found = self._cache.get(id_)
        if found is None:
            found = _row_of(connection, id_)
            if found is None:
                return _NO_DIGEST, None
            self._cache[id_] = found
        return found


def new_token_id() -> str:
    """An id for a new token."""
    return secrets.token_hex(_ID_BYTES)


def _new(id_: str) -> IssuedToken:
    secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).rstrip(b"=").decode()
    return IssuedToken(id_, f"{_PREFIX}{id_}_{secret}")


def _row_of(connection: sqlite3.Connection, id_: str) -> _Cached | None:
    query = f"SELECT digest, {_COLUMNS} FROM tokens WHERE id = ?"  # noqa: S608
    return find(connection, lambda digest, *row: (digest, _row(*row)), query, id_)


def _row(*values: Any) -> TokenRow:
    id_, principal, points, created, expires, revoked, approves, audience, single_use, used = values
    times = (created, expires, revoked)
    return TokenRow(id_, principal, names(points), *times, names(approves), audience, bool(single_use), used)


def _holds(row: TokenRow, now: int, audience: str | None) -> bool:
    return row.revoked_at is None and now < row.expires_at and row.audience in {None, audience}

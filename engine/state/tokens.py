"""Scoped tokens: `aet_<id>_<secret>`. Only the SHA-256 of the whole text is kept.

Looking one up takes the same path for every text: hash, one row by id, one comparison of digests in constant
time, then its times. A row once read is kept until anything in the state file changes, by whatever process,
so that a revocation bites at once.
"""

# ruff: noqa: A002, D102 - the names and words of the interface

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
from engine.state.part import Part, names, text, whole
from engine.state.store import IdTakenError, IssuedToken, StateLimits, TokenRow

_PREFIX = "aet_"
_ID_BYTES = 4
_SECRET_BYTES = 32
_ID = slice(len(_PREFIX), len(_PREFIX) + 2 * _ID_BYTES)
_LONGEST = 128
"""Characters of a presented text that are looked at; a token has 56, and a longer text is none anyway."""

_NO_DIGEST = bytes(32)
"""What unknown ids are compared with: no text is known to have this SHA-256."""

_COLUMNS = "id, principal, points, created_at, expires_at, revoked_at, approves"
_Kept = tuple[bytes, TokenRow]


class Tokens(Part):
    """The part of the store that knows callers."""

    def __init__(self, database: Database, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._kept: dict[str, _Kept] = {}
        self._kept_at: int | None = None

    def issue(
        self,
        principal: str,
        points: Sequence[str],
        expires_at: int,
        now: int,
        approves: Sequence[str] = (),
        id: str | None = None,
    ) -> IssuedToken:
        text("principal", principal)
        asks, resolves = (json.dumps(sorted({text("point", point) for point in some})) for some in (points, approves))
        if isinstance(points, str) or isinstance(approves, str) or not (points or approves):
            raise ValueError("a token is for at least one point")
        if whole("expires_at", expires_at) <= whole("now", now):
            raise ValueError("a token expires after it is issued")

        def operation(connection: sqlite3.Connection) -> IssuedToken:
            issued = _new(id or new_token_id())
            while _row_of(connection, issued.id) is not None:
                if id is not None:
                    raise IdTakenError("there is a token of this id already", remedy="use a new id")
                issued = _new(new_token_id())
            connection.execute(
                "INSERT INTO tokens (id, digest, principal, points, created_at, expires_at, approves)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (issued.id, sha256(issued.text.encode()).digest(), principal, asks, now, expires_at, resolves),
            )
            return issued

        return self._database.write(operation)

    def tokens(self) -> tuple[TokenRow, ...]:
        query = f"SELECT {_COLUMNS} FROM tokens ORDER BY number DESC"  # noqa: S608
        return self._database.read(lambda connection: tuple(map(_row, connection.execute(query))))

    def revoke(self, id: str, now: int) -> TokenRow | None:
        whole("now", now)

        def operation(connection: sqlite3.Connection) -> TokenRow | None:
            connection.execute("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, id))
            found = _row_of(connection, id)
            return None if found is None else found[1]

        return self._database.write(operation)

    def token(self, presented: str, now: int) -> TokenRow | None:
        seen = presented[:_LONGEST].encode("utf-8", "surrogatepass")
        digest = sha256(seen).digest()
        known, row = self._database.read(lambda connection: self._look_up(connection, presented[_ID]))
        matches = hmac.compare_digest(digest, known)
        return row if matches and row is not None and _holds(row, whole("now", now)) else None

    def _look_up(self, connection: sqlite3.Connection, id_: str) -> tuple[bytes, TokenRow | None]:
        """The digest and row of an id. Called by one thread at a time: `Database.read` sees to it."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._kept_at:
            self._kept, self._kept_at = {}, version
        found = self._kept.get(id_)
        if found is None:
            found = _row_of(connection, id_.encode("utf-8", "replace").decode())
            if found is None:
                return _NO_DIGEST, None
            self._kept[id_] = found
        return found


def new_token_id() -> str:
    """An id for a new token."""
    return secrets.token_hex(_ID_BYTES)


def _new(id_: str) -> IssuedToken:
    secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).rstrip(b"=").decode()
    return IssuedToken(id_, f"{_PREFIX}{id_}_{secret}")


def _row_of(connection: sqlite3.Connection, id_: str) -> _Kept | None:
    query = f"SELECT digest, {_COLUMNS} FROM tokens WHERE id = ?"  # noqa: S608
    found = connection.execute(query, (id_,)).fetchone()
    return None if found is None else (found[0], _row(found[1:]))


def _row(values: tuple[Any, ...]) -> TokenRow:
    fields = [*values]
    fields[2], fields[-1] = names(fields[2]), names(fields[-1])
    return TokenRow(*fields)


def _holds(row: TokenRow, now: int) -> bool:
    return row.revoked_at is None and now < row.expires_at

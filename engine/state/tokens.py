"""Scoped tokens: `aet_<id>_<secret>`. Only the SHA-256 of the whole text is stored.

A lookup does the same work for every text: hash, one row by id, one comparison of digests in constant
time, then its times. In a state file, a row is cached until anything in it changes, by any process; in PostgreSQL for
half a second, which a revocation waits for, and as long as the caller of a request counts as identified. So a
revocation has taken effect everywhere once it is answered.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections.abc import Sequence
from hashlib import sha256

from engine.state.backend import Backend, Connection
from engine.state.checks import text, whole
from engine.state.part import Part, Recent, columns, made, storable
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
_ONE = f"SELECT {_COLUMNS} FROM tokens WHERE id = ?"  # noqa: S608
_WITH_DIGEST = f"SELECT digest, {_COLUMNS} FROM tokens WHERE id = ?"  # noqa: S608
_ISSUE = (
    "INSERT INTO tokens (id, digest, principal, points, created_at, expires_at, approves, audience, single_use)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id"
)
_ANY = "SELECT 1 FROM tokens LIMIT 1"
_Cached = tuple[bytes, TokenRow]


class Tokens(Part):
    """The part of the store for tokens."""

    def __init__(self, database: Backend, limits: StateLimits) -> None:
        super().__init__(database, limits)
        self._cache: tuple[int | None, dict[str, _Cached]] = None, {}
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

        def operation(connection: Connection) -> IssuedToken:
            while True:
                issued = _new(id or new_token_id())
                digest = sha256(issued.text.encode()).digest()
                values = issued.id, digest, principal, asks, now, expires_at, resolves, audience, int(single_use)
                if connection.execute(_ISSUE, values).fetchone() is not None:
                    return issued
                if id is not None:
                    raise IdTakenError("a token with this id already exists", remedy="use a new id")

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
        return self._rows(TokenRow, f"SELECT {_COLUMNS} FROM tokens ORDER BY number DESC")  # noqa: S608

    def revoke(self, id: str, now: int) -> TokenRow | None:
        """Revoke a token and return its row, None if it is unknown. Idempotent."""
        revoke = "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        revoked = self._end(TokenRow, _ONE, id, revoke, whole("now", now))
        time.sleep(self._database.lag + self._limits.recent_seconds)
        return revoked

    def token(self, presented: str, now: int, audience: str | None = None, *, again: bool = False) -> TokenRow | None:
        """The valid token with this text, else None; does the same work for unknown, expired and revoked ones.

        `audience` is the name of the server that was asked. A token for a single use is used up by this call, of
        several at the same time by one; not if it is looked up `again` for the same request.
        """
        presented_bytes = presented[:_LONGEST].encode("utf-8", "surrogatepass")
        digest = sha256(presented_bytes).digest()
        known, row = self._look_up(presented[_ID]) or (_NO_DIGEST, None)
        matches = hmac.compare_digest(digest, known)
        if not matches or row is None or not _holds(row, whole("now", now), audience):
            return None
        return row if again or not row.single_use or self._use(row.id, now) else None

    def tokens_at_hand(self, presented: str | None) -> bool:
        """Whether `token` with this text, or `any_issued` with None, can answer without waiting for a server."""
        if not self._database.lag:
            return True
        if presented is None:
            return self._any.at_hand()
        found = self._known(presented[_ID], None)
        return found is not None and not found[1].single_use

    def _use(self, id_: str, now: int) -> bool:
        """Whether this was the first use of the token."""
        use = "UPDATE tokens SET used_at = ? WHERE id = ? AND used_at IS NULL AND revoked_at IS NULL RETURNING id"
        return self._database.write(lambda connection: connection.execute(use, (now, id_)).fetchone() is not None)

    def _look_up(self, id_: str) -> _Cached | None:
        """The digest and row of an id, as they are now or were `Backend.lag` seconds ago at most."""
        self._database.demand_open()
        return self._known(id_, None) or self._database.read(lambda connection: self._known(id_, connection))

    def _known(self, id_: str, connection: Connection | None) -> _Cached | None:
        """What is cached of an id, else its row where there is a connection to read it."""
        moment = self._database.moment(connection)
        if moment is None:
            return None
        cached = self._cache
        if cached[0] != moment:
            cached = self._cache = moment, {}
        found = cached[1].get(id_)
        if found is None and connection is not None:
            row = connection.execute(_WITH_DIGEST, (storable(id_),)).fetchone()
            if row is not None:
                found = cached[1][id_] = row[0], made(TokenRow, *row[1:])
        return found


def new_token_id() -> str:
    """An id for a new token."""
    return secrets.token_hex(_ID_BYTES)


def _new(id_: str) -> IssuedToken:
    secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).rstrip(b"=").decode()
    return IssuedToken(id_, f"{_PREFIX}{id_}_{secret}")


def _holds(row: TokenRow, now: int, audience: str | None) -> bool:
    return row.revoked_at is None and now < row.expires_at and row.audience in {None, audience}

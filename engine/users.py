"""Who a caller is: a user of the operating system, or the principal of a token."""

from __future__ import annotations

import pwd
from typing import Protocol

from engine.errors import EngineError
from engine.model import Caller, Via


class TokenRow(Protocol):
    """A scoped token as the state has it."""

    @property
    def principal(self) -> str:
        """Whose token it is."""
        ...

    @property
    def points(self) -> tuple[str, ...]:
        """The decision points it may ask about."""
        ...

    @property
    def approves(self) -> tuple[str, ...]:
        """The decision points it may approve at."""
        ...


def caller_of(row: TokenRow) -> Caller:
    """The caller that a valid token names."""
    return Caller(via=Via.TOKEN, principal=row.principal, points=row.points, approves=row.approves or None)


class Tokens(Protocol):
    """Where scoped tokens are looked up."""

    def token(self, presented: str, now: int) -> TokenRow | None:
        """The token with this text, when it is valid. Raises StateError."""
        ...


def bearer_of(presented: str, tokens: Tokens, now: int) -> Caller:
    """The caller that a presented token names. Raises EngineError: `unauthorized`, or that of the state."""
    row = tokens.token(presented, now)
    if row is None:
        raise unauthorized()
    return caller_of(row)


def unauthorized() -> EngineError:
    """The one answer to missing and wrong credentials."""
    return EngineError(
        "the credentials are missing or wrong",
        remedy="send `Authorization: Bearer TOKEN`; `engine tokens issue` makes tokens",
        code="unauthorized",
    )


def user_of(uid: int) -> str:
    """The principal of a user of this machine, from the user database and never from the environment."""
    try:
        return f"user:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user:{uid}"

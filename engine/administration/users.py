"""Who a caller is: a user of the operating system, or the principal of a token."""

from __future__ import annotations

import pwd
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.model import Caller, Via

if TYPE_CHECKING:
    from engine.state.rows import TokenRow
    from engine.state.store import Store


def caller_of(row: TokenRow) -> Caller:
    """The caller that a valid token names."""
    return Caller(via=Via.TOKEN, principal=row.principal, points=row.points, approves=row.approves or None)


def bearer_of(presented: str, store: Store, now: int) -> Caller:
    """The caller that a presented token names. Raises EngineError: `unauthorized`, or that of the state."""
    row = store.token(presented, now)
    if row is None:
        raise unauthorized()
    return caller_of(row)


def unauthorized() -> EngineError:
    """The one answer to missing and wrong credentials."""
    return EngineError(
        "the credentials are missing or wrong",
        remedy="send a token as bearer in the header `Authorization`; `engine tokens issue` creates one",
        code="unauthorized",
    )


def user_of(uid: int) -> str:
    """The principal of a user of this machine, from the user database and never from the environment."""
    try:
        return f"user:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user:{uid}"

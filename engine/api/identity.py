"""Who asks: a certificate, a token, the user at the control socket, or whoever is on this machine.

Python establishes who asks and nothing else; what each may do is policy. Nothing here tells how a
credential was wrong, and nothing echoes one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.api.failures import Failures
from engine.api.messages import Head, Peer
from engine.api.origin import check_direct
from engine.errors import EngineError
from engine.model import Caller, Via
from engine.users import TokenRow, caller_of, unauthorized

TOKEN_VARIABLE = "AGENTA_AGENT_RUNNER_TOKEN"  # noqa: S105  (the name of a variable)
"""The environment variable with the shared token; empty or blank counts as not set (D58)."""

TOKEN_HEADER = b"x-agenta-runner-token"

_UNGUESSABLE = 32
"""Characters of a shared token from which on nobody can try them all: 128 bits in hexadecimal digits."""

_LOOK_SECONDS = 1.0
"""How often to look whether a first scoped token was issued."""

_LOOPBACK = Caller(via=Via.LOOPBACK)


class Tokens(Protocol):
    """Scoped tokens."""

    def any(self) -> bool:
        """Whether a token was ever issued. Raises StateError."""
        ...

    def find(self, presented: str) -> TokenRow | None:
        """The token with this text, when it is valid now. Raises StateError."""
        ...


def shared_token() -> str | None:
    """The shared token of the environment, if there is one."""
    value = os.environ.get(TOKEN_VARIABLE, "").strip()
    return value or None


@dataclass(frozen=True, slots=True)
class Presented:
    """What a request shows to say who asks."""

    token: str | None
    wrong: bool = False


class Identity:
    """Tells who asks.

    `tokens` are looked up in the state, `shared` is the shared token or None; `always` when the policy
    lets nobody ask without showing who he is.
    """

    def __init__(
        self,
        shared: str | None,
        tokens: Tokens,
        failures: Failures,
        clock: Callable[[], float] = time.monotonic,
        *,
        always: bool = False,
    ) -> None:
        self._always = always
        self._shared = None if shared is None else _digest(shared)
        self._guessable = shared is not None and len(shared) < _UNGUESSABLE
        self._tokens = tokens
        self._failures = failures
        self._clock = clock
        self._any = (-1e9, False)

    def required(self) -> bool:
        """Whether a token must be shown: a shared one is set, or scoped ones were issued. Raises StateError."""
        return self._always or self._shared is not None or self.scoped()

    def scoped(self) -> bool:
        """Whether scoped tokens were ever issued; looked up once a second. Raises StateError."""
        now = self._clock()
        if not self._any[1] and now - self._any[0] > _LOOK_SECONDS:
            self._any = (now, self._tokens.any())
        return self._any[1]

    def caller(self, head: Head, peer: Peer) -> Caller:
        """Who asks. Raises EngineError: `unauthorized`, `engine.too_many_failures`, `engine.state_unavailable`."""
        presented = _presented(head)
        if presented.token is None and not presented.wrong:
            if peer.caller is not None:
                return peer.caller
            if peer.loopback and not self.required():
                check_direct(head)
                return _LOOPBACK
        return self._with_token(presented, peer)

    def _with_token(self, presented: Presented, peer: Peer) -> Caller:
        """Failures are limited, and nothing else: nobody is locked out by what others get wrong.

        Except with a shared token that is short enough to be guessed: where the failures of an address
        are used up, a right guess is told the same as a wrong one (H10).
        """
        caller = self._match(_digest(presented.token or ""), presented)
        exhausted = self._failures.exhausted(peer.address)
        if caller is not None and not (exhausted and self._guessable and caller.via is Via.SHARED_TOKEN):
            return caller
        if exhausted:
            raise EngineError(
                "there were too many wrong credentials", remedy="wait a while", code="engine.too_many_failures"
            )
        self._failures.count(peer.address)
        raise unauthorized()

    def _match(self, shown: bytes, presented: Presented) -> Caller | None:
        """Compare digests of one length, the shared one and then the scoped ones, whatever was shown."""
        shared = hmac.compare_digest(shown, self._shared or bytes(32)) and self._shared is not None
        if shared and presented.token and not presented.wrong:
            return Caller(via=Via.SHARED_TOKEN)
        scoped = self._scoped(presented.token or "")
        return None if presented.wrong or not presented.token else scoped

    def _scoped(self, token: str) -> Caller | None:
        """Looked up each time, so that a revocation bites at once; the state keeps what has not changed."""
        row = self._tokens.find(token)
        return None if row is None else caller_of(row)


def _presented(head: Head) -> Presented:
    bearer = head.headers.get(b"authorization")
    named = head.headers.get(TOKEN_HEADER)
    if bearer is None and named is None:
        return Presented(None)
    if head.repeated & {b"authorization", TOKEN_HEADER}:
        return Presented(None, wrong=True)
    tokens = set()
    if bearer is not None:
        scheme, _, text = bearer.partition(b" ")
        if scheme.lower() != b"bearer":
            return Presented(None, wrong=True)
        tokens.add(text.strip())
    if named is not None:
        tokens.add(named.strip())
    if len(tokens) != 1:
        return Presented(None, wrong=True)
    token = tokens.pop().decode("latin-1")
    return Presented(token, wrong=not token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

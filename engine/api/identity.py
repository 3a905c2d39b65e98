"""Identifies callers: a certificate, a token, the user at the control socket, or any process on this machine.

Python only identifies the caller; the policy decides what each may do. No answer shows how a
credential was wrong, and none echoes a credential.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.administration.users import caller_of, unauthorized
from engine.api.limits import ApiLimits
from engine.api.messages import Head, Peer
from engine.api.origin import check_direct
from engine.errors import EngineError
from engine.model import Caller, Via
from engine.state.store import Store

TOKEN_VARIABLE = "AGENTA_AGENT_RUNNER_TOKEN"  # noqa: S105  (the name of a variable)
"""The environment variable with the shared token; empty or blank counts as not set (D58)."""

TOKEN_HEADER = b"x-agenta-runner-token"

_UNGUESSABLE = 32
"""Characters from which a shared token cannot be guessed: 128 bits in hexadecimal digits."""

_LOOPBACK = Caller(via=Via.LOOPBACK)


def shared_token() -> str | None:
    """The shared token of the environment, if there is one."""
    value = os.environ.get(TOKEN_VARIABLE, "").strip()
    return value or None


class Identity:
    """Identifies the caller of a request.

    Scoped tokens are looked up in the `store`, `shared` is the shared token or None; `always` when the policy
    demands credentials of every caller. `audience` is the name of this server in tokens.
    """

    def __init__(
        self,
        shared: str | None,
        store: Callable[[], Store],
        failures: Failures,
        *,
        always: bool = False,
        audience: str | None = None,
    ) -> None:
        self._audience = audience
        self._always = always
        self._shared = None if shared is None else _digest(shared)
        self._guessable = shared is not None and len(shared) < _UNGUESSABLE
        self._store = store
        self._failures = failures
        self._scoped = False

    def required(self) -> bool:
        """Whether a token is required: a shared one is set, or scoped ones were issued. Raises StateError."""
        return self._always or self._shared is not None or self.scoped()

    def scoped(self) -> bool:
        """Whether scoped tokens were ever issued. Raises StateError."""
        self._scoped = self._scoped or self._store().any_issued()
        return self._scoped

    def waits(self, head: Head, peer: Peer) -> bool:
        """Whether `caller` may wait for a database server; then it must not be called on the event loop."""
        presented = _presented(head)
        if presented is None and self._is_known(peer):
            return False
        demanded = self._always or self._shared is not None or self._scoped
        try:
            return not self._store().tokens_at_hand("" if presented is None and demanded else presented)
        except EngineError:
            return False  # nor can `caller` ask it

    def _is_known(self, peer: Peer) -> bool:
        """Whether a peer needs no token: a shared one is demanded of callers with a certificate too."""
        return peer.caller is not None and (peer.control or self._shared is None)

    def caller(self, head: Head, peer: Peer, *, again: bool = False) -> Caller:
        """The caller; `again` where this request was identified before.

        Raises EngineError: `unauthorized`, `engine.too_many_failures`, `engine.state_unavailable`.
        """
        presented = _presented(head)
        if presented is None:
            if peer.caller is not None and self._is_known(peer):
                return peer.caller
            if peer.loopback and not self.required():
                check_direct(head)
                return _LOOPBACK
        return self._with_token(presented or "", peer, again=again)

    def _with_token(self, presented: str, peer: Peer, *, again: bool) -> Caller:
        """Failures are limited, and nothing else: no caller is locked out by the failures of others.

        Except with a shared token that is short enough to be guessed: where the failures of an address
        are used up, a right guess gets the same answer as a wrong one (H10).
        """
        caller = self._match(presented, again=again)
        exhausted = self._failures.exhausted(peer.address)
        if caller is not None and not (exhausted and self._guessable and caller.via is Via.SHARED_TOKEN):
            return caller
        if exhausted:
            raise EngineError(
                "too many attempts with wrong credentials", remedy="try again later", code="engine.too_many_failures"
            )
        self._failures.count(peer.address)
        raise unauthorized()

    def _match(self, presented: str, *, again: bool) -> Caller | None:
        """Compare digests of equal length, the shared token's and then the scoped ones', whatever was presented.

        Scoped tokens are looked up each time, so that a revocation takes effect at once; the state has a cache.
        """
        shared = hmac.compare_digest(_digest(presented), self._shared or bytes(32)) and self._shared is not None
        if shared and presented:
            return Caller(via=Via.SHARED_TOKEN)
        row = self._store().token(presented, int(time.time()), self._audience, again=again)
        return None if row is None or not presented else caller_of(row)


def _presented(head: Head) -> str | None:
    """The token in a request; None if it has none, empty if it is malformed."""
    bearer = head.headers.get(b"authorization")
    named = head.headers.get(TOKEN_HEADER)
    if bearer is None and named is None:
        return None
    if head.repeated & {b"authorization", TOKEN_HEADER}:
        return ""
    tokens = set()
    if bearer is not None:
        scheme, _, text = bearer.partition(b" ")
        if scheme.lower() != b"bearer":
            return ""
        tokens.add(text.strip())
    if named is not None:
        tokens.add(named.strip())
    return tokens.pop().decode("latin-1") if len(tokens) == 1 else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


_PEERS = 10_000
"""Maximum number of remembered peers; the oldest is dropped first, and the common bucket still applies."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float

    def refill(self, burst: float, rate: float, now: float) -> float:
        self.left = min(burst, self.left + (now - self.at) * rate)
        self.at = now
        return self.left


class Failures:
    """Limits wrong credentials: a token bucket per peer, one for all peers. `clock` returns monotonic seconds.

    Threads may share it.
    """

    def __init__(self, limits: ApiLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._all = _Bucket(limits.all_failures_burst, clock())
        self._peers: dict[str, _Bucket] = {}
        self._guard = threading.Lock()

    def exhausted(self, address: str) -> bool:
        """Whether this peer, or all peers together, have used up their allowance."""
        now, limits = self._clock(), self._limits
        with self._guard:
            if self._all.refill(limits.all_failures_burst, limits.all_failures_per_second, now) < 1:
                return True
            peer = self._peers.get(address)
            return peer is not None and peer.refill(limits.failures_burst, limits.failures_per_second, now) < 1

    def count(self, address: str) -> None:
        """One more failure of this peer."""
        now = self._clock()
        with self._guard:
            peer = self._peers.pop(address, None)
            if peer is None:
                if len(self._peers) >= _PEERS:
                    del self._peers[next(iter(self._peers))]
                peer = _Bucket(self._limits.failures_burst, now)
            self._peers[address] = peer  # at the end: last seen
            peer.left -= 1
            self._all.left -= 1

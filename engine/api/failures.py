"""How often wrong credentials may be shown: a token bucket a peer, and one for all of them."""

from __future__ import annotations

from collections.abc import Callable

from engine.api.limits import ApiLimits

_PEERS = 10_000
"""Peers remembered; the oldest is forgotten first, and the bucket of all still holds."""


class _Bucket:
    __slots__ = ("at", "left")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at

    def refill(self, burst: float, rate: float, now: float) -> float:
        self.left = min(burst, self.left + (now - self.at) * rate)
        self.at = now
        return self.left


class Failures:
    """Counts failures. `clock` gives seconds that never go back."""

    def __init__(self, limits: ApiLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._all = _Bucket(limits.all_failures_burst, clock())
        self._peers: dict[str, _Bucket] = {}

    def exhausted(self, address: str) -> bool:
        """Whether this peer, or all together, have used up what they may get wrong."""
        now, limits = self._clock(), self._limits
        if self._all.refill(limits.all_failures_burst, limits.all_failures_per_second, now) < 1:
            return True
        peer = self._peers.get(address)
        return peer is not None and peer.refill(limits.failures_burst, limits.failures_per_second, now) < 1

    def count(self, address: str) -> None:
        """One more failure of this peer."""
        now = self._clock()
        peer = self._peers.pop(address, None)
        if peer is None:
            if len(self._peers) >= _PEERS:
                del self._peers[next(iter(self._peers))]
            peer = _Bucket(self._limits.failures_burst, now)
        self._peers[address] = peer  # at the end: last seen
        peer.left -= 1
        self._all.left -= 1

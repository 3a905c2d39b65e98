"""How much is under way: decisions running and waiting, bodies in memory. What is over is refused at once.

Whatever is limited is shared by callers: each may hold as much as it leaves free, so that one caller alone gets
half, and however many others came first, there is room for the next.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from engine.errors import EngineError


class Shares:
    """One amount that callers share. For one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: Counter[str] = Counter()
        self.used = 0

    def fits(self, caller: str, amount: int = 1) -> bool:
        """Whether this caller may hold so much more: never more in all than the others leave free."""
        return self._own[caller] + amount <= self._most - self.used

    def take(self, caller: str, amount: int = 1) -> bool:
        """Hold so much more; false where that is more than the caller's share."""
        if not self.fits(caller, amount):
            return False
        self.used += amount
        self._own[caller] += amount
        return True

    def give(self, caller: str, amount: int = 1) -> None:
        """Return what was taken."""
        self.used -= amount
        self._own[caller] -= amount
        if not self._own[caller]:
            del self._own[caller]


class Load:
    """Bounded turns, one caller after the other, and one budget of bytes for bodies. For one event loop."""

    def __init__(self, running: int, waiting: int, body_bytes: int) -> None:
        self._running = Shares(running)
        self._waiting = Shares(waiting)
        self._bytes = Shares(body_bytes)
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self.refused = 0

    @property
    def running(self) -> int:
        """How many have their turn."""
        return self._running.used

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._waiting.used

    @property
    def bytes(self) -> int:
        """Bytes of bodies in memory."""
        return self._bytes.used

    async def enter(self, caller: str) -> None:
        """Wait for a turn; `leave` gives it back. Raises EngineError `engine.overloaded` when too many wait."""
        if self._running.take(caller):
            return
        if not self._waiting.take(caller):
            self.refused += 1
            raise overloaded()
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            queue = self._queues.get(caller, deque())
            if turn in queue:
                queue.remove(turn)
                self._waiting.give(caller)
            elif not turn.cancelled():
                self.leave(caller)
            if not queue:
                self._queues.pop(caller, None)
            raise

    def leave(self, caller: str) -> None:
        """Give the turn to the next caller that waits and has a share left."""
        self._running.give(caller)
        while (chosen := next(filter(self._running.fits, self._queues), None)) is not None:
            queue = self._queues.pop(chosen)
            turn = queue.popleft()
            if queue:
                self._queues[chosen] = queue  # behind the others
            self._waiting.give(chosen)
            if not turn.cancelled():
                self._running.take(chosen)
                turn.set_result(None)

    def hold(self, caller: str, size: int) -> bool:
        """Count bytes of a body; false when there is no room for them."""
        if not self._bytes.take(caller, size):
            self.refused += 1
            return False
        return True

    def give(self, caller: str, size: int) -> None:
        """Bytes that are no longer held."""
        self._bytes.give(caller, size)


def overloaded() -> EngineError:
    """The refusal of what is too much; no decision was asked."""
    return EngineError(
        "the engine has more to do than it may take on", remedy="try again later", code="engine.overloaded"
    )

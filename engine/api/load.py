"""Limits on running and waiting decisions and on bodies in memory; excess requests are refused at once.

Callers share each limit: each may use as much as remains free. So one caller alone gets half, and there is
always room for the next.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.errors import EngineError


class Shares:
    """One amount that callers share; for one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: Counter[str] = Counter()
        self.used = 0
        self.refused = 0
        """Number of requests refused because of overload."""

    def fits(self, caller: str, amount: int = 1) -> bool:
        """Whether this caller may use this much more: never more in total than remains free."""
        return self._own[caller] + amount <= self._most - self.used

    def take(self, caller: str, amount: int = 1) -> bool:
        """Hold this much more; false, and counted, where that exceeds the caller's share."""
        if not self.fits(caller, amount):
            self.refused += 1
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
    """Bounded turns, one caller after the other. For one event loop."""

    def __init__(self, running: int, waiting: int) -> None:
        self.running = Shares(running)
        self.waiting = Shares(waiting)
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it for a block. Raises EngineError `engine.overloaded` when too many wait."""
        if not self.running.take(caller):
            await self._wait(caller)
        try:
            yield
        finally:
            self._leave(caller)

    async def _wait(self, caller: str) -> None:
        if not self.waiting.take(caller):
            raise overloaded()
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            queue = self._queues.get(caller, deque())
            if turn in queue:
                queue.remove(turn)
                self.waiting.give(caller)
            elif not turn.cancelled():
                self._leave(caller)
            if not queue:
                self._queues.pop(caller, None)
            raise

    def _leave(self, caller: str) -> None:
        """Give the turn to the next caller that waits and has a share left."""
        self.running.give(caller)
        while (chosen := next(filter(self.running.fits, self._queues), None)) is not None:
            queue = self._queues.pop(chosen)
            turn = queue.popleft()
            if queue:
                self._queues[chosen] = queue  # after the others
            self.waiting.give(chosen)
            if not turn.cancelled():
                self.running.take(chosen)
                turn.set_result(None)


def overloaded() -> EngineError:
    """The refusal under overload; no decision was requested."""
    return EngineError("the engine is overloaded", remedy="try again later", code="engine.overloaded")

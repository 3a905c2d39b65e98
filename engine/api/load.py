"""How much is under way: decisions running and waiting, bodies in memory. What is over is refused at once."""

from __future__ import annotations

import asyncio
from collections import deque

from engine.errors import EngineError


class Load:
    """Bounded turns, first come first served, and one budget of bytes for bodies. For one event loop."""

    def __init__(self, running: int, waiting: int, body_bytes: int) -> None:
        self._most_running = running
        self._most_waiting = waiting
        self._most_bytes = body_bytes
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.running = 0
        self.bytes = 0
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiters)

    async def enter(self) -> None:
        """Wait for a turn; `leave` gives it back. Raises EngineError `engine.overloaded` when too many wait."""
        if self.running < self._most_running:
            self.running += 1
            return
        if len(self._waiters) >= self._most_waiting:
            self.refused += 1
            raise overloaded()
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            else:
                self._waiters.remove(turn)
            raise

    def leave(self) -> None:
        """Give the turn to whoever waits longest."""
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

    def hold(self, size: int) -> bool:
        """Count bytes of a body; false when there is no room for them."""
        if self.bytes + size > self._most_bytes:
            self.refused += 1
            return False
        self.bytes += size
        return True

    def give(self, size: int) -> None:
        """Bytes that are no longer held."""
        self.bytes -= size


def overloaded() -> EngineError:
    """The refusal of what is too much; no decision was asked."""
    return EngineError(
        "the engine has more to do than it may take on", remedy="try again later", code="engine.overloaded"
    )

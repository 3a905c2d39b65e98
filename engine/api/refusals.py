"""Denies for callers that are not identified: the first one of a window is recorded, the others are counted.

Unidentified callers cannot fill the record: each point and code has one decision per window, which every such request
gets, and one line with the number of repetitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record.model import ReplayRecord
from engine.times import timestamp

if TYPE_CHECKING:
    from engine.engine import AsyncEngine
    from engine.flow import Answer, Context


@dataclass(slots=True)
class _Window:
    """One recorded deny, until when it is repeated, and how often it was."""

    answer: asyncio.Future[Answer]
    until: float
    again: int = -1


class Refusals:
    """Shared denies. `seconds` is the length of a window, `clock` returns monotonic seconds."""

    def __init__(self, engine: AsyncEngine, seconds: float, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._seconds = seconds
        self._clock = clock
        self._windows: dict[tuple[str, str], _Window] = {}

    async def answer(self, point: str, refusal: EngineError, context: Context) -> Answer:
        """The deny of this point with this code; recorded where the window has none yet."""
        window = self._windows.get((point, refusal.code))
        if window is None:
            decided = asyncio.ensure_future(self._engine.decide(point, refusal, context=context))
            window = self._windows[point, refusal.code] = _Window(decided, self._clock() + self._seconds)
            decided.add_done_callback(partial(self._drop_unrecorded, point, refusal.code))
        window.again += 1
        return await asyncio.shield(window.answer)

    def _drop_unrecorded(self, point: str, code: str, decided: asyncio.Future[Answer]) -> None:
        """Share no answer that is not the recorded deny of this code: the next request is decided anew."""
        failed = decided.cancelled() or decided.exception() is not None
        if failed or (fault := decided.result().fault) is None or fault.code != code:
            self._windows.pop((point, code), None)

    async def sweep(self, *, end: bool = False) -> None:
        """Record how often the denies of past windows were repeated; at the end, those of all windows."""
        now = self._clock()
        past = [key for key, window in self._windows.items() if window.answer.done() and (end or window.until < now)]
        for window in [self._windows.pop(key) for key in past]:
            with suppress(Exception):  # every request reports a record that cannot be written
                decision = window.answer.result().decision
                if window.again and self._engine.services is not None:
                    time = timestamp(datetime.now(UTC))
                    line = ReplayRecord(time=time, decision_id=decision.decision_id, times=window.again)
                    await self._engine.services.log.append_async(line)

"""What was last seen of a part that may hold up whoever looks at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_FRESH_SECONDS = 0.5
"""How old an answer may be before another look begins."""

_PATIENCE_SECONDS = 0.25
"""How long an answer is waited for where an older one is known; a look takes milliseconds."""

_BOUND_SECONDS = 1.0
"""A look that takes longer is taken for a bad one until it ends."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look gave, and how many seconds ago."""

    good: bool
    age: float


class Look:
    """A question that is asked in a thread of its own; whoever wants the answer gets the last one."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._guard = threading.Lock()
        self._seen: tuple[bool, float] | None = None
        self._running: tuple[threading.Event, float] | None = None

    def last(self) -> Seen:
        """The last answer; one that comes soon is waited for, for a quarter of a second, the first for a second."""
        with self._guard:
            now = time.monotonic()
            if self._running is None and (self._seen is None or now - self._seen[1] > _FRESH_SECONDS):
                self._begin(now)
            running, patience = self._running, _BOUND_SECONDS if self._seen is None else _PATIENCE_SECONDS
        if running is not None and time.monotonic() - running[1] < patience:
            running[0].wait(patience)
        with self._guard:
            now = time.monotonic()
            overdue = self._running is not None and now - self._running[1] > _BOUND_SECONDS
            good, seen_at = self._seen or (False, now)
            return Seen(good and not overdue, now - seen_at)

    def _begin(self, now: float) -> None:
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), name="engine-look", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads can be started
            self._seen = False, now
        else:
            self._running = ended, now

    def _run(self, ended: threading.Event) -> None:
        good = False
        try:
            good = self._look()
        finally:
            with self._guard:
                self._seen, self._running = (good, time.monotonic()), None
            ended.set()

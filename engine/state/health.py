"""Health checks of components that may block: the last result, refreshed in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

_FRESH_SECONDS = 0.5
"""How old an answer may be before another look begins."""

_PATIENCE_SECONDS = 0.25
"""Seconds to wait for a check if an older result is known; a check takes milliseconds."""

_BOUND_SECONDS = 1.0
"""Seconds after which a running check counts as failed."""


class HealthCheck:
    """Runs a check in its own thread; callers get the last result."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._guard = threading.Lock()
        self._last_health: tuple[bool, float] | None = None
        self._running: tuple[threading.Event, float] | None = None

    def last(self) -> tuple[bool, float]:
        """The last result and its age in seconds; waits a moment for a newer one, a second for the first."""
        with self._guard:
            now = time.monotonic()
            if self._running is None and (self._last_health is None or now - self._last_health[1] > _FRESH_SECONDS):
                self._begin(now)
            running, patience = self._running, _BOUND_SECONDS if self._last_health is None else _PATIENCE_SECONDS
        if running is not None and time.monotonic() - running[1] < patience:
            running[0].wait(patience)
        with self._guard:
            now = time.monotonic()
            overdue = self._running is not None and now - self._running[1] > _BOUND_SECONDS
            good, seen_at = self._last_health or (False, now)
            return good and not overdue, now - seen_at

    def _begin(self, now: float) -> None:
        finished = threading.Event()
        thread = threading.Thread(target=self._run, args=(finished,), name="engine-look", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads can be started
            self._last_health = False, now
        else:
            self._running = finished, now

    def _run(self, finished: threading.Event) -> None:
        good = False
        with suppress(Exception):  # it counts as failed, whatever it is
            good = self._look()
        with self._guard:
            self._last_health, self._running = (good, time.monotonic()), None
        finished.set()

"""Progress of long work, told to whoever waits: from the second second on, and once a second."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

_FIRST, _EVERY = 2.0, 1.0


def sandbox_tried(what: str, _done: int, _of: int) -> None:
    """Tell who waits for a sandbox that it is tried first; whatever else an engine reports goes by too fast."""
    if what.startswith("probing the sandbox"):
        with suppress(OSError):  # nobody listens: no reason to stop
            sys.stderr.write(f"engine: {what}: seconds, and then not for a day\n")
            sys.stderr.flush()


class Waiting:
    """Tells on standard error how much is done; on a terminal in one line that `end` removes."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + _FIRST
        self._terminal = sys.stderr.isatty()
        self._told = False

    def done(self, count: int) -> None:
        """So many are done; says so when it is time."""
        if (now := time.monotonic()) < self._next:
            return
        self._next, self._told = now + _EVERY, True
        line = f"{self._what}: {count:,}"
        with suppress(OSError):  # nobody listens: no reason to stop
            sys.stderr.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Nothing more to tell."""
        if self._told and self._terminal:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

"""Progress of long work: reported after a second on a terminal, after two elsewhere, then once a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from engine.cli.terminal import quiet

_FIRST, _FIRST_ELSEWHERE, _EVERY = 1.0, 2.0, 1.0


def sandbox_tried(what: str, _done: int, _of: int) -> None:
    """Show that a sandbox is probed first; all other progress of an engine is too fast to show."""
    if what.startswith("probing the sandbox") and not quiet():
        _write(f"engine: {what}: takes seconds, once a day\n")


class Waiting:
    """Reports progress on standard error; on a terminal in one line that `end` removes."""

    def __init__(self) -> None:
        self._quiet, self._terminal = quiet(), sys.stderr.isatty()  # other threads do not see the option
        self._next = time.monotonic() + (_FIRST if self._terminal else _FIRST_ELSEWHERE)
        self._printed = False

    def show(self, line: str) -> None:
        """Write the line, when it is time."""
        if not self._quiet and (now := time.monotonic()) >= self._next:
            self._next, self._printed = now + _EVERY, True
            _write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")

    def counting(self, step: str, line: Callable[[int, int], str]) -> Callable[[str, int, int], None]:
        """The progress of an engine: the line with the numbers of one step; nothing of the others."""
        return lambda what, done, of: self.show(line(done, of)) if what == step else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._printed and self._terminal:
            _write("\r\x1b[K")


@contextmanager
def during(what: str) -> Iterator[None]:
    """Report on a terminal, every second, that work without a count continues."""
    if quiet() or not sys.stderr.isatty():
        yield
        return
    over, began = threading.Event(), time.monotonic()

    def report(waiting: Waiting) -> None:
        while not over.wait(_EVERY / 4):
            waiting.show(f"engine: {what} ({time.monotonic() - began:.0f} s)")

    with Waiting() as waiting:
        reporter = threading.Thread(target=report, args=(waiting,), daemon=True)
        reporter.start()
        try:
            yield
        finally:
            over.set()
            reporter.join()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

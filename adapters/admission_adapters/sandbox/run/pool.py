"""A warm pool: sandboxes that have completed their handshake, each waiting for its one program.

What waits is what every cold run is before its `G`: no code, no input and no working folder is in it, and its
limits are set once it is let go. So isolation and single use are those of a cold run, and only the start has
been paid before. A sandbox is made for exactly one set of bounds, one environment, hash seed included, and one
folder of packages; other programs start cold. When the engine dies, each of them reads the end of its go pipe and ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, NotStartedError, Program, RunResult
from admission_adapters.sandbox.run.process import run_in
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import Sandbox, start
from engine.errors import WorkError

IDLE_SECONDS = 300.0
"""Seconds that a sandbox waits, and seconds that an unused kind is kept ready."""

MOST = 64
"""Maximum number of waiting sandboxes: each is three processes and a dozen descriptors."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Everything that is fixed when a sandbox starts."""

    bounds: Bounds
    environment: tuple[tuple[str, str], ...]
    packages: str


@dataclass(slots=True)
class _Stock:
    """The waiting sandboxes of one kind, oldest first, and the time of the last request for it."""

    requested_at: float
    waiting: deque[tuple[float, Sandbox]] = field(default_factory=deque)


class Pooled(Bubblewrap):
    """The same backend with up to `size` sandboxes ready; results are the same.

    A kind is kept ready from its first run on; `prepare` starts it earlier. Several kinds share the size, and
    the least recently used one is dropped first. `close` ends all waiting sandboxes.
    """

    def __init__(
        self, size: int, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 1 <= size <= MOST:
            raise WorkError(f"the pool size {size} is not valid", remedy=f"use 1 to {MOST} sandboxes")
        self._size = size
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._process = os.getpid()
        self._kinds: dict[_Kind, _Stock] = {}  # the one asked for last stands last
        self._changed = threading.Condition()
        self._closed = False
        self._keeper: threading.Thread | None = None

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        """Run the program in a waiting sandbox, or else in a new one. Raises WorkError as the backend does."""
        if (
            os.getpid() != self._process or program.dialogue is not None or program.relay is not None
        ):  # forked: what waits is the parent's
            return super().run(program, bounds, cancel)
        kind = _kind(program, bounds)
        sandbox = self._take(kind)
        try:
            if sandbox is not None:
                run_result = run_in(sandbox, program, cancel)
                if not sandbox.untouched:
                    return run_result  # else it died while it waited
            return super().run(program, bounds, cancel)
        finally:
            self._ask(kind)

    def prepare(self, program: Program, bounds: Bounds, seconds: float = 10.0) -> int:
        """Prepare sandboxes for programs like this one, wait until they are ready, and return their number."""
        kind = _kind(program, bounds)
        self._ask(kind)
        with self._changed:
            self._changed.wait_for(lambda: kind not in self._kinds or self._missing() is None, seconds)
            stock = self._kinds.get(kind)
            return 0 if stock is None else len(stock.waiting)

    def close(self) -> None:
        """End all waiting sandboxes; later runs start cold. Idempotent."""
        if os.getpid() != self._process:
            return
        with self._changed:
            self._closed = True
            keeper, self._keeper = self._keeper, None
            left = [sandbox for stock in self._kinds.values() for _, sandbox in stock.waiting]
            self._kinds.clear()
            self._changed.notify_all()
        for sandbox in left:
            sandbox.close()
        if keeper is not None:
            keeper.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, kind: _Kind) -> Sandbox | None:
        """The oldest live sandbox that waits; it is handed out only once."""
        while True:
            with self._changed:
                stock = self._kinds.get(kind)
                if stock is None or not stock.waiting:
                    return None
                _, sandbox = stock.waiting.popleft()
            if sandbox.alive:
                return sandbox
            sandbox.close()

    def _ask(self, kind: _Kind) -> None:
        """Keep this kind ready for later runs."""
        with self._changed:
            if self._closed:
                return
            stock = self._kinds.pop(kind, None) or _Stock(0.0)
            stock.requested_at = self._clock()
            self._kinds[kind] = stock
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = threading.Thread(target=self._keep, name="sandbox-pool", daemon=True)
                self._keeper.start()
            self._changed.notify_all()

    def _keep(self) -> None:
        """Start missing sandboxes and end superfluous or old ones, until the pool is closed."""
        while True:
            with self._changed:
                if self._closed:
                    return
                ends = self._superfluous()
                kind = self._missing()
                if not ends and kind is None:
                    self._changed.notify_all()
                    self._changed.wait(self._idle_seconds / 2)
                    continue
            for sandbox in ends:
                sandbox.close()
            if kind is not None:
                self._start(kind)

    def _start(self, kind: _Kind) -> None:
        try:
            sandbox = start(Setup(kind.bounds, dict(kind.environment), packages=kind.packages))
        except (NotStartedError, WorkError):  # the next run starts cold and reports the reason
            with self._changed:
                self._kinds.pop(kind, None)
                self._changed.notify_all()
            return
        with self._changed:
            stock = self._kinds.get(kind)
            if stock is not None:  # and so not closed either
                stock.waiting.append((self._clock(), sandbox))
                return
        sandbox.close()

    def _superfluous(self) -> list[Sandbox]:
        """Remove and return sandboxes of unused kinds, those that waited too long, and those above their share."""
        oldest = self._clock() - self._idle_seconds
        ends: list[Sandbox] = []
        for kind in list(self._kinds):
            if self._kinds[kind].requested_at < oldest or len(self._kinds) > self._size:
                ends += [sandbox for _, sandbox in self._kinds.pop(kind).waiting]
        for stock in self._kinds.values():
            while stock.waiting and (stock.waiting[0][0] < oldest or len(stock.waiting) > self._share()):
                ends.append(stock.waiting.popleft()[1])
        return ends

    def _missing(self) -> _Kind | None:
        """The kind asked for last that has fewer than its share."""
        return next((kind for kind in reversed(self._kinds) if len(self._kinds[kind].waiting) < self._share()), None)

    def _share(self) -> int:
        return max(1, self._size // max(1, len(self._kinds)))


def _kind(program: Program, bounds: Bounds) -> _Kind:
    return _Kind(bounds, tuple(program.environment.items()), program.packages)

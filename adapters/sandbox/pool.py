"""A warm pool: sandboxes whose handshake is done and that wait, each for the one program that it will run.

What waits is what every cold run is before its `G`: no code, no input and no working folder is in it, and its
limits are set once it is let go. So isolation and single use are those of a cold run, and only the start has
been paid before. A sandbox is made for exactly one set of bounds and one environment, hash seed included;
whatever asks for another runs cold. When the engine dies, each of them reads the end of its go pipe and ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.model import Bounds, Ended, NotStartedError, Program
from adapters.sandbox.process import Sandbox
from engine.errors import WorkError

IDLE_SECONDS = 300.0
"""How long a sandbox waits, and how long a kind that nobody asks for is kept ready."""

MOST = 64
"""Sandboxes that wait at most, whatever is asked for: each is three processes and a dozen descriptors."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a sandbox is bound to from its start on."""

    bounds: Bounds
    environment: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Kept:
    """The sandboxes of one kind that wait, oldest first, and when it was asked for last."""

    asked: float
    waiting: deque[tuple[float, Sandbox]] = field(default_factory=deque)


class Pooled:
    """The same backend with up to `size` sandboxes ready; results are of the same type and mean the same.

    A kind is kept from its first run on, and `prepare` starts it ahead of that. With several kinds the size is
    shared, and the one that was not asked for longest goes first. `close` ends everything that waits.
    """

    def __init__(
        self,
        backend: Bubblewrap,
        size: int,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 1 <= size <= MOST:
            raise WorkError(f"a pool of {size} sandboxes cannot be kept", remedy=f"keep 1 to {MOST}")
        self._backend = backend
        self._size = size
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._process = os.getpid()
        self._kinds: dict[_Kind, _Kept] = {}  # the one asked for last stands last
        self._changed = threading.Condition()
        self._closed = False
        self._keeper: threading.Thread | None = None

    @property
    def name(self) -> str:
        """As it stands in policies and records: a pool is no other boundary."""
        return self._backend.name

    def available(self) -> str | None:
        """None, or what this machine lacks, in words that say what to do."""
        return self._backend.available()

    def machine(self) -> str:
        """`sha256:…` of everything that a probe's result depends on."""
        return self._backend.machine()

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        """Run it in a sandbox that waits, or else in a new one. Raises WorkError as the backend does."""
        if os.getpid() != self._process:  # forked: what waits is the parent's
            return self._backend.run(program, bounds, cancel)
        kind = _kind(program, bounds)
        sandbox = self._taken(kind)
        try:
            if sandbox is None:
                return self._backend.run(program, bounds, cancel)
            ended = sandbox.run(program, cancel)
            if sandbox.untouched:  # it died while it waited
                return self._backend.run(program, bounds, cancel)
            return ended
        finally:
            self._ask(kind)

    def prepare(self, program: Program, bounds: Bounds, seconds: float = 10.0) -> int:
        """Have sandboxes ready for programs like this one; wait until they are, and tell how many there are."""
        kind = _kind(program, bounds)
        self._ask(kind)
        with self._changed:
            self._changed.wait_for(lambda: kind not in self._kinds or self._missing() is None, seconds)
            kept = self._kinds.get(kind)
            return 0 if kept is None else len(kept.waiting)

    def close(self) -> None:
        """End everything that waits; from now on every run is cold. A second time changes nothing."""
        if os.getpid() != self._process:
            return
        with self._changed:
            self._closed = True
            keeper, self._keeper = self._keeper, None
            left = [sandbox for kept in self._kinds.values() for _, sandbox in kept.waiting]
            self._kinds.clear()
            self._changed.notify_all()
        for sandbox in left:
            sandbox.close()
        if keeper is not None:
            keeper.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _taken(self, kind: _Kind) -> Sandbox | None:
        """The oldest one that waits and lives; whoever takes it is the only one."""
        while True:
            with self._changed:
                kept = self._kinds.get(kind)
                if kept is None or not kept.waiting:
                    return None
                _, sandbox = kept.waiting.popleft()
            if sandbox.alive:
                return sandbox
            sandbox.close()

    def _ask(self, kind: _Kind) -> None:
        """Keep this kind ready from now on."""
        with self._changed:
            if self._closed:
                return
            kept = self._kinds.pop(kind, None) or _Kept(0.0)
            kept.asked = self._clock()
            self._kinds[kind] = kept
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = threading.Thread(target=self._keep, name="sandbox-pool", daemon=True)
                self._keeper.start()
            self._changed.notify_all()

    def _keep(self) -> None:
        """Start what is missing and end what is too many or too old, until the pool is closed."""
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
            sandbox = Sandbox.ready(kind.bounds, dict(kind.environment))
        except (NotStartedError, WorkError):  # whoever asks next runs cold, and is told why
            with self._changed:
                self._kinds.pop(kind, None)
                self._changed.notify_all()
            return
        with self._changed:
            kept = self._kinds.get(kind)
            if kept is not None:  # and so not closed either
                kept.waiting.append((self._clock(), sandbox))
                return
        sandbox.close()

    def _superfluous(self) -> list[Sandbox]:
        """What nobody asked for any more, what has waited too long, and what is above its share; taken out."""
        oldest = self._clock() - self._idle_seconds
        ends: list[Sandbox] = []
        for kind in list(self._kinds):
            if self._kinds[kind].asked < oldest or len(self._kinds) > self._size:
                ends += [sandbox for _, sandbox in self._kinds.pop(kind).waiting]
        for kept in self._kinds.values():
            while kept.waiting and (kept.waiting[0][0] < oldest or len(kept.waiting) > self._share()):
                ends.append(kept.waiting.popleft()[1])
        return ends

    def _missing(self) -> _Kind | None:
        """The kind asked for last that has fewer than its share."""
        return next((kind for kind in reversed(self._kinds) if len(self._kinds[kind].waiting) < self._share()), None)

    def _share(self) -> int:
        return max(1, self._size // max(1, len(self._kinds)))


def _kind(program: Program, bounds: Bounds) -> _Kind:
    return _Kind(bounds, tuple(program.environment.items()))

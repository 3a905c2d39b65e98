"""What the sandboxes of this machine were shown to hold: tried on first need, kept, and tried again when it must be.

A result is believed when this installation signed it, it was taken on exactly this machine (kernel, boot,
bubblewrap, interpreters, filter, user, cgroups, our own code) and it is younger than a day. Anything else means a
new probe. Where there is none to be had, nothing is claimed, and whoever needs a boundary is refused (H05).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adapters.sandbox.model import Backend
from adapters.sandbox.probe import code
from engine.canonical import canonical, digest
from engine.errors import EngineError, WorkError
from engine.files import shown
from engine.model import Boundary, Probe
from engine.points import SandboxFacts
from engine.sandboxes import cache
from engine.sandboxes.registry import Registered, registered

__all__ = ["Sandboxes", "Tried", "facts_of", "registered", "subject_of"]

KEPT_SECONDS = 86_400
"""A result is taken again after a day at most: what a machine enforces can change without anything that we look at."""

AHEAD_SECONDS = 60
"""Clocks are set back by as much; a result from further in the future is none."""

RETRY_SECONDS = 60
"""After a probe that failed or found a boundary open: a machine under load is tried again, but not at each request."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a backend on the machine as it is now, or in words why there is none."""

    result: cache.Result | None
    machine: str | None
    problem: str | None = None


class Sandboxes:
    """All registered backends of this machine; threads may share it. Trying one takes seconds, once."""

    def __init__(
        self,
        state: Path,
        clock: Callable[[], int],
        backends: Callable[[], Mapping[str, Registered]] = registered,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        """`clock` gives seconds since 1970 UTC; results are kept below `state`; `progress` hears of each probe."""
        self._state = state
        self._clock = clock
        self._make = backends
        self._progress = progress
        self._backends: Mapping[str, Registered] | None = None
        self._tried: dict[str, Tried] = {}
        self._retry: dict[str, int] = {}
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def facts(self, name: str, seconds: int | None = None) -> SandboxFacts:
        """What a backend was shown to hold, at most so many seconds ago; nothing where it cannot be tried."""
        return facts_of(self.tried(name, seconds)) if name in self._all() else SandboxFacts()

    def backend(self, name: str) -> Backend:
        """The backend of this name. Raises WorkError where none is registered."""
        entry = self._all().get(name)
        if entry is None:
            raise WorkError(
                f"there is no sandbox `{shown(name, 40)}` here",
                remedy="run `engine doctor --sandbox`, install what it names, and ask again",
                code="engine.limit_unenforceable",
            )
        return entry.backend

    def tried(self, name: str, seconds: int | None = None) -> Tried:
        """The result for a registered backend: kept, or made now where it is older than that. Raises nothing."""
        entry = self._all()[name]
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            try:
                return self._current(name, entry, KEPT_SECONDS if seconds is None else min(seconds, KEPT_SECONDS))
            except (EngineError, OSError) as error:
                return Tried(None, None, _words(error))

    def close(self) -> None:
        """End whatever backends keep ready."""
        for entry in (self._backends or {}).values():
            entry.close()

    def _all(self) -> Mapping[str, Registered]:
        with self._guard:
            if self._backends is None:
                self._backends = self._make()
            return self._backends

    def _current(self, name: str, entry: Registered, seconds: int) -> Tried:
        if (missing := entry.backend.available()) is not None:
            return Tried(None, None, missing)
        machine, now = subject_of(entry), self._clock()
        known = self._tried.get(name) or Tried(cache.read(self._state, name), machine)
        stands = _stands(known.result, machine, now - seconds, now)
        if known.machine != machine or not (stands or self._waits(name, now)):
            known = self._again(name, entry, machine, now)
        self._tried[name] = known
        return known

    def _waits(self, name: str, now: int) -> bool:
        """Whether a probe that did not end well was made so lately that it is not made again yet."""
        return self._retry.get(name, 0) - RETRY_SECONDS - AHEAD_SECONDS <= now < self._retry.get(name, 0)

    def _again(self, name: str, entry: Registered, machine: str, now: int) -> Tried:
        self._retry[name] = now + RETRY_SECONDS
        self._progress(f"probing the sandbox {name}", 0, 0)
        try:
            result = cache.Result(backend=name, subject=machine, probed_at=now, rows=entry.probe())
        except (EngineError, OSError) as error:
            return Tried(None, machine, _words(error))
        if result.whole:
            cache.write(self._state, result)
        return Tried(result, machine)


def _stands(result: cache.Result | None, machine: str, since: int, now: int) -> bool:
    """Whether a result is of this machine, young, and of everything."""
    if result is None or result.subject != machine or not result.whole:
        return False
    return since <= result.probed_at <= now + AHEAD_SECONDS


def _words(error: EngineError | OSError) -> str:
    told = (
        f"{error.message}; {error.remedy}" if isinstance(error, EngineError) else os.strerror(error.errno or 0).lower()
    )
    return f"it cannot be tried: {told}"


def subject_of(entry: Registered) -> str:
    """The digest of all that a result depends on: the machine as the backend sees it, where we are on it, the probe."""
    return digest(canonical({"machine": entry.backend.machine(), "place": _place(), "probe": code()}))


def _place() -> list[str]:
    """The user namespace of this process and the confinement that it is under: a container is not its host."""
    place = []
    with suppress(OSError):
        place.append(str(Path("/proc/self/ns/user").readlink()))
    with suppress(OSError):
        place.append(Path("/proc/self/attr/current").read_text(encoding="utf-8", errors="replace"))
    return place


def facts_of(tried: Tried) -> SandboxFacts:
    """A result as facts of a decision; a boundary that is not enforced is there too, and says so."""
    result, machine = tried.result, tried.machine
    if result is None or machine is None:
        return SandboxFacts()
    make = partial(Boundary, backend=result.backend)
    boundaries = tuple(
        make(boundary=row.boundary, kind=row.kind, enforced=row.enforced, evidence=row.evidence) for row in result.rows
    )
    probe = Probe(
        id=result.backend, subject=result.subject, machine=machine, probed_at=result.probed_at, authentic=True
    )
    return SandboxFacts(boundaries, (probe,))

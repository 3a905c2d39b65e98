"""Evidence of what the sandboxes of this machine enforce: probed on first use, cached, probed again when stale.

A result is believed when this installation signed it, it was taken on exactly this machine (kernel, boot,
bubblewrap, interpreters, filter, user, cgroups, our own code) and it is younger than a day. Anything else means a
new probe. Without a result there is no evidence, and work that needs a boundary is refused (H05).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from admission_adapters.sandbox.model import Backend
from engine.documents.canonical import canonical, digest
from engine.documents.files import printable
from engine.errors import EngineError, UnenforceableError
from engine.model import Boundary, Probe, SandboxFacts
from engine.sandboxes import cache
from engine.sandboxes.cache import AHEAD_SECONDS, KEPT_SECONDS
from engine.sandboxes.registry import Registered

RETRY_SECONDS = 60
"""After a probe that failed or found a boundary open: a machine under load is tried again, but not at each request."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a backend, and the state of this machine; None for what is not known."""

    result: cache.Result | None
    machine: str | None


class Sandboxes:
    """All registered backends of this machine; thread-safe. The first probe of one takes seconds."""

    def __init__(
        self,
        state: Path,
        clock: Callable[[], int],
        backends: Callable[[], Mapping[str, Registered]],
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        """`clock`: seconds since 1970 UTC; results are stored in `state`; `progress` is called for each probe."""
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
        """The evidence of a backend, at most this many seconds old; nothing if it cannot be probed."""
        return facts_of(self.tried(name, seconds)) if name in self._all() else SandboxFacts()

    def backend(self, name: str) -> Backend:
        """The backend of this name. Raises WorkError where none is registered."""
        entry = self._all().get(name)
        if entry is None:
            raise UnenforceableError(
                f"there is no sandbox `{printable(name, 40)}` here",
                remedy="run `engine doctor --sandbox`, install what it names, and repeat the request",
            )
        return entry.backend

    def tried(self, name: str, seconds: int | None = None) -> Tried:
        """The result for a registered backend: from the cache, or probed now if it is older than that. Never raises."""
        entry = self._all()[name]
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            try:
                return self._current(name, entry, KEPT_SECONDS if seconds is None else min(seconds, KEPT_SECONDS))
            except (EngineError, OSError):
                return Tried(None, None)

    def close(self) -> None:
        """End all sandboxes that backends keep ready."""
        for entry in (self._backends or {}).values():
            entry.close()

    def _all(self) -> Mapping[str, Registered]:
        with self._guard:
            if self._backends is None:
                self._backends = self._make()
            return self._backends

    def _current(self, name: str, entry: Registered, seconds: int) -> Tried:
        if entry.backend.available() is not None:
            return Tried(None, None)
        machine, now = subject_of(entry), self._clock()
        known = self._tried.get(name) or Tried(cache.read(self._state, name), machine)
        stands = known.result is not None and known.result.whole and known.result.stands(machine, now, seconds)
        if known.machine != machine or not (stands or self._waits(name, now)):
            known = self._probe(name, entry, machine, now)
        self._tried[name] = known
        return known

    def _waits(self, name: str, now: int) -> bool:
        """Whether a probe that did not end well was made so lately that it is not made again yet."""
        return self._retry.get(name, 0) - RETRY_SECONDS - AHEAD_SECONDS <= now < self._retry.get(name, 0)

    def _probe(self, name: str, entry: Registered, machine: str, now: int) -> Tried:
        self._retry[name] = now + RETRY_SECONDS
        self._progress(f"probing the sandbox {name}", 0, 0)
        try:
            result = cache.Result(backend=name, subject=machine, probed_at=now, rows=entry.probe())
        except (EngineError, OSError):
            return Tried(None, machine)
        if result.whole:
            cache.write(self._state, result)
        return Tried(result, machine)


def subject_of(entry: Registered) -> str:
    """The digest of all that a result depends on: the machine and our code as the backend sees them, where we are."""
    return digest(canonical({"machine": entry.backend.machine(), "place": _place()}))


def _place() -> list[str]:
    """The user namespace of this process and the confinement that it is under: a container is not its host."""
    place = []
    with suppress(OSError):
        place.append(str(Path("/proc/self/ns/user").readlink()))
    with suppress(OSError):
        place.append(Path("/proc/self/attr/current").read_text(encoding="utf-8", errors="replace"))
    return place


def facts_of(tried: Tried) -> SandboxFacts:
    """A result as facts of a decision, including boundaries that are not enforced."""
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

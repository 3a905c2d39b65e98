"""The fast lane starts OPA once for each policy: compiling the rules takes longer than most tests.

Engines of the test process lease an OPA that serves the same archives, and leave it running. Commands and servers
lease the one that serves the policy of this tree. `scripts/test --all` starts OPA as a user does, and so do tests
marked `own_opa`: they look at the process, stop it or damage its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from engine.binaries import Binary
from engine.errors import DecideError
from engine.opa.server import Served, Server
from engine.settings import OpaLimits

_IDLE = 3
"""How many are kept that nobody leases, beside the one of this tree."""
_start = Server.start


class Lease(Server):
    """An OPA that goes on when the lease ends; it has no process id, so nobody can end it for the others."""

    def __init__(self, folder: Path, served: Served, limits: OpaLimits, ended: Callable[[], None]) -> None:
        super().__init__(folder, -1, served, limits)
        self._ended, self.alive = ended, True

    def probe(self, seconds: float) -> None:
        """Once, when the lease begins: up to 32 engines of a worker would ask every second whether OPA answers."""
        if self._started.is_set():
            return
        super().probe(seconds)
        self._started.set()

    def close(self) -> None:
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        for client in (self._client, self._prober):
            if client is not None:
                client.close()
        self._ended()


class Pool(ExitStack):
    """The OPAs of the test process, and how many leases each has."""

    def __init__(self) -> None:
        super().__init__()
        self.lends = False
        self._lock = threading.Lock()
        self._running: dict[str, Server] = {}
        self._leases: dict[str, int] = {}
        self._kept: str | None = None
        self._note: Path | None = None

    def start(
        self, binary: Binary, served: Served, limits: OpaLimits, on_exit: Callable[[], None] = lambda: None
    ) -> Server:
        """In the place of `Server.start`."""
        key = _key(binary, served, limits) if self.lends else None
        if key is None:
            return _start(binary, served, limits, on_exit)
        with self._lock:
            found = self._running.get(key)
            if found is None or not found.alive:
                found = _start(binary, served, limits)
                try:
                    found.ready()
                except DecideError:
                    return found  # asked again by its owner, it refuses in the same words
                self._end_idle()
                self._running[key], self._leases[key] = found, 0
            self._leases[key] += 1

        def ended() -> None:
            self._leases[key] -= 1

        return Lease(found.folder, found.served, limits, ended)

    def noted(self, cache: Path) -> Path | None:
        """The file in which other processes find the OPA that serves the policy of this tree; None if none is lent."""
        from engine.engine import Engine
        from engine.settings import Settings

        if not self.lends:
            return None
        if self._kept in self._running and self._running[self._kept].alive:
            return self._note
        folder = Path(self.enter_context(tempfile.TemporaryDirectory()))
        with Engine(Settings(state=folder / "state", cache=cache)) as engine:
            assert engine.policy is not None
            key, found = next(
                (key, one) for key, one in self._running.items() if one.served.revisions == engine.policy.revisions
            )
            self._kept, self._note = key, folder / "opa.json"
            self._note.write_text(json.dumps({"key": key, "folder": str(found.folder)}))
        return self._note

    def end(self) -> None:
        """End all of them."""
        self.lends = False
        for server in self._running.values():
            server.close()
        self.close()

    def _end_idle(self) -> None:
        idle = [key for key, leases in self._leases.items() if leases == 0 and key != self._kept]
        for key in idle[: max(len(idle) - _IDLE, 0)]:
            del self._leases[key]
            self._running.pop(key).close()


POOL = Pool()


def lend() -> None:
    """Engines of this process lease their OPAs while `POOL.lends`."""
    Server.start = POOL.start  # type: ignore[method-assign]


def lease(note: Path) -> None:
    """Engines of this process lease the OPA that another process keeps, if they serve the same policy."""
    noted = json.loads(note.read_text(encoding="utf-8"))
    folder = Path(noted["folder"])

    def start(binary: Binary, served: Served, limits: OpaLimits, on_exit: Callable[[], None] = lambda: None) -> Server:
        if _key(binary, replace(served, points=None), limits) != noted["key"]:
            return _start(binary, served, limits, on_exit)
        there = Served(folder / "rules.tar.gz", folder / "values.tar.gz", served.revisions)
        return Lease(folder, there, limits, lambda: None)

    Server.start = start  # type: ignore[method-assign]


def _key(binary: Binary, served: Served, limits: OpaLimits) -> str | None:
    """What engines must have in common to lease one OPA; None if this engine starts its own."""
    if served.verification_key is not None:
        return None
    try:
        files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (served.rules, served.values)]
        state = binary.path.stat().st_mtime_ns
    except OSError:
        return None
    points = None if served.points is None else sorted(served.points)
    return json.dumps([str(binary.path), state, served.revisions.model_dump(), files, points, limits.input_bytes])

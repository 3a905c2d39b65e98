"""The package environments of this machine, each verified before it is used.

All files are read when an environment is used for the first time, when it was replaced, and at least once a day. The
result is kept signed, as those of probes are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from admission_adapters.sandbox import packages as built
from admission_adapters.sandbox.packages import Packages
from engine.documents.canonical import canonical, digest
from engine.errors import WorkError
from engine.sandboxes import cache


class PackageEnvironments:
    """Finds environments by name; thread-safe."""

    def __init__(self, state: Path, folder: Callable[[], Path], clock: Callable[[], int]) -> None:
        """`clock`: seconds since 1970 UTC; results are stored in `state`; `folder` has the environments."""
        self._state = state
        self._folder = folder
        self._clock = clock
        self._known: dict[str, cache.Result] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> Packages | None:
        """The environment with the digest that its files have now; None if there is none. Never raises."""
        try:
            with self._lock:
                return self._verified(name)
        except (OSError, WorkError):
            return None

    def _verified(self, name: str) -> Packages | None:
        found = built.find(name, self._folder())
        if found is None:
            return None
        kept, now = f"packages_{name}", self._clock()
        subject = digest(canonical(built.identity(found)))
        known = self._known.get(name) or cache.read(self._state, kept)
        if known is not None and known.stands(subject, now):
            self._known[name] = known
            return found
        tree = built.tree_of(found.folder)
        if tree != found.tree:
            return replace(found, tree=tree)
        self._known[name] = cache.Result(backend=kept, subject=subject, probed_at=now, rows=())
        cache.write(self._state, self._known[name])
        return found

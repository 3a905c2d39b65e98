"""Policies to serve, and what the tests of OPA as a process share."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.opa.binary import Binary, find_binary
from engine.opa.generation import Generation
from engine.opa.supervisor import Supervisor
from engine.opa.watch import SupervisionLimits
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.settings import OpaLimits, Settings

LIMITS = OpaLimits(start_seconds=20, answer_seconds=10)
DOCUMENT = {"point": "nowhere"}
DENIED = {"outcome": "deny", "findings": []}
"""What every policy says of a point that it does not know."""


def policy_of(cache: Path, *values: str) -> PolicyBundle:
    """The policy of this tree with these values laid over it."""
    settings = Settings(cache=cache)
    sources = PolicySources(settings.rego, settings.policy, settings.recipe, values)
    return build(sources, POINTS, find_binary(), cache)


class Events:
    """What a supervisor told, by name."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()

    def __call__(self, name: str, fields: dict[str, Any]) -> None:
        with self._changed:
            self.told.append((name, fields))
            self._changed.notify_all()

    def of(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.told if told == name]

    def wait(self, name: str, count: int = 1) -> dict[str, Any]:
        """The fields of the event of this name that comes as the `count`-th; fails when it never comes."""
        assert self.comes(name, count, 60), self.told
        return self.of(name)[count - 1]

    def comes(self, name: str, count: int, seconds: float) -> bool:
        """Whether so many events of this name come within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.of(name)) >= count, seconds)


@contextmanager
def supervised(
    policy: PolicyBundle, limits: OpaLimits = LIMITS, binary: Binary | None = None, **supervision: Any
) -> Iterator[tuple[Supervisor[PolicyBundle], Events]]:
    """A supervisor with folders of its own; nothing of it is left afterwards."""
    events = Events()
    others = set(threading.enumerate())  # an engine that all tests share has threads of these names too
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="opa-", dir="/tmp") as folder:
        tempfile.tempdir = folder
        try:
            supervisor = Supervisor.start(
                binary or find_binary(), policy, limits, events, supervision=SupervisionLimits(**supervision)
            )
            try:
                yield supervisor, events
            finally:
                supervisor.close()
            assert not [path for path in (Path(folder) / f"admission-engine-{os.getuid()}").iterdir() if path.is_dir()]
        finally:
            tempfile.tempdir = before
    until(lambda: not [told for told in events.of("opa_started") if Path(f"/proc/{told['pid']}").exists()])
    until(lambda: not [one for one in set(threading.enumerate()) - others if one.name.startswith("opa")])


def until(what: Callable[[], bool]) -> None:
    """Wait for something that is sure to happen soon; fails when it does not."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def revisions(generation: Generation[PolicyBundle]) -> dict[str, Any]:
    """What OPA's provenance tells when it serves the policy of this generation."""
    found = generation.policy.revisions
    return {"rules.tar.gz": {"revision": found.rules}, "values.tar.gz": {"revision": found.values}}

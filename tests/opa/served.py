"""Policies to serve, and what the tests of OPA as a process share."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.binaries import Binary, find_binary
from engine.opa.generation import Generation
from engine.opa.server import Served, Server
from engine.opa.supervisor import SupervisionLimits, Supervisor
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.settings import OpaLimits, Settings
from tests.processes import until

LIMITS = OpaLimits(start_seconds=60, answer_seconds=10)
DOCUMENT = {"point": "nowhere"}
DENIED = {"outcome": "deny", "findings": []}
"""What every policy says of a point that it does not know."""


def policy_of(cache: Path, *values: str) -> PolicyBundle:
    """The policy of this tree with these values laid over it."""
    settings = Settings(cache=cache)
    sources = PolicySources(settings.rego, settings.policy, settings.recipe, values)
    return build(sources, POINTS, find_binary(), cache)


@contextmanager
def leased(supervisor: Supervisor[PolicyBundle]) -> Iterator[Generation[PolicyBundle]]:
    """The current generation, held around a block as a request holds it."""
    generation = supervisor.acquire()
    try:
        yield generation
    finally:
        supervisor.release(generation)


def files(policy: PolicyBundle, key: Path | None = None) -> Served:
    """What OPA is given of it."""
    return Served(policy.rules.path, policy.values.path, policy.revisions, key)


def files_of_a_point(policy: PolicyBundle) -> Served:
    """`files` with the rules of one point, which load in a third of the time."""
    return replace(files(policy), points=frozenset({"license"}))


@contextmanager
def serving(served: Served) -> Iterator[Server]:
    """An OPA that answers with this; nothing of it is left afterwards."""
    with closing(Server.start(find_binary(), served, LIMITS)) as server:
        server.ready()
        yield server


class Events:
    """The events of a supervisor, by name."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()

    def __call__(self, name: str, fields: dict[str, Any]) -> None:
        with self._changed:
            self.seen.append((name, fields))
            self._changed.notify_all()

    def of(self, name: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.seen if event == name]

    def wait(self, name: str, count: int = 1) -> dict[str, Any]:
        """The fields of the event of this name that comes as the `count`-th; fails when it never comes."""
        assert self.comes(name, count, 60), self.seen
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
            own = SupervisionLimits(**supervision)
            with closing(
                Supervisor(binary or find_binary(), policy, files_of_a_point, limits, events, own)
            ) as supervisor:
                yield supervisor, events
            assert not [path for path in (Path(folder) / f"admission-engine-{os.getuid()}").iterdir() if path.is_dir()]
        finally:
            tempfile.tempdir = before
    until(lambda: not [event for event in events.of("opa_started") if Path(f"/proc/{event['pid']}").exists()])
    until(lambda: not [one for one in set(threading.enumerate()) - others if one.name.startswith("opa")])


def revisions(generation: Generation[PolicyBundle]) -> dict[str, Any]:
    """What OPA's provenance tells when it serves the policy of this generation."""
    found = generation.policy.revisions
    return {"rules.tar.gz": {"revision": found.rules}, "values.tar.gz": {"revision": found.values}}

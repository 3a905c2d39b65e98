"""Three servers over one PostgreSQL serve the release that was activated once for all of them, or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.errors import Exit
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.release import Statement
from engine.policy_bundle.sources import PolicySources
from engine.state import open_shared
from tests.api.serving import ALLOWED, Serving, refused, serving
from tests.command import Command, Run, lines
from tests.conftest import ROOT
from tests.facilities import missing
from tests.policy_bundle.releases import Keys, released
from tests.postgres import SERVING, Server, running
from tests.processes import until

pytestmark = pytest.mark.own_opa

OUTCOMES = {1: "allow", 2: "deny", 3: "allow"}
"""What each release decides on the same request."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    if (lacking := missing("postgresql")) is not None:
        pytest.skip(lacking)
    with running() as server:
        yield server


@dataclass(frozen=True, slots=True)
class Made:
    """Releases of the policy, by number, and the keys that they are signed with."""

    keys: Keys
    folders: dict[int, Path]

    def statement(self, number: int) -> Statement:
        return Statement.model_validate_json((self.folders[number] / "release.json").read_bytes())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Made:
    folder = tmp_path_factory.mktemp("made")
    keys = Keys.make(folder / "keys")
    folders = {}
    for number, outcome in OUTCOMES.items():
        values = ("licenses.licenses.MIT.decision=refuse",) if outcome == "deny" else ()
        sources = PolicySources(ROOT / "rego", ROOT / "policy", ROOT / "bundles" / "default", values)
        bundle = build(sources, POINTS, find_binary(), cache)
        folders[number] = released(bundle, folder / str(number), keys, number)
    return Made(keys, folders)


@dataclass(slots=True)
class Fleet:
    """Engines with one state, each with a state folder and a folder of releases of its own."""

    folder: Path
    cache: Path
    made: Made
    address: str
    command: Command
    stack: ExitStack
    engines: dict[str, Serving] = field(default_factory=dict)

    def releases(self, name: str) -> Path:
        return self.folder / name / "releases"

    def give(self, number: int, *names: str) -> None:
        """Put a release where these engines look."""
        for name in names or self.engines:
            shutil.copytree(self.made.folders[number], self.releases(name) / f"release-{number}")

    def start(self, name: str, *numbers: int) -> Serving:
        """Start an engine that has these releases."""
        self.releases(name).mkdir(parents=True)
        self.give(1, name)
        for number in numbers:
            self.give(number, name)
        self.engines[name] = self.stack.enter_context(serving(*self._starting(name), env=self._database))
        return self.engines[name]

    def again(self, name: str) -> Serving:
        """Start an engine again that has ended."""
        self.engines[name] = self.stack.enter_context(serving(*self._starting(name), env=self._database))
        return self.engines[name]

    def refused(self, name: str) -> tuple[int, str]:
        folder, cache, *arguments = self._starting(name)
        assert isinstance(folder, Path)
        assert isinstance(cache, Path)
        return refused(folder, cache, *arguments, env=self._database)

    @property
    def _database(self) -> dict[str, str]:
        return {"ENGINE_STATE_DATABASE": self.address}

    def _starting(self, name: str) -> tuple[Any, ...]:
        options = ("--releases", self.releases(name), "--release-key", self.made.keys.public)
        return (self.folder / name, self.cache, *options)

    def activate(self, number: int, folder: Path | None = None) -> Run:
        """Activate a release for all engines, as a person with a terminal beside the database."""
        given = (folder or self.made.folders[number], "--release-key", self.made.keys.public)
        return self.command("policy", "activate", *given, "--reason", f"to {number}", "--state", self.address)

    def status(self) -> Run:
        return self.command("policy", "status", "--format", "json", "--state", self.address)

    def decided(self) -> dict[str, tuple[str, list[str]]]:
        """What each engine decides now: the outcome and its codes."""
        found = {}
        for name, engine in self.engines.items():
            document = engine.decide("license", ALLOWED).json
            decision = document.get("decision", document)
            found[name] = (decision["outcome"], [finding["code"] for finding in decision["findings"]])
        return found

    def outcomes(self) -> list[str]:
        return [outcome for outcome, _ in self.decided().values()]


@pytest.fixture
def fleet(tmp_path: Path, cache: Path, made: Made, postgres: Server, command: Command) -> Iterator[Fleet]:
    """Nothing runs yet; release 1 is active."""
    with ExitStack() as stack:
        address = postgres.address(postgres.database(), SERVING)
        fleet = Fleet(tmp_path, cache, made, address, command, stack)
        assert fleet.activate(1).code == 0
        yield fleet


def ready(engine: Serving) -> int:
    return engine.ask("GET", "/ready").status


def test_one_activation_changes_all_and_each_records_it(fleet: Fleet) -> None:
    for name in ("one", "two", "three"):
        fleet.start(name, 2, 3)
    assert fleet.outcomes() == ["allow"] * 3
    for number in (2, 3):
        done = fleet.activate(number)
        assert (done.code, done.stderr) == (0, "")
        assert fleet.made.statement(number).digest in done.stdout
        assert fleet.outcomes() == [OUTCOMES[number]] * 3
    told = fleet.status()
    assert told.code == 0
    assert [(row["sequence"], row["state"], row["reason"]) for row in told.json["activations"]] == [
        (3, "active", "to 3"),
        (2, "active", "to 2"),
        (1, "active", "to 1"),
    ]
    assert {row["serving"] for row in told.json["engines"]} == {fleet.made.statement(3).digest}
    for engine in fleet.engines.values():
        assert engine.stop() == 0
        found = [line for line in lines(engine.state) if line["kind"] == "policy"]
        assert [(line["outcome"], line["release"]["sequence"], line["reason"]) for line in found] == [
            ("started", 1, None),
            ("activated", 2, "to 2"),
            ("activated", 3, "to 3"),
        ]
    assert fleet.status().json["engines"] == []

"""The command line as a user has it: `python -m engine …` in a process of its own, and what it left."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.documents.files import load
from engine.record.layout import DECISIONS, EVENTS
from engine.record.verify import verify
from engine.settings import ReadLimits
from tests.conftest import BUNDLES, NOW, ROOT
from tests.shared_opa import POOL
from tests.warm import WarmCommands, forkable

SECONDS = 300.0
"""Far more than any of these commands needs; a command that hangs fails instead of the whole suite."""


def measured() -> dict[str, str]:
    """What a process is told where coverage is measured."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


@dataclass(frozen=True, slots=True)
class Run:
    """A command that ended: its exit code and what it said."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.stdout)

    def refused(self, *said: str, code: int = 2) -> None:
        """It ended with this code, printed nothing, and said all of this on standard error."""
        assert (self.code, self.stdout) == (code, ""), self.stdout + self.stderr
        assert [words for words in said if words not in self.stderr] == [], self.stderr


@dataclass(frozen=True, slots=True)
class Command:
    """Runs `engine …` as a user with this home folder, policy cache and state; each has one to itself."""

    home: Path
    cache: Path

    @classmethod
    def of(cls, folder: Path, cache: Path) -> Command:
        """A user who has never run the engine before, but for the built policy."""
        home = folder / "home"
        home.mkdir()
        return cls(home, cache)

    @property
    def state(self) -> Path:
        """The state folder that is used where no `--state` is given."""
        return self.home / "state"

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Only PATH is taken from the environment of the tests."""
        own = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT}/adapters",
            "HOME": str(self.home),
            "ENGINE_STATE_DIR": str(self.state),
            "XDG_CACHE_HOME": str(self.cache.parent),
        }
        return own | measured() | dict(changes or {})

    def argv(self, *arguments: str | Path) -> list[str]:
        """The command as an argument list."""
        return [sys.executable, "-m", "engine", *map(str, arguments)]

    def __call__(
        self,
        *arguments: str | Path,
        cwd: Path = ROOT,
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> Run:
        """Run `engine ARGUMENTS…` to its end. Whatever it was given, it shows no traceback.

        In the fast lane it is a fork of a process that has imported the engine, if it has no `prefix`.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        environment = self.environment(env)
        if not prefix and forkable(environment):
            opa = POOL.noted(self.cache)
            done = warm().run([*map(str, arguments)], cwd, environment, data, SECONDS, opa)
        else:
            line = [*prefix, *self.argv(*arguments)]
            done = subprocess.run(
                line, cwd=cwd, env=environment, input=data, capture_output=True, timeout=SECONDS, check=False
            )
        run = Run(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
        assert "Traceback" not in run.stdout + run.stderr, run.stderr
        return run

    def check(self, *arguments: str | Path, **how: Any) -> Run:
        """`engine check` at the moment that fits the fixtures."""
        return self("check", *arguments, "--now", NOW, **how)

    def into(self, output: int, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command with its standard output on this descriptor."""
        argv, environment = self.argv(*arguments), self.environment()
        return subprocess.run(
            argv, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.PIPE, check=False, timeout=SECONDS
        )

    def reports(self, *arguments: str | Path, **how: Any) -> list[dict[str, Any]]:
        """The reports of `engine check --format json`."""
        reports: list[dict[str, Any]] = self.check(*arguments, "--format", "json", **how).json["reports"]
        return reports


@cache
def warm() -> WarmCommands:
    """The process of this worker that has imported the engine."""
    commands = WarmCommands({"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT}/adapters"})
    atexit.register(commands.close)
    return commands


def codes(report: Mapping[str, Any]) -> list[str]:
    """The codes of one report's findings, each once."""
    return sorted({finding["code"] for finding in report["findings"]})


def lines(state: Path) -> list[dict[str, Any]]:
    """Every line of the record in a state folder that holds."""
    found = verify(state)
    assert found.ok, found.breaks
    path = state / DECISIONS
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def decisions(state: Path) -> list[dict[str, Any]]:
    """Every decision of a record that holds."""
    return [line for line in lines(state) if line["kind"] == "decision"]


def events(state: Path) -> list[dict[str, Any]]:
    """Every line of source_events.jsonl of a record that holds."""
    assert verify(state).ok
    return [json.loads(line) for line in (state / EVENTS).read_text(encoding="utf-8").splitlines()]


def written(state: Path) -> bytes:
    """All that the files of a state contain but its key, which is random by itself; an engine may write meanwhile."""
    texts = []
    for path in state.rglob("*"):
        if path.is_file() and path.name != "record.key":
            with suppress(FileNotFoundError):  # a checkpoint under its first name, which has got its last one
                texts.append(path.read_bytes())
    assert texts
    return b"\n".join(texts)


def edited(bundle: str, copy: Path, edit: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    """A copy of a fixture source bundle whose document went through `edit`, written as JSON; returns the copy."""
    shutil.copytree(BUNDLES / bundle, copy)
    path = copy / "bundle.yaml"
    document = load(path.read_bytes(), path.name, ReadLimits()).value
    edit(document)
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return copy


def ordinary() -> tuple[str, ...]:
    """What makes a command obey the permissions of files; root alone does not have to, and loses that right by it."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is missing: files that may not be read were NOT tried as root on this machine")
    return (setpriv, "--bounding-set=-dac_override,-dac_read_search")

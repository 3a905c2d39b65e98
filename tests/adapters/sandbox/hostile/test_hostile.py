"""Programs of our own that want out: each in the real sandbox, and without it as positive control."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from tests.adapters.sandbox.hostile import (
    files,
    folder,
    javascript,
    lifetimes,
    network,
    output,
    processes,
    resources,
    surroundings,
    syscalls,
)
from tests.adapters.sandbox.hostile.canaries import Host, as_told, end, host, marked
from tests.adapters.sandbox.hostile.model import WALL, Control, Hostile
from tests.adapters.sandbox.hostile.plain import run_plain
from tests.adapters.sandbox.programs import bounds
from tests.facilities import needs
from tests.lanes import lane
from tests.processes import alive, soon

_FAMILIES = {
    "files": files.PROGRAMS,
    "folder": folder.PROGRAMS,
    "javascript": javascript.PROGRAMS,
    "lifetimes": lifetimes.PROGRAMS,
    "network": network.PROGRAMS,
    "output": output.PROGRAMS,
    "processes": processes.PROGRAMS,
    "resources": resources.PROGRAMS,
    "surroundings": surroundings.PROGRAMS,
    "syscalls": syscalls.PROGRAMS,
}
_ALL = {f"{family}-{one.name}": one for family, programs in _FAMILIES.items() for one in programs}
_HARMFUL = sorted(name for name, one in _ALL.items() if one.control in {Control.HARM, Control.LIVES})
_SPOILS = {"files-reach_rename_away", *(name for name in _ALL if name.startswith("files-write_"))}
"""Those that change canaries where nothing keeps them from it."""

_OWN_SECONDS = 600.0
"""How long a program that waits would run without limits."""

_WALL_FACTORS = (1, 4, 16, 64)
"""A program that must reach its wall limit runs with longer ones until it has printed what it has to."""

_NODE = "javascript"
_UNFINISHED = "it did not come to its end"


def _each(names: Iterable[str]) -> list[ParameterSet]:
    """The programs of a lane; those in JavaScript need a Node.js."""
    node = needs("node")
    return [
        pytest.param(*each.values, marks=[*each.marks, *([node] if _ALL[str(*each.values)].language == _NODE else [])])
        for each in lane(names, _kind)
    ]


def _kind(name: str) -> list[tuple[str, str, frozenset[str]]]:
    """The fast lane has one program of each family in each language for each way to end."""
    return [(name.partition("-")[0], _ALL[name].language, _ALL[name].status)]


pytestmark = needs("bubblewrap", "x86_64")


@pytest.fixture(scope="module")
def canaries() -> Iterator[Host]:
    with host() as planted:
        yield planted


@pytest.fixture(scope="module")
def spare() -> Iterator[Host]:
    """For what goes on outside of the sandbox."""
    with host() as planted:
        yield planted


@pytest.fixture
def _careless(canaries: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that starts the sandbox has secrets and paths to other code in its environment."""
    for name, value in canaries.variables().items():
        monkeypatch.setenv(name, value)


def test_at_least_200_distinct_hostile_programs_exist() -> None:
    assert len({one.text for one in _ALL.values()}) == len(_ALL) >= 200


def test_every_python_program_can_be_compiled() -> None:
    for name, one in _ALL.items():
        if one.language == "python":
            compile(one.text, name, "exec")


# covers: A03 A85.1 A103.2 C58 C59 C60 C61 C65 C84 E08 H01 H18
@pytest.mark.usefixtures("_careless")
@pytest.mark.parametrize("name", _each(sorted(_ALL)))
def test_a_hostile_program_does_no_harm_in_the_sandbox(name: str, canaries: Host) -> None:
    hostile, token = _ALL[name], f"run-{secrets.token_hex(8)}"
    before, _ = canaries.state(), canaries.reached()
    for factor in _WALL_FACTORS:
        ended = _sandboxed(hostile, canaries, token, factor)
        left = [pid for pid in marked(token) if alive(pid)]
        assert not left, f"{name} survives as {left}"
        wrong = _wrong(hostile, ended, canaries.mark)
        if hostile.status != WALL or wrong != [_UNFINISHED]:
            break
    assert wrong == [], ended
    assert canaries.reached() == 0, f"{name} reached a socket of the host"
    assert canaries.state() == before, f"{name} touched a canary"


@pytest.mark.full(after=3)
@pytest.mark.usefixtures("_careless")
@pytest.mark.parametrize("name", _each(_HARMFUL))
def test_the_same_program_does_harm_without_the_sandbox(name: str, spare: Host) -> None:
    hostile, token = _ALL[name], f"run-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        planted = stack.enter_context(host()) if name in _SPOILS else spare
        planted.reached()
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-", dir="/var/tmp")))
        stack.callback(Path("/tmp", token).unlink, missing_ok=True)  # noqa: S108  (what one of them writes to)
        stack.callback(end, token)
        found = run_plain(hostile, planted, token, work)
        if name.startswith("lifetimes") or "daemon" in name:
            assert soon(lambda: marked(token)), found
            return
        harm = b"HARM" in found.stdout or planted.mark.encode() in found.stdout + _taken(work)
        lives = hostile.control is Control.LIVES and b"lived" in found.stdout
        assert harm or lives or planted.reached() > 0, found


def _bounds(hostile: Hostile) -> Bounds:
    return bounds(**{"wall_seconds": 8.0, "cpu_seconds": 6, "processes": 16, **hostile.bounds})


def _sandboxed(hostile: Hostile, canaries: Host, token: str, factor: int) -> RunResult:
    told = {**canaries.told, "outside": False, **hostile.inside}
    program = Program(
        language=hostile.language,
        code=hostile.text,
        stdin=as_told(told),
        environment={"RUN": token},
    )
    within = _bounds(hostile)
    return Bubblewrap().run(program, replace(within, wall_seconds=factor * within.wall_seconds))


def _taken(work: Path) -> bytes:
    """What a reader that follows links finds in the artifact folder."""
    found = b""
    for place, _, names in os.walk(work / "artifacts", followlinks=True):
        for path in (Path(place, name) for name in names):
            found += path.read_bytes() if path.is_file() else b""
    return found


def _wrong(hostile: Hostile, ended: RunResult, mark: str) -> list[str]:
    """Everything that is not as it has to be."""
    secret = mark.encode()
    within = _bounds(hostile)
    return [
        what
        for what, holds in {
            f"the verdict is {ended.status}": ended.status in hostile.status,
            "it did harm": b"HARM" not in ended.stdout + ended.stderr,
            "a canary came out": secret not in ended.stdout + ended.stderr,
            "a canary came out as artifact": not any(secret in one.data for one in ended.artifacts),
            _UNFINISHED: hostile.said.encode() in ended.stdout,
            "its output is not what it said": hostile.output in {None, ended.stdout},
            "too much output is kept": len(ended.stdout) <= within.stdout_bytes,
            "too much of its errors is kept": len(ended.stderr) <= within.stderr_bytes,
            "the output is not cut at the cap": ended.limit != "stdout" or len(ended.stdout) == within.stdout_bytes,
            f"the limit is {ended.limit}": hostile.limit in {None, ended.limit},
            f"the exit code is {ended.exit_code}": hostile.exit_code in {None, ended.exit_code},
            "it took too long": ended.wall_seconds < _OWN_SECONDS,
            "too many artifacts": len(ended.artifacts) <= within.artifact_files,
            "artifacts too large": sum(len(one.data) for one in ended.artifacts) <= within.artifact_bytes,
            "names are not safe": all(
                _safe(one) for one in (*(one.path for one in ended.refused_artifacts), *_paths(ended))
            ),
            "artifacts came out": hostile.artifacts is None or _paths(ended) == hostile.artifacts,
        }.items()
        if not holds
    ]


def _paths(ended: RunResult) -> tuple[str, ...]:
    return tuple(one.path for one in ended.artifacts)


def _safe(name: str) -> bool:
    return name.isprintable() and not name.startswith("/") and ".." not in name.split("/") and len(name) < 300

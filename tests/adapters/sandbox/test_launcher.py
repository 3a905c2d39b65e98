"""The input of the launcher: limits, program and artifacts."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from admission_adapters.sandbox.bubblewrap.arguments import NODE
from admission_adapters.sandbox.launcher import launch as launcher
from admission_adapters.sandbox.run import recipe
from engine.errors import WorkError
from tests.adapters.sandbox.programs import bounds, program

LIMITS = {
    "rlimit_cpu": (resource.RLIMIT_CPU, (3, 4)),
    "rlimit_nproc": (resource.RLIMIT_NPROC, (7, 7)),
    "rlimit_nofile": (resource.RLIMIT_NOFILE, (33, 33)),
    "rlimit_fsize": (resource.RLIMIT_FSIZE, (99, 99)),
    "rlimit_as": (resource.RLIMIT_AS, (1 << 27, 1 << 27)),
}
ALWAYS = [
    (resource.RLIMIT_CORE, (0, 0)),
    (resource.RLIMIT_MEMLOCK, (0, 0)),
    (resource.RLIMIT_MSGQUEUE, (0, 0)),
]
WITHIN = bounds(cpu_seconds=3, processes=5, open_files=33, file_bytes=99, memory_bytes=1 << 27)


def told(*without: str, **fields: Any) -> dict[str, Any]:
    return launcher.work(program("print(1)", **fields), WITHIN, frozenset(without))


@pytest.mark.parametrize("name", ["", *LIMITS])
def test_the_launcher_receives_every_limit_except_the_omitted_one(name: str) -> None:
    kept = [limit for each, limit in LIMITS.items() if each != name]
    assert sorted(told(name)["limits"]) == sorted([*kept, *ALWAYS])


def test_descriptors_are_closed_unless_that_is_left_out() -> None:
    assert told()["close"] is True
    assert told("close_fds")["close"] is False


def test_the_artifact_sender_starts_only_if_artifacts_are_permitted() -> None:
    for files, sends in ((0, False), (1, True)):
        assert bool(launcher.work(program(), bounds(artifact_files=files), frozenset())["sender"]) is sends


def test_only_a_program_with_a_relay_gets_the_relay_folder() -> None:
    for relay, carried in ((None, False), (object(), True)):
        work = told(relay=relay)
        assert (bool(work["relay"]), (launcher.RELAY, None) in work["files"]) == (carried, carried)


@pytest.mark.parametrize("tunnels", [False, True])
@pytest.mark.parametrize("egress", [False, True])
def test_only_a_program_with_tunnels_requires_an_egress_recipe(*, tunnels: bool, egress: bool) -> None:
    own = recipe.Recipe()
    own.egress = egress
    asked: Any = program("print(1)", tunnels=object() if tunnels else None)
    refused = pytest.raises(WorkError, match="no way out") if tunnels and not egress else nullcontext()
    with refused:
        assert own.work(asked, WITHIN, frozenset())


@pytest.mark.parametrize(
    ("fields", "main", "command"),
    [
        ({}, "main.py", []),
        ({"language": "javascript"}, "main.js", [NODE, "main.js"]),
        ({"command": ("/usr/bin/true", "a")}, "", ["/usr/bin/true", "a"]),
        ({"language": "javascript", "command": ("/usr/bin/true",)}, "", ["/usr/bin/true"]),
        ({"language": "", "command": ("/usr/bin/true",)}, "", ["/usr/bin/true"]),
    ],
)
def test_only_code_gets_a_main_file_named_for_its_language(
    fields: dict[str, Any], main: str, command: list[str]
) -> None:
    work = told(**fields)
    own = [word for word in work["command"] if not word.startswith("--") and word != "/work/input.js"]
    assert (work["main"], own) == (main, command)
    assert bool(work["prelude"]) is (main == "main.js")


@pytest.mark.parametrize("language", ["", "ruby", "Python", "javascript "])
def test_no_other_language_runs(language: str) -> None:
    with pytest.raises(WorkError, match="no sandbox runs"):
        told(language=language)


@pytest.mark.parametrize("data", [b"", b"x", b"x" * (1 << 20)])
def test_an_in_memory_file_is_sealed_after_writing(data: bytes) -> None:
    with ExitStack() as stack:
        file = recipe.memory_file(stack)
        recipe.fill(file, data)
        assert os.read(file, len(data) + 1) == data
        for change in (lambda: os.pwrite(file, b"y", 0), lambda: os.ftruncate(file, len(data) + 1)):
            with pytest.raises(PermissionError):
                change()

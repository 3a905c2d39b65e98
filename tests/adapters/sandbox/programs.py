"""Programs and bounds for the tests of the sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from tests.processes import soon

BOUNDS = Bounds(
    wall_seconds=20.0,
    cpu_seconds=10,
    memory_bytes=256 << 20,
    processes=8,
    open_files=64,
    file_bytes=8 << 20,
    disk_bytes=16 << 20,
    stdout_bytes=4096,
    stderr_bytes=4096,
    artifact_files=0,
    artifact_bytes=0,
)
"""Generous: what a test is about it makes narrow."""


ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def program(code: str = "", **fields: Any) -> Program:
    return replace(Program("python", code, b"{}", ENVIRONMENT), **fields)


def bounds(**fields: Any) -> Bounds:
    return replace(BOUNDS, **fields)


def ran(code: str, *, within: Bounds = BOUNDS, **fields: Any) -> RunResult:
    return Bubblewrap().run(program(code, **fields), within)


def inhabitants(namespace: str) -> list[int]:
    """The processes of this machine that live in a process namespace; a zombie lives in none."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if str((folder / "ns" / "pid_for_children").readlink()) == namespace:
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def namespace_of(process: int) -> str:
    return str(Path(f"/proc/{process}/ns/pid_for_children").readlink())


def emptied(namespace: str) -> bool:
    """Whether nothing lives there any more, now or soon."""
    return soon(lambda: not inhabitants(namespace))

"""Programs and bounds for the tests of the sandbox."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.model import Bounds, Ended, Program

MISSING = Bubblewrap().available()

needs_sandbox = pytest.mark.skipif(MISSING is not None, reason=f"no sandbox can be shown here: {MISSING}")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")
needs_node = pytest.mark.skipif(shutil.which("node", path="/usr/bin") is None, reason="/usr/bin/node is missing")
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers stated here are those of x86_64")

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


def program(code: str = "", **fields: Any) -> Program:
    environment = {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    plain = Program("python", code, b"{}", environment, 0, f"code_exec_agent_{os.urandom(6).hex()}")
    return replace(plain, **fields)


def bounds(**fields: Any) -> Bounds:
    return replace(BOUNDS, **fields)


def ran(code: str, *, within: Bounds = BOUNDS, **fields: Any) -> Ended:
    return Bubblewrap().run(program(code, **fields), within)


def leftovers(marker: str) -> list[int]:
    """The processes of this machine whose command line has the marker."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def process_namespaces() -> set[str]:
    """The process namespaces that something on this machine lives in; a zombie has none."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                found.add((folder / "ns" / "pid").readlink().name)
            except OSError:
                continue
    return found

"""The launcher's text and what it is told: the limits, the folder, and the program itself."""

from __future__ import annotations

import resource
from functools import cache
from pathlib import Path
from typing import Any

from adapters.sandbox.arguments import NODE, WORK
from adapters.sandbox.model import Bounds, Program
from engine.errors import WorkError

FOLDER_PREFIX = "code_exec_agent_"
"""How the name of a working folder begins (C30)."""

MAIN = {"python": "main.py", "javascript": "main.js"}
"""The file that holds the code, by language."""

_BESIDE = 2
"""Processes that count and are not the program's: the first one of the sandbox and the launcher."""


@cache
def text(ready: int, go: int, job: int, report: int) -> str:
    """What `python3 -c` runs."""
    inside = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")
    return f"{inside}\nlaunch({ready}, {go}, {job}, {report})\n"


def work(program: Program, bounds: Bounds, without: frozenset[str]) -> dict[str, Any]:
    """What the launcher is told when it is let go. Raises WorkError for a program that cannot be stated."""
    return {
        "folder": f"{WORK}/{_plain(program.folder)}",
        "main": "" if program.command else _main(program.language),
        "code": _encoded(program.code),
        "command": list(_command(program, bounds)),
        "limits": [(number, limit) for name, number, limit in _limits(bounds) if name not in without],
        "close": "close_fds" not in without,
        "artifacts": (bounds.artifact_files, bounds.artifact_bytes) if bounds.artifact_files > 0 else (),
    }


def _limits(bounds: Bounds) -> list[tuple[str, int, tuple[int, int]]]:
    seconds, processes = bounds.cpu_seconds, bounds.processes + _BESIDE
    return [
        ("rlimit_cpu", resource.RLIMIT_CPU, (seconds, seconds + 1)),
        ("rlimit_nproc", resource.RLIMIT_NPROC, (processes, processes)),
        ("rlimit_nofile", resource.RLIMIT_NOFILE, (bounds.open_files, bounds.open_files)),
        ("rlimit_fsize", resource.RLIMIT_FSIZE, (bounds.file_bytes, bounds.file_bytes)),
        ("rlimit_core", resource.RLIMIT_CORE, (0, 0)),
        ("rlimit_memlock", resource.RLIMIT_MEMLOCK, (0, 0)),
        ("rlimit_msgqueue", resource.RLIMIT_MSGQUEUE, (0, 0)),
        ("rlimit_as", resource.RLIMIT_AS, (bounds.memory_bytes, bounds.memory_bytes)),
    ]


def _command(program: Program, bounds: Bounds) -> tuple[str, ...]:
    if program.command or program.language == "python":
        return program.command
    heap = max(16, bounds.memory_bytes // (4 << 20))  # MiB: a quarter, the rest is code, stacks and reservations
    return (NODE, "--jitless", f"--max-old-space-size={heap}", _main(program.language))


def _main(language: str) -> str:
    if language not in MAIN:
        raise WorkError(f"no sandbox runs `{language[:40]}`", remedy=f"write it in {' or '.join(MAIN)}")
    return MAIN[language]


def _encoded(code: str) -> bytes:
    try:
        return code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WorkError("the code is no text that UTF-8 can hold", remedy="leave out lone surrogates") from error


def _plain(folder: str) -> str:
    rest = folder.removeprefix(FOLDER_PREFIX)
    if rest == folder or not rest.isalnum() or not rest.isascii() or len(rest) > 64:
        raise WorkError("the working folder has no plain name", remedy=f"name it `{FOLDER_PREFIX}` and hex digits")
    return folder

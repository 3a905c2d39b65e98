"""The kernel's status of processes (proc(5)), and the CPU time of a process tree.

The kernel's own limit of CPU time is per process. The engine polls the tree, so that limit is supervised.
Children of a program that ignores SIGCHLD leave the count when they end; they are bounded by the limit of each
process and by the wall clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.25
"""How often a running program's time is looked at."""

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST = 4096


def stat_of(pid: int) -> list[str]:
    """The fields of a process, starting with its state. Raises OSError if the process has ended."""
    return (_PROC / str(pid) / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()


def status_of(pid: int) -> dict[str, str]:
    """The fields of a process's `status`, by name. Raises OSError if the process has ended."""
    rows = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (row.partition(":") for row in rows)}


def every_process() -> list[int]:
    """All processes of this machine, as far as it can be seen."""
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]


def tree(first: int) -> Iterator[int]:
    """A process and everything below it, up to some thousands; what has ended meanwhile has nothing below."""
    waiting, count = [first], 0
    while waiting and count < _MOST:
        process = waiting.pop()
        count += 1
        yield process
        with suppress(OSError):
            for task in (_PROC / str(process) / "task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())


def tree_seconds(first: int) -> float:
    """User and system time of the process, of all below it, and of those they have waited for."""
    ticks = 0
    for process in tree(first):
        with suppress(OSError, ValueError):  # it has ended meanwhile: its time is its parent's now
            ticks += sum(int(field) for field in stat_of(process)[11:15])
    return ticks / _TICKS

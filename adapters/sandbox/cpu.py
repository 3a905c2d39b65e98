"""The processor time of everything in a sandbox: the kernel's limit is one process's, this one the tree's.

The engine looks now and then, so it is a supervised limit. What a program has its children waited for by nobody
(SIGCHLD ignored) leaves the count when it ends; the limit of each process and the wall clock hold it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.25
"""How often a running program's time is looked at."""

_TICKS = os.sysconf("SC_CLK_TCK")
_MOST = 4096


def tree_seconds(first: int) -> float:
    """User and system time of the process, of all below it, and of those they have waited for."""
    ticks, waiting, seen = 0, [str(first)], 0
    while waiting and seen < _MOST:
        process = waiting.pop()
        seen += 1
        with suppress(OSError, ValueError):  # it has ended meanwhile: its time is its parent's now
            text = Path("/proc", process, "stat").read_text(encoding="latin-1")
            ticks += sum(int(field) for field in text.rpartition(")")[2].split()[11:15])
            for task in Path("/proc", process, "task").iterdir():
                waiting += (task / "children").read_text(encoding="ascii").split()
    return ticks / _TICKS

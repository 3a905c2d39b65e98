"""What a whole process costs: CPU seconds of it and of all it waited for, and wall seconds."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds."""

    cpu: float
    wall: float


def cost(command: Sequence[str], folder: Path, environment: Mapping[str, str], ends: int = 0) -> Cost:
    """Run a command to its end; RuntimeError when it does not end with the code `ends`."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        used = reap(process)
        wall = time.perf_counter() - started
        if process.returncode != ends:
            said.seek(0)
            raise RuntimeError(f"`{' '.join(command)}` ended with {process.returncode}: {said.read().decode()}")
    return Cost(used, wall)


def reap(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; CPU seconds of it and its descendants that were waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def environment(scratch: Path) -> dict[str, str]:
    """Ours without anything that changes how Python starts, with a cache and a state of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE", "ENGINE_"))}
    return {**kept, "XDG_CACHE_HOME": str(scratch / "cache"), "ENGINE_STATE_DIR": str(scratch / "state")}

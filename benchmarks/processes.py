"""Processes that are measured: what they cost, what they start, where they listen."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from admission_adapters.sandbox.run.proc import tree
from benchmarks.measure import NotMeasuredError

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds."""

    cpu: float
    wall: float

    def each(self, count: int) -> Cost:
        """That of one of so many."""
        return Cost(self.cpu / count, self.wall / count)


def cost(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command to its end; NotMeasuredError when it fails."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        used = reap(process)
        wall = time.perf_counter() - started
        if process.returncode:
            said.seek(0)
            raise NotMeasuredError(f"`{' '.join(command)}` ended with {process.returncode}: {said.read().decode()}")
    return Cost(used, wall)


def reap(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; CPU seconds of it and its descendants that were waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def environment(scratch: Path, cache: Path | None = None) -> dict[str, str]:
    """Ours without anything that changes how Python starts, with a state of its own and a cache of policies."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE", "ENGINE_"))}
    return {
        **kept,
        "XDG_CACHE_HOME": str(cache.parent if cache else scratch / "cache"),
        "ENGINE_STATE_DIR": str(scratch / "state"),
    }


@contextmanager
def serving(
    command: Sequence[str], port: int, folder: Path, environment: Mapping[str, str], root: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens on a loopback port while the block runs; what it says goes to `folder`/server.log."""
    said = folder / "server.log"
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _await_listening(process, port, said)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int | None) -> float:
    """CPU seconds that a running process has used so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of memory that a process has now."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def named(pid: int, name: str) -> int | None:
    """The process of this name among those that `pid` has started."""
    for one in tree(pid):
        with suppress(OSError):
            if Path(f"/proc/{one}/comm").read_text(encoding="utf-8").strip() == name:
                return one
    return None


def _await_listening(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            text = said.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise NotMeasuredError(f"`{' '.join(process.args)}` did not start: {text}")  # type: ignore[arg-type]
        time.sleep(0.01)

"""What tests do to processes: stop them, and see whether they live."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path


def _state(pid: int) -> str:
    """The state letter of a process (proc(5)); empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
    except OSError:
        return ""


def stop(pid: int) -> None:
    """Stop a process, and wait until the kernel has done so."""
    os.kill(pid, signal.SIGSTOP)
    while _state(pid) != "T":
        time.sleep(0.001)


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    return _state(pid) not in {"", "Z", "X"}


def gone(pid: int, seconds: float = 5) -> bool:
    """Wait until a process is gone; False when it is still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children(pid: int) -> set[int]:
    """The processes that a process started."""
    while True:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        with suppress(FileNotFoundError):  # of a thread that has ended meanwhile; its children are another one's now
            return {int(child) for task in tasks for child in (task / "children").read_text().split()}


def opa_of(pid: int, but: Collection[int] = ()) -> int:
    """The OPA that an engine started, but for those that were there before."""
    (child,) = children(pid) - {*but}
    return child


def in_child(run: Callable[[], bool]) -> bool:
    """Fork, run in the child, and tell what it found; the child ends here whatever it raises."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if run() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

"""What tests do to processes: stop them, and see whether they live."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final


def _state(pid: int) -> str:
    """The state letter of a process (proc(5)); empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
    except OSError:
        return ""


def stop(pid: int) -> None:
    """Stop a process, and wait until the kernel has done so, or the process has ended."""
    os.kill(pid, signal.SIGSTOP)
    while alive(pid) and _state(pid) != "T":
        time.sleep(0.001)


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    return _state(pid) not in {"", "Z", "X"}


def soon(what: Callable[[], object], seconds: float = 60) -> bool:
    """Wait until something holds; False when it does not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def until(what: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something that is sure to happen soon; fails when it does not."""
    assert soon(what, seconds)


def gone(pid: int, seconds: float = 60) -> bool:
    """Wait until a process is gone; False when it is still there after `seconds`."""
    return soon(lambda: not alive(pid), seconds)


def children(pid: int) -> set[int]:
    """The processes that a process started."""
    while True:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        with suppress(FileNotFoundError):  # of a thread that has ended meanwhile; its children are another one's now
            return {int(child) for task in tasks for child in (task / "children").read_text().split()}


def opa_of(pid: int, but: Collection[int] = ()) -> int:
    """The OPA that serves an engine, but for those that were there before; another may be finding out what it reads."""
    (child,) = opas_of(pid) - {*but}
    return child


def opas_of(pid: int) -> set[int]:
    """Every OPA that serves an engine, or begins to."""
    return {one for one in children(pid) if _serves(one)}


def _serves(pid: int) -> bool:
    try:
        return b"\0run\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def own_port() -> Iterator[int]:
    """A port of this machine that nobody else is given meanwhile. Nothing listens there; a server of the test may."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port


def in_child(run: Callable[[], bool]) -> bool:
    """Fork, run in the child, and tell what it found; the child ends here whatever it raises."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(60)  # locks of other threads stay locked in a fork: one that waits for them ends
            os._exit(0 if run() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@contextmanager
def limited(what: int, soft: int) -> Iterator[None]:
    """This process under a lower limit of its own (getrlimit(2)), such as RLIMIT_FSIZE for a disk that is full."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    """Only so many more files can be opened."""
    used = {path.name for path in descriptors()}
    free = [number for number in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]) if str(number) not in used]
    with limited(resource.RLIMIT_NOFILE, free[number]):
        yield


def descriptors() -> list[Path]:
    return list(Path("/proc/self/fd").iterdir())


def opened_by(pid: int) -> list[Path]:
    """What a process holds open, once for each descriptor."""
    found: list[Path] = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found.append(descriptor.readlink())
    return found


def open_under(folder: Path) -> list[Path]:
    """The files in a folder that this process holds open, once for each descriptor."""
    gc.collect()
    return sorted(path for path in opened_by(os.getpid()) if path.is_relative_to(folder))


_ROUNDS: Final = 24


def leaks(act: Callable[[], object]) -> bool:
    """Whether each call of an act leaves a descriptor open; other threads open and close fewer than this."""
    act()
    gc.freeze()  # what is there already is not looked at again
    before = len(descriptors())
    for _ in range(_ROUNDS):
        act()
    gc.collect()
    return len(descriptors()) - before >= _ROUNDS


@contextmanager
def python(text: str, *arguments: object, prefix: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """A Python process that runs this text; killed in the end, whatever it does."""
    running = subprocess.Popen(
        [*prefix, sys.executable, "-c", text, *map(str, arguments)],
        cwd=Path(__file__).parent.parent,
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def said(running: subprocess.Popen[str]) -> str:
    """The next line that a process says; fails if it has ended."""
    assert running.stdout is not None
    line = running.stdout.readline()
    assert line, f"the process has ended with {running.wait()}"
    return line.strip()


def rest(running: subprocess.Popen[str]) -> list[str]:
    """The lines that a process says until its end.

    `communicate` would leave out what `said` has read ahead.
    """
    assert running.stdout is not None
    return running.stdout.read().splitlines()


def send_line(running: subprocess.Popen[str], line: str = "") -> None:
    """Write a line to a process."""
    assert running.stdin is not None
    running.stdin.write(f"{line}\n")
    running.stdin.flush()


def injecting(path: Path, fault: str) -> list[str]:
    """The start of a command whose system calls on one file fail as `strace --inject` states."""
    calls = fault.partition(":")[0]
    traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(path), "-e", f"trace={calls}"]
    return [*traced, "-e", f"inject={fault}"]

"""Starts a sandbox and makes it ready: the handshake of which nothing may be missing.

A thread that stays starts every process: the kernel's parent-death signal follows the thread that called, and
callers may be short-lived threads. Children are waited for by number only, and this process is no subreaper:
it may be embedded in one that has children of its own.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from adapters.sandbox import handshake
from adapters.sandbox.cgroup import MemoryGroup, memory_place
from adapters.sandbox.handshake import HandshakeError
from adapters.sandbox.memory import memory_file
from adapters.sandbox.model import Bounds, NotStartedError
from adapters.sandbox.recipe import BUBBLEWRAP, Ends, Recipe
from adapters.sandbox.user import becoming, sandbox_user, swept

START_SECONDS = 20.0
"""For a sandbox to become ready; it takes milliseconds, and longer only on a machine that is overrun."""

END_SECONDS = 20.0
"""For the kernel to end what was killed, and for the monitor to go after it."""

_SAID_BYTES = 4096


@dataclass(slots=True)
class Started:
    """A sandbox that is ready: its processes and this end of its pipes."""

    process: subprocess.Popen[bytes]
    child: int
    pidfd: int
    stdin: int
    job: int
    go: int
    report: int
    stdout: int
    stderr: int
    status: int
    group: MemoryGroup | None
    recipe: Recipe
    stack: ExitStack

    def close(self) -> None:
        """Kill what is left, wait until it is dead, and give everything back."""
        self.stack.close()

    def kill(self) -> None:
        """Kill everything in it."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def exit_line(self) -> int | None:
        """The exit code that the monitor tells last, once everything is dead."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        return self.recipe.exit_code(self.process, _there(self.status))


def start(
    bounds: Bounds,
    environment: Mapping[str, str],
    without: frozenset[str] = frozenset(),
    job: Path | None = None,
    recipe: Recipe = BUBBLEWRAP,
) -> Started:
    """A sandbox that is ready for one program. Raises NotStartedError, or WorkError for what cannot be stated."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # it is inherited, and nobody could tell how anything ended
        raise NotStartedError("this process ignores SIGCHLD, so the end of a program could not be seen")
    try:
        with ExitStack() as stack:
            started = _started(stack, recipe, bounds, environment, without, job)
            started.stack = stack.pop_all()
            return started
    except OSError as error:  # no descriptor left, no memory
        raise NotStartedError(cannot_be_made(error)) from error


def cannot_be_made(error: OSError) -> str:
    """In words, what the kernel did not give this process for a sandbox."""
    return f"it cannot be made: {os.strerror(error.errno or 0).lower()}"


def _started(
    stack: ExitStack,
    recipe: Recipe,
    bounds: Bounds,
    environment: Mapping[str, str],
    without: frozenset[str],
    job: Path | None,
) -> Started:
    unknown = without - recipe.protections
    if unknown or ("private_job" in without) != (job is not None):
        raise ValueError(f"no such protections, or no folder that goes with them: {sorted(without)}")
    stdin, work = memory_file(stack), memory_file(stack)
    with ExitStack() as theirs:
        status, status_in = _pipe(stack, theirs)
        ready, ready_in = _pipe(stack, theirs)
        report, report_in = _pipe(stack, theirs)
        stdout, stdout_in = _pipe(stack, theirs)
        stderr, stderr_in = _pipe(stack, theirs)
        go_out, go = _pipe(theirs, stack)
        ends = Ends(status_in, ready_in, go_out, work, report_in)
        line = recipe.line(ends, bounds, environment, without, job, theirs)
        group = _group(stack, recipe, bounds, without)
        process = _begun(
            line.command,
            (stdin, stdout_in, stderr_in),
            (*line.descriptors, status_in, ready_in, go_out, work, report_in),
            group,
            without.union({"drop_uid"} if recipe.drops_user else ()),
        )
    stack.callback(_gone, process)
    try:
        child, pidfd = _hands(stack, recipe, process, status, ready, without)
    except HandshakeError as error:
        process.kill()
        process.wait(END_SECONDS)
        said = _there(stderr)[:_SAID_BYTES].decode("utf-8", "replace").strip()
        raise NotStartedError(said or f"its handshake is not whole: {error}") from error
    except BaseException:  # interrupted: nobody waits for it
        process.kill()
        raise
    if group is not None:
        group.take(child)
    return Started(process, child, pidfd, stdin, work, go, report, stdout, stderr, status, group, recipe, stack)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Both ends, each closed with the stack of whoever has it."""
    out, into = os.pipe2(os.O_CLOEXEC)
    reader.callback(os.close, out)
    writer.callback(os.close, into)
    return out, into


def _group(stack: ExitStack, recipe: Recipe, bounds: Bounds, without: frozenset[str]) -> MemoryGroup | None:
    place = memory_place()
    if place is None or "memory_cgroup" in without:
        return None
    group = MemoryGroup.ready(place, bounds.memory_bytes + bounds.disk_bytes + recipe.spare_bytes)
    stack.callback(group.give_back)
    return group


def _begun(
    command: list[str],
    streams: tuple[int, int, int],
    descriptors: tuple[int, ...],
    group: MemoryGroup | None,
    without: frozenset[str],
) -> subprocess.Popen[bytes]:
    """Start it on the thread that stays."""
    closing = "close_fds" not in without
    if not closing:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)  # noqa: FBT003  (it takes no keyword)
    user = sandbox_user()
    swept(os.getpid())
    if not user.own and "drop_uid" not in without:
        command = [*becoming(user), *command]

    def begin() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env={} if "clearenv" not in without else None,
            cwd="/",
            close_fds=closing,
            pass_fds=descriptors if closing else (),
        )

    thread = _thread(os.getpid()) if group is None or group.thread is None else group.thread
    try:
        return thread.submit(begin).result()
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:  # the last one: this process is ending
        raise NotStartedError(f"its first process cannot be started: {type(error).__name__}") from error


@cache
def _thread(_process: int) -> ThreadPoolExecutor:
    """The thread that starts everything in this process; a forked child gets one of its own."""
    return ThreadPoolExecutor(1, "sandbox-start")


def _hands(
    stack: ExitStack,
    recipe: Recipe,
    process: subprocess.Popen[bytes],
    status: int,
    ready: int,
    without: frozenset[str],
) -> tuple[int, int]:
    """The status line, the pidfd, and the launcher's `R`: its number and its pidfd."""
    deadline = time.monotonic() + START_SECONDS
    child, pidfd = recipe.first(process, lambda: _line(status, deadline, before=ready), without)
    stack.callback(os.close, pidfd)
    if "kill_tree" not in without:
        stack.callback(_dead, pidfd)
    if _piece(ready, deadline) != b"R":
        raise HandshakeError("ready")
    return child, pidfd


def _line(pipe: int, deadline: float, before: int) -> bytes:
    """A line, which comes in pieces; the next one comes at the end only."""
    line = bytearray()
    while not line.endswith(b"\n"):
        line += _piece(pipe, deadline, before)
    return bytes(line)


def _piece(pipe: int, deadline: float, before: int | None = None) -> bytes:
    """What there is, before the deadline and before anything is in the other pipe."""
    poll = select.poll()
    for one in (pipe, before):
        if one is not None:
            poll.register(one, select.POLLIN)
    there = {one for one, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000)}
    if pipe not in there:
        raise HandshakeError("out of order" if there else "too late")
    piece = os.read(pipe, _SAID_BYTES)
    if not piece:
        raise HandshakeError("ended")
    return piece


def _there(pipe: int) -> bytes:
    """What is in a pipe now."""
    data = bytearray()
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while piece := os.read(pipe, _SAID_BYTES):
            data += piece
    return bytes(data)


def _dead(pidfd: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    handshake.is_dead(pidfd, END_SECONDS)
    with suppress(ChildProcessError):  # ours to wait for only where this process inherits orphans
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _gone(process: subprocess.Popen[bytes]) -> None:
    """The monitor goes when its child is dead, or is made to."""
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_SECONDS)

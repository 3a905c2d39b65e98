"""Starts a sandbox and completes its handshake, or fails.

A permanent thread starts every process: the kernel's parent-death signal follows the calling thread, and
callers may be short-lived threads. Children are waited for by pid only, and this process is not a subreaper:
it may be embedded in a program that has its own children.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache

from admission_adapters.sandbox.model import NotStartedError
from admission_adapters.sandbox.run import handshake
from admission_adapters.sandbox.run.cgroup import MemoryGroup, memory_place
from admission_adapters.sandbox.run.handshake import HandshakeError
from admission_adapters.sandbox.run.recipe import BUBBLEWRAP, Pipes, Recipe, Setup, memory_file
from admission_adapters.sandbox.run.user import becoming, sandbox_user, swept

START_SECONDS = 20.0
"""Seconds for a sandbox to become ready; it takes milliseconds, and longer only on an overloaded machine."""

END_SECONDS = 20.0
"""For the kernel to end what was killed, and for the monitor to go after it."""

_SAID_BYTES = 4096


@dataclass
class Sandbox:
    """A sandbox that is ready for one program: its processes and our ends of its pipes. Close it in the end."""

    setup: Setup
    recipe: Recipe
    process: subprocess.Popen[bytes]
    child: int
    """The number of its first process on this machine."""
    pidfd: int
    stdin: int
    job: int
    go: int
    report: int
    stdout: int
    stderr: int
    status: int
    group: MemoryGroup | None
    listener: socket.socket | None
    """What listens in its network namespace, if it has a way out."""
    stack: ExitStack
    untouched: bool = True
    """Whether no program was let go in it, for certain."""

    @property
    def alive(self) -> bool:
        """Whether it still waits, as far as can be known."""
        return not handshake.is_dead(self.pidfd)

    def close(self) -> None:
        """Kill the remaining processes, wait until they are dead, and free all resources."""
        self.stack.close()

    def kill(self) -> None:
        """Kill everything in it."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def exit_line(self) -> int | None:
        """The exit code, which the monitor reports once everything is dead."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        return self.recipe.exit_code(self.process, _there(self.status))


def start(setup: Setup, recipe: Recipe = BUBBLEWRAP) -> Sandbox:
    """A sandbox that is ready for one program. Raises NotStartedError, or WorkError for what cannot be stated."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # it is inherited, and no exit code could be collected
        raise NotStartedError("this process ignores SIGCHLD, so it cannot detect that a program has ended")
    try:
        with ExitStack() as stack:
            sandbox = _started(stack, recipe, setup)
            sandbox.stack = stack.pop_all()
            return sandbox
    except OSError as error:  # no descriptor left, no memory
        raise NotStartedError(cannot_be_made(error)) from error


def cannot_be_made(error: OSError) -> str:
    """A sentence about the resource that the kernel refused for a sandbox."""
    return f"it cannot be made: {os.strerror(error.errno or 0).lower()}"


def _started(stack: ExitStack, recipe: Recipe, setup: Setup) -> Sandbox:
    without = setup.without
    if without - recipe.protections or ("private_job" in without) != (setup.job is not None):
        raise ValueError(f"unknown protections, or a missing folder for them: {sorted(without)}")
    work = memory_file(stack)
    with ExitStack() as their_ends:
        if setup.talks:
            stdin_out, stdin = _pipe(their_ends, stack)
        else:
            stdin_out = stdin = memory_file(stack)
        status, status_in = _pipe(stack, their_ends)
        ready, ready_in = _pipe(stack, their_ends)
        report, report_in = _pipe(stack, their_ends)
        stdout, stdout_in = _pipe(stack, their_ends)
        stderr, stderr_in = _pipe(stack, their_ends)
        go_out, go = _pipe(their_ends, stack)
        way_in, way_out = _way_out(stack, their_ends) if recipe.egress else (None, -1)
        ends = Pipes(status_in, ready_in, go_out, work, report_in, way_out)
        line = recipe.line(ends, setup, their_ends)
        group = _group(stack, recipe, setup)
        process = _process_of(
            line.command,
            (stdin_out, stdout_in, stderr_in),
            (*line.descriptors, status_in, ready_in, go_out, work, report_in, *(() if way_in is None else (way_out,))),
            group,
            without.union({"drop_uid"} if recipe.drops_user else ()),
        )
    stack.callback(_wait_until_dead, process)
    try:
        child, pidfd = _first_process(stack, recipe, process, status, ready, without)
        listener = None if way_in is None else _handed_out(stack, way_in)
    except HandshakeError as error:
        process.kill()
        process.wait(END_SECONDS)
        message = _there(stderr)[:_SAID_BYTES].decode("utf-8", "replace").strip()
        raise NotStartedError(message or f"its handshake is incomplete: {error}") from error
    except BaseException:  # interrupted: the caller no longer waits for it
        process.kill()
        raise
    if group is not None:
        group.take(child)
    ours = (stdin, work, go, report, stdout, stderr, status)
    return Sandbox(setup, recipe, process, child, pidfd, *ours, group, listener, stack)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Both ends of a pipe, each closed with the stack of its owner."""
    out, into = os.pipe2(os.O_CLOEXEC)
    reader.callback(os.close, out)
    writer.callback(os.close, into)
    return out, into


def _way_out(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, int]:
    """Our end of the socket over which a listener comes, and the descriptor of the other end."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours.enter_context(here), theirs.enter_context(there).fileno()


def _handed_out(stack: ExitStack, way: socket.socket) -> socket.socket:
    """The listener, which is there before the launcher is ready. Raises HandshakeError."""
    try:
        _, found, _, _ = socket.recv_fds(way, 1, 1, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
        (descriptor,) = found
    except (OSError, ValueError) as error:
        raise HandshakeError("listener") from error
    return stack.enter_context(socket.socket(fileno=descriptor))


def _group(stack: ExitStack, recipe: Recipe, setup: Setup) -> MemoryGroup | None:
    place = memory_place()
    if place is None or "memory_cgroup" in setup.without:
        return None
    group = MemoryGroup.ready(place, setup.bounds.memory_bytes + setup.bounds.disk_bytes + recipe.spare_bytes)
    stack.callback(group.give_back)
    return group


def _process_of(
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
            os.set_inheritable(descriptor, True)  # noqa: FBT003  (it accepts no keyword)
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
        raise NotStartedError(f"the first process of the sandbox cannot be started: {type(error).__name__}") from error


@cache
def _thread(_process: int) -> ThreadPoolExecutor:
    """The thread that starts all sandboxes of this process; a forked child gets its own."""
    return ThreadPoolExecutor(1, "sandbox-start")


def _first_process(
    stack: ExitStack,
    recipe: Recipe,
    process: subprocess.Popen[bytes],
    status: int,
    ready: int,
    without: frozenset[str],
) -> tuple[int, int]:
    """The number and the pidfd of the first process, once it has said who it is and its launcher that it is ready."""
    deadline = time.monotonic() + START_SECONDS
    child, pidfd = recipe.first_process(process, lambda: _line(status, deadline, before=ready), without)
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
    for descriptor in (pipe, before):
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    there = {descriptor for descriptor, _ in poll.poll(max(0.0, deadline - time.monotonic()) * 1000)}
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


def _wait_until_dead(process: subprocess.Popen[bytes]) -> None:
    """The monitor goes when its child is dead, or is made to."""
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_SECONDS)

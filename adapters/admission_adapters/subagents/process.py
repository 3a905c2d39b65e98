"""One subagent as a process: own process group, explicit environment, JSON lines in and out, guaranteed end.

A thread writes its input, keeps its output and waits for its end. Remaining processes of its
group are then killed. Only a sandbox contains a process that leaves the group.
"""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from admission_adapters.llm_provider import without_variables
from admission_adapters.tools.outcome import cut


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Output of one subagent that is kept in memory."""

    turns: int = 200  # more than one reply contains
    line_bytes: int = 65_536  # the longest preview there is
    subagents: int = 64  # ended subagents whose transcripts can still be polled


class Transcript:
    """The turns of one subagent: one line of its output each. Threads may share it."""

    def __init__(self, limits: HistoryLimits) -> None:
        self._most = limits.line_bytes
        self._turns: deque[str] = deque(maxlen=limits.turns)
        self._open = bytearray()
        self._lock = threading.Lock()
        self.count = 0
        """Number of turns so far, including those that are no longer kept."""
        self.spoken = threading.Event()
        """Set with the first turn, and when there will be none."""

    def feed(self, data: bytes) -> None:
        """Add the next piece of output; a line that is too long is cut."""
        *lines, rest = data.split(b"\n")
        with self._lock:
            for line in lines:
                self._add(line)
                self._end()
            self._add(rest)

    def close(self) -> None:
        """End the transcript: an unfinished line is a turn as well."""
        with self._lock:
            if self._open:
                self._end()
        self.spoken.set()

    def last(self, turns: int, line_bytes: int) -> tuple[str, ...]:
        """The last turns, the oldest first, each cut to `line_bytes` of UTF-8."""
        with self._lock:
            turns_kept = list(self._turns)
        return tuple(
            cut(line.encode("utf-8"), line_bytes)
            for line in turns_kept[len(turns_kept) - min(turns, len(turns_kept)) :]
        )

    def _add(self, part: bytes) -> None:
        self._open += part[: self._most - len(self._open)]

    def _end(self) -> None:
        self._turns.append(_text(bytes(self._open)))
        self.count += 1
        self.spoken.set()
        self._open.clear()


def _text(line: bytes) -> str:
    """A line as text: invalid UTF-8 is replaced, and a character split by the limit is dropped."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(line.rstrip(b"\r"))


State = Literal["running", "ended", "cancelled", "killed"]

_TICK_SECONDS = 0.02
"""Between two looks at whether the process has ended, where its output has not."""

_PIECE = 65_536
"""Bytes of one read or write: the capacity of a pipe."""

_LAST_PIECES = 16
"""Reads after its end: a process that left the group and writes on is not listened to."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a subagent: its command, working folder and environment, without variables of the remote model."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


class SubagentProcess:
    """A running subagent, or one that ended. Threads may share it."""

    def __init__(
        self,
        program: Program,
        lifetime_seconds: float,
        limits: HistoryLimits,
        on_end: Callable[[State], None],
    ) -> None:
        """Start it. `on_end` is called once, before `over` is set.

        Raises OSError, ValueError, RuntimeError; then nothing runs.
        """
        self.transcript = Transcript(limits)
        self.over, self.input_taken = threading.Event(), threading.Event()
        """Set when it and its group have ended; when it has read all its input, or never will."""
        self._ended = on_end
        self._deadline = time.monotonic() + lifetime_seconds
        self._state: State = "running"
        self._end: State = "ended"
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._finished = False
        self._bell, self._ring = os.pipe()
        try:
            self._process = _started(program)
            try:
                self._stdin, self._stdout = _descriptor(self._process.stdin), _descriptor(self._process.stdout)
                for file in (self._bell, self._ring, self._stdin, self._stdout):
                    os.set_blocking(file, False)
                threading.Thread(target=self._attend, name="engine-subagent", daemon=True).start()
            except BaseException:  # nothing would ever end it
                with self._process:
                    self._kill_group()
                raise
        except BaseException:
            os.close(self._bell)
            os.close(self._ring)
            raise

    @property
    def state(self) -> State:
        """Its state; `cancelled` if it ended after a cancel request."""
        return self._state

    def send(self, line: bytes) -> None:
        """Queue a line of input; returns at once, `input_taken` is set when it has read all of it."""
        with self._lock:
            if not self._finished:
                self.input_taken.clear()
                self._pending += line + b"\n"
                with suppress(BlockingIOError):  # the bell is full, and rings
                    os.write(self._ring, b"x")

    def cancel(self, line: bytes) -> None:
        """Request it to stop: with a line, and with SIGTERM to the process itself."""
        with self._lock:
            if self._process.returncode is None:
                self._end = "cancelled"  # before the line, which may end it at once
        self.send(line)
        with self._lock:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and its whole group at once; `over` is set when it is dead."""
        with self._lock:
            if self._process.returncode is None:  # not reaped, so that the number is still its own
                self._end = "killed"
                self._kill_group()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # no process is left; macOS refuses where only zombies are
            os.killpg(self._process.pid, signal.SIGKILL)

    def _attend(self) -> None:
        """The loop of the thread until the process has ended."""
        with self._process, selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            selector.register(self._stdout, selectors.EVENT_READ)
            while not self._reaped():
                for key, _ in selector.select(_TICK_SECONDS):
                    if key.fd == self._bell:
                        os.read(self._bell, _PIECE)
                    elif not self._read():
                        selector.unregister(self._stdout)
                self._write()
                if time.monotonic() > self._deadline:
                    self.kill()
            for _ in range(_LAST_PIECES):
                if not self._read():
                    break
        self.transcript.close()
        with self._lock:
            self._state, self._finished = self._end, True
            os.close(self._bell)
            os.close(self._ring)
        with suppress(Exception):  # the callback handles its own errors
            self._ended(self._state)
        self.over.set()
        self.input_taken.set()

    def _reaped(self) -> bool:
        """Whether the process has ended; then its whole group has ended."""
        with self._lock:
            if self._process.poll() is None:
                return False
            self._kill_group()
            return True

    def _read(self) -> bool:
        """Read its output; False at the end of the output."""
        try:
            data = os.read(self._stdout, _PIECE)
        except BlockingIOError:
            return False
        self.transcript.feed(data)
        return bool(data)

    def _write(self) -> None:
        """Write as much of the pending input as it reads; the rest is dropped once it closes its input."""
        with self._lock:
            if not self._pending:
                return
            try:
                del self._pending[: os.write(self._stdin, self._pending[:_PIECE])]
            except BlockingIOError:
                return
            except OSError:
                self._pending.clear()
            if not self._pending:
                self.input_taken.set()


def _started(program: Program) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(program.command),
        cwd=program.folder,
        env=without_variables(program.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,  # its own group, which is killed as a whole
    )


def _descriptor(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()  # both were asked for

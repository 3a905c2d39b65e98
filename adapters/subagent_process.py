"""One subagent as a process: its own group, an explicit environment, JSON lines in and out, an end for sure.

A thread of its own gives it what it is told, keeps what it says, and sees its end. Whoever is left of its
group then ends with it. A process that leaves the group is out of reach here: that takes a sandbox.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from adapters.transcript import KeptLimits, Transcript

State = Literal["running", "ended", "cancelled", "killed"]

_TICK_SECONDS = 0.02
"""Between two looks at whether the process has ended, where its output has not."""

_PIECE = 65_536
"""Bytes of one read or write: what a pipe holds."""

_LAST_PIECES = 16
"""Reads after its end: a process that left the group and writes on is not listened to."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a subagent is: a command with its arguments, where it runs, and everything in its environment."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


class SubagentProcess:
    """A running subagent, or one that ended. Threads may share it."""

    def __init__(
        self,
        program: Program,
        lifetime_seconds: float,
        limits: KeptLimits,
        ended: Callable[[State], None],
    ) -> None:
        """Start it. `ended` is told once, before anybody sees that it is over.

        Raises OSError, ValueError, RuntimeError; then nothing runs.
        """
        self.transcript = Transcript(limits)
        self.over, self.told = threading.Event(), threading.Event()
        """Set when it and its group have ended; when it has taken everything that it was told, or never will."""
        self._ended = ended
        self._deadline = time.monotonic() + lifetime_seconds
        self._state: State = "running"
        self._end: State = "ended"
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._gone = False
        self._bell, self._ring = os.pipe()
        try:
            self._process = _started(program)
            try:
                self._stdin, self._stdout = _descriptor(self._process.stdin), _descriptor(self._process.stdout)
                for file in (self._bell, self._ring, self._stdin, self._stdout):
                    os.set_blocking(file, False)
                threading.Thread(target=self._attend, name="engine-subagent", daemon=True).start()
            except BaseException:  # nobody would ever end it
                with self._process:
                    self._kill_group()
                raise
        except BaseException:
            os.close(self._bell)
            os.close(self._ring)
            raise

    @property
    def state(self) -> State:
        """How it is: `cancelled` when it ended after it was asked to."""
        return self._state

    def tell(self, line: bytes) -> None:
        """Hand it a line; returns at once, `told` is set when it has taken all of it."""
        with self._lock:
            if not self._gone:
                self.told.clear()
                self._pending += line + b"\n"
                with suppress(BlockingIOError):  # the bell is full, and rings
                    os.write(self._ring, b"x")

    def cancel(self, line: bytes) -> None:
        """Ask it to stop: with a line, and with SIGTERM to the process itself."""
        self.tell(line)
        with self._lock:
            if self._process.returncode is None:
                self._end = "cancelled"
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and its whole group at once; `over` is set when it is dead."""
        with self._lock:
            if self._process.returncode is None:  # not reaped, so that the number is still its own
                self._end = "killed"
                self._kill_group()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS refuses where only zombies are
            os.killpg(self._process.pid, signal.SIGKILL)

    def _attend(self) -> None:
        """What the thread does until the process has ended."""
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
            self._state, self._gone = self._end, True
            os.close(self._bell)
            os.close(self._ring)
        with suppress(Exception):  # whoever is told sees to its own errors
            self._ended(self._state)
        self.over.set()
        self.told.set()

    def _reaped(self) -> bool:
        """Whether the process has ended; then nobody of its group lives on."""
        with self._lock:
            if self._process.poll() is None:
                return False
            self._kill_group()
            return True

    def _read(self) -> bool:
        """Keep what it said; False where there is nothing."""
        try:
            data = os.read(self._stdout, _PIECE)
        except BlockingIOError:
            return False
        self.transcript.feed(data)
        return bool(data)

    def _write(self) -> None:
        """Give it as much of what it was told as it takes; nothing is left once it does not listen any more."""
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
                self.told.set()


def _started(program: Program) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(program.command),
        cwd=program.folder,
        env=dict(program.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,  # a group of its own, which is ended as a whole
    )


def _descriptor(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()  # both were asked for

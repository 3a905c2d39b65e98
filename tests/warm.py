"""Runs commands and servers in forks of one process that has imported the engine: importing takes longer than most.

`scripts/test --all` measures coverage and starts every command as a user does; so does each test that says how.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from tests.conftest import ROOT

_READ_AT_THE_START = ("LANG", "LC_", "LD_", "TZ", "TERM", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


def forkable(environment: Mapping[str, str]) -> bool:
    """Whether these variables mean the same in a process that has started already."""
    return not any(
        name.startswith((*_READ_AT_THE_START, "PYTHON", "COVERAGE_")) and name != "PYTHONPATH" for name in environment
    )


class Forked:
    """A command or server in a fork; as `subprocess.Popen` has it."""

    def __init__(self, told: BinaryIO) -> None:
        self._told = told
        self.pid = int(told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended. Raises TimeoutExpired after `timeout` seconds."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("engine", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            with selectors.DefaultSelector() as waiting:
                waiting.register(self._told, selectors.EVENT_READ)
                if waiting.select(seconds):
                    self.returncode = int(self._told.readline())
                    self._told.close()
        return self.returncode


class WarmCommands:
    """The process that forks; it ends with its creator."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(other.fileno())],
                cwd=ROOT,
                env=dict(environment),
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        stdin: bytes,
        seconds: float,
        opa: Path | None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `engine ARGUMENTS…` to its end. Raises TimeoutExpired, and kills it, when it takes longer.

        `opa` is the note of an OPA to lease.
        """
        asked = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "environment": dict(environment),
            "opa": None if opa is None else str(opa),
            "code": None,
        }
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            running = self._fork(asked, [given.fileno(), out.fileno(), err.fileno()])
            try:
                code = running.wait(seconds)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
                raise subprocess.TimeoutExpired(list(arguments), seconds) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())

    def start(
        self, code: str | None, arguments: Sequence[str], environment: Mapping[str, str], log: BinaryIO, opa: Path
    ) -> Forked:
        """Start `engine ARGUMENTS…`, or this program with these arguments, and write its standard error to `log`."""
        asked = {"arguments": [*arguments], "cwd": str(ROOT), "environment": {**environment}, "opa": str(opa)}
        with Path(os.devnull).open("r+b", buffering=0) as nothing:
            return self._fork(asked | {"code": code}, [nothing.fileno(), nothing.fileno(), log.fileno()])

    def _fork(self, asked: Mapping[str, object], streams: list[int]) -> Forked:
        told, tells = os.pipe()
        try:
            socket.send_fds(self._end, [json.dumps(asked).encode()], [*streams, tells])
        finally:
            os.close(tells)
        return Forked(os.fdopen(told, "rb", buffering=0))

    def close(self) -> None:
        """End the process."""
        self._end.close()
        self._process.wait()

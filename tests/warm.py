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

_MESSAGE = 1 << 20

_READ_AT_THE_START = ("LANG", "LC_", "LD_", "TZ", "TERM", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


def forkable(environment: Mapping[str, str]) -> bool:
    """Whether these variables mean the same in a process that has started already."""
    return not any(
        name.startswith((*_READ_AT_THE_START, "PYTHON", "COVERAGE_")) and name != "PYTHONPATH" for name in environment
    )


_PROGRAM = """
import gc, json, os, socket, sys, tempfile
from importlib import import_module
from pathlib import Path
from contextlib import suppress
from engine import cli
from engine.errors import DecideError
from engine.binaries import find_binary
from engine.points.registry import POINTS
from engine.policy_bundle import build
from tests.shared_opa import lease
for module in {module for module, _ in cli._COMMANDS.values()} | {"MODULES"}:
    import_module(f"engine.cli.{module}" if module[:6] != "engine" else module)
for point in POINTS.values():
    point.input_schema
with suppress(DecideError):
    find_binary()  # once for all forks, which take it again if the file has changed
build._code_digest()
end = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()
monitors = set()
while True:
    data, descriptors, *_ = socket.recv_fds(end, 1 << 20, 4)
    if not data:
        sys.exit(0)
    asked = json.loads(data)
    monitors -= {monitor for monitor in monitors if os.waitpid(monitor, os.WNOHANG)[0]}
    pid = os.fork()
    if pid == 0:
        break
    if len(descriptors) == 4:
        monitors.add(pid)
    for descriptor in descriptors:
        os.close(descriptor)
    if pid not in monitors:
        end.send(b"%d" % pid)
        end.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
end.close()
if len(descriptors) == 4:
    told = descriptors.pop()
    pid = os.fork()
    if pid:  # the monitor of a server
        for descriptor in descriptors:
            os.close(descriptor)
        os.write(told, b"%d\\n" % pid)
        os.write(told, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    os.close(told)
for target, descriptor in enumerate(descriptors):
    os.dup2(descriptor, target)
    os.close(descriptor)
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["environment"])
tempfile.tempdir = None
for folder in os.environ.get("PYTHONPATH", "").split(":"):
    if (site := Path(folder, "sitecustomize.py")).is_file():
        exec(site.read_text(), {})
sys.argv = ["engine", *asked["arguments"]]
if asked["opa"] is not None:
    lease(Path(asked["opa"]))
if asked["code"] is not None:
    exec(asked["code"], {"__name__": "__main__"})
    sys.exit(0)
cli.main()
""".replace(
    '"MODULES"',
    '"engine.engine", "engine.reports.explain", "engine.state.store", "engine.opa.client", "engine.api.server"',
)


class Forked:
    """A server in a fork; as `subprocess.Popen` has it."""

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
                [sys.executable, "-c", _PROGRAM, str(other.fileno())],
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
            self._end.settimeout(seconds)
            socket.send_fds(self._end, [json.dumps(asked).encode()], [file.fileno() for file in (given, out, err)])
            pid = int(self._end.recv(_MESSAGE))
            try:
                code = int(self._end.recv(_MESSAGE))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._end.recv(_MESSAGE)
                raise subprocess.TimeoutExpired(list(arguments), seconds) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())

    def start(
        self, code: str | None, arguments: Sequence[str], environment: Mapping[str, str], log: BinaryIO, opa: Path
    ) -> Forked:
        """Start `engine ARGUMENTS…`, or this program with these arguments, and write its standard error to `log`."""
        asked = {"arguments": [*arguments], "cwd": str(ROOT), "environment": {**environment}, "opa": str(opa)}
        told, tells = os.pipe()
        try:
            with Path(os.devnull).open("r+b", buffering=0) as nothing:
                files = [nothing.fileno(), nothing.fileno(), log.fileno(), tells]
                socket.send_fds(self._end, [json.dumps(asked | {"code": code}).encode()], files)
        finally:
            os.close(tells)
        return Forked(os.fdopen(told, "rb", buffering=0))

    def close(self) -> None:
        """End the process."""
        self._end.close()
        self._process.wait()

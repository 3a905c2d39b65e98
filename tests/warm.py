"""Runs commands in forks of one process that has imported the engine: importing takes longer than most commands.

`scripts/test --all` measures coverage and starts every command as a user does; so does each test that says how.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT

_MESSAGE = 1 << 20

_PROGRAM = """
import gc, json, os, socket, sys
from importlib import import_module
from pathlib import Path
from engine import cli
from tests.shared_opa import lease
for module in {module for module, _ in cli._COMMANDS.values()} | {"MODULES"}:
    import_module(f"engine.cli.{module}" if module[:6] != "engine" else module)
end = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()
while True:
    data, descriptors, *_ = socket.recv_fds(end, 1 << 20, 3)
    if not data:
        sys.exit(0)
    asked = json.loads(data)
    pid = os.fork()
    if pid == 0:
        break
    for descriptor in descriptors:
        os.close(descriptor)
    end.send(b"%d" % pid)
    end.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
end.close()
for target, descriptor in enumerate(descriptors):
    os.dup2(descriptor, target)
    os.close(descriptor)
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["environment"])
sys.argv = ["engine", *asked["arguments"]]
if asked["opa"] is not None:
    lease(Path(asked["opa"]))
cli.main()
""".replace('"MODULES"', '"engine.engine", "engine.reports.explain", "engine.state.store", "engine.opa.client"')


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

    def close(self) -> None:
        """End the process."""
        self._end.close()
        self._process.wait()

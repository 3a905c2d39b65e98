"""The program that forks: it imports the engine once, and each fork runs one command or server.

A request is a message on a socket with the standard streams of the fork and a pipe, to which its process id and then
its exit code are written. It ends with the creator of the socket.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import socket
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from engine import cli
from engine.binaries import find_binary
from engine.errors import DecideError
from engine.points.registry import POINTS
from engine.policy_bundle import build
from tests.shared_opa import lease

MODULES = {
    *(module if module.startswith("engine") else f"engine.cli.{module}" for module, _ in cli._COMMANDS.values()),
    *("engine.engine", "engine.reports.explain", "engine.state.store", "engine.opa.client", "engine.api.server"),
}


def read_ahead() -> None:
    """What each fork would import or compute again."""
    for module in MODULES:
        import_module(module)
    for point in POINTS.values():
        _ = point.input_schema
    with suppress(DecideError):
        find_binary()  # each fork takes it again if the file has changed
    build._code_digest()


def fork_when_asked(end: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in each fork, with what was asked and its standard streams."""
    waiting = selectors.DefaultSelector()
    waiting.register(end, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is not None:  # a fork has ended
                pid, replies = key.data
                waiting.unregister(key.fd)
                os.close(key.fd)
                _send(replies, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os.close(replies)
                continue
            data, descriptors, *_ = socket.recv_fds(end, 1 << 20, 4)
            if not data:
                sys.exit(0)
            *streams, replies = descriptors
            pid = os.fork()
            if pid == 0:
                for other in waiting.get_map().values():
                    os.close(other.fd)
                    if other.data is not None:
                        os.close(other.data[1])
                waiting.close()
                end.detach()
                os.close(replies)
                return json.loads(data), streams
            for stream in streams:
                os.close(stream)
            _send(replies, pid)
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, replies))


def _send(replies: int, number: int) -> None:
    with suppress(BrokenPipeError):  # no caller waits for it any more
        os.write(replies, b"%d\n" % number)


def run(asked: dict[str, Any], streams: list[int]) -> None:
    """Be the process that was asked for."""
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None
    for folder in os.environ.get("PYTHONPATH", "").split(":"):
        if (site := Path(folder, "sitecustomize.py")).is_file():
            exec(site.read_text(), {})  # noqa: S102 - as a started interpreter does
    sys.argv = ["engine", *asked["arguments"]]
    if asked["opa"] is not None:
        lease(Path(asked["opa"]))
    if asked["code"] is None:
        cli.main()
    else:
        exec(asked["code"], {"__name__": "__main__"})  # noqa: S102 - the test's own program


if __name__ == "__main__":
    socket_end = socket.socket(fileno=int(sys.argv[1]))
    read_ahead()
    gc.freeze()
    run(*fork_when_asked(socket_end))

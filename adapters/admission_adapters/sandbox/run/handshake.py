"""Reads the status of bubblewrap and verifies that the process it started is our sandbox."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path

from admission_adapters.sandbox.run.proc import stat_of

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
"""The ids in the status line; it has none for the user namespace, which `--unshare-user` creates."""


class HandshakeError(Exception):
    """The started process is no complete sandbox."""


def child_of(line: bytes, without: frozenset[str]) -> int:
    """The first process of the sandbox, by the status line; every namespace must be there and not our own."""
    try:
        status = json.loads(line)
        child = status["child-pid"]
        ids = {name: status.get(f"{name}-namespace") for name in NAMESPACES}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise HandshakeError("status") from error
    for name, found in ids.items():
        if f"unshare_{name}" not in without and (not isinstance(found, int) or found == _own(name)):
            raise HandshakeError(f"{name} namespace")
    if not isinstance(child, int) or isinstance(child, bool) or child <= 1:
        raise HandshakeError("child")
    return child


def opened(child: int, monitor: int) -> int:
    """A pidfd of it: certainly a child of the monitor, for another process may have got the number since."""
    try:
        pidfd = os.pidfd_open(child)
    except OSError as error:
        raise HandshakeError("pidfd") from error
    try:
        if int(stat_of(child)[1]) == monitor and not is_dead(pidfd):
            return pidfd
    except (OSError, ValueError, IndexError):
        pass
    os.close(pidfd)
    raise HandshakeError("child")


def is_dead(pidfd: int, seconds: float = 0.0) -> bool:
    """Whether the process, and for the first one of a namespace everything in it, is dead."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def exit_line(rest: bytes) -> int | None:
    """The exit code, which the monitor reports last."""
    for line in rest.splitlines():
        try:
            code = json.loads(line)["exit-code"]
        except (ValueError, TypeError, KeyError):
            continue
        if isinstance(code, int):
            return code
    return None


def _own(name: str) -> int:
    return Path(f"/proc/self/ns/{name}").stat().st_ino

"""Binds the control socket in a state folder: for its owner alone, and never over an engine that answers."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import GatherError, Location, reason_of
from engine.record.storage import make_folder


def bind_unix(path: Path) -> socket.socket:
    """The control socket, 0600 in a folder 0700; a stale one is replaced. Raises GatherError."""
    try:
        make_folder(path.parent)
        path.parent.chmod(0o700)
        _remove_stale(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(path) as name:
                bound.bind(name)  # in a folder that only this user may enter
            path.chmod(0o600)
            bound.listen(64)
            bound.setblocking(False)  # noqa: FBT003  (its signature)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise _no_control(path, reason_of(error)) from error
    return bound


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """The path by the descriptor of its folder: a socket's own may have 107 bytes only (unix(7))."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise _no_control(path, "its path is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            with short_path(path) as name:
                probe.connect(name)
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise _no_control(path, "whether another engine uses it cannot be determined") from error
    raise _no_control(path, "another engine uses it")


def _no_control(path: Path, reason: str) -> GatherError:
    return GatherError(
        f"the control socket cannot be opened: {reason}",
        remedy="use a separate state folder for this engine (`--state`)",
        where=Location(str(path)),
    )

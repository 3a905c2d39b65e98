"""Walks a path below a folder descriptor, one part at a time; links are read, never followed by the kernel.

So nothing outside of the folder is ever opened or looked at, not even a device or a dead network folder
that a link leads to. Time of check is time of use: every folder and file that was checked stays open.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from engine.documents.files import unreadable
from engine.errors import GatherError

Kind = Literal["file", "folder", "fifo", "device", "socket"]

_MOST_LINKS = 40
"""Links on one path, as in Linux (`MAXSYMLINKS`)."""

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Holds a thing without opening it: a FIFO does not block, a device notices nothing."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP})
"""The errors for a part that does not exist, or that this process may not see."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder and its path without links, to which absolute links are compared."""

    descriptor: int
    real: str

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path leads to. `escapes`: a link on it leaves the folder, and nothing more is known.

    `kind` is absent if nothing visible exists there. `real` is the path without links, relative to
    the folder; `names` is the number of hard links of a file; `file` is present for an open file only.
    """

    linked: bool
    escapes: bool = False
    kind: Kind | None = None
    real: str | None = None
    bytes: int | None = None
    names: int | None = None
    file: BinaryIO | None = None


def open_folder(path: str, root: Path | None) -> Folder:
    """Open the folder that a request names. Where a root is set, nothing leads out of it. Raises GatherError."""
    if root is None:
        return _opened(Path(path))
    try:
        base = _opened(root)
    except GatherError as error:  # a server without a root has the null device for one
        raise _outside() from error
    walk = _Walk(base)
    try:
        below = not path.startswith("/") and ".." not in path.split("/") and walk.go(path)
        if not below or walk.absent or walk.end is not None:
            raise _outside()
        return Folder(os.dup(walk.here), "/".join([base.real.rstrip("/"), *walk.names]))
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        walk.close()
        base.close()


def find(folder: Folder, path: str) -> Target:
    """What is at a relative path below the folder; a regular file is open, to be closed by the caller.

    Raises GatherError for a system error that does not describe the path.
    """
    walk = _Walk(folder)
    try:
        if not walk.go(path):
            return Target(linked=True, escapes=True)
        real = "/".join(walk.names)
        if walk.absent:
            return Target(linked=walk.linked)
        if walk.end is None:
            return Target(linked=walk.linked, kind="folder", real=real)
        name, status = walk.end
        kind = _kind(status.st_mode)
        if kind != "file":
            return Target(linked=walk.linked, kind=kind, real=f"{real}/{name}".lstrip("/"))
        return _read(walk, f"{real}/{name}".lstrip("/"))
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        walk.close()


def _read(walk: _Walk, real: str) -> Target:
    """Open the file at the end of a walk; it must be the one that was seen."""
    assert walk.end is not None  # noqa: S101  (the caller looked)
    name, status = walk.end
    try:
        descriptor = os.open(name, _READ, dir_fd=walk.here)
    except OSError as error:
        if error.errno in _ABSENT | {errno.ENXIO, errno.EAGAIN}:
            return Target(linked=walk.linked)
        raise
    now = os.fstat(descriptor)
    if not os.path.samestat(now, status) or not stat.S_ISREG(now.st_mode):
        os.close(descriptor)
        return Target(linked=walk.linked)
    file = os.fdopen(descriptor, "rb")
    return Target(linked=walk.linked, kind="file", real=real, bytes=now.st_size, names=now.st_nlink, file=file)


class _Walk:
    """A position below a folder: the folders that were entered, and what is at the end."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._entered: list[tuple[str, int]] = []
        self.linked = False
        self.absent = False
        self.end: tuple[str, os.stat_result] | None = None

    @property
    def here(self) -> int:
        return self._entered[-1][1] if self._entered else self._folder.descriptor

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._entered]

    def close(self) -> None:
        while self._entered:
            os.close(self._entered.pop()[1])

    def go(self, path: str) -> bool:
        """Walk to the end of the path, or to where something is missing; False where it leaves the folder."""
        parts, links = deque(path.split("/")), 0
        while parts and not self.absent:
            part = parts.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                if not self._entered:
                    return False
                os.close(self._entered.pop()[1])
                continue
            target = self._step(part, last=not parts)
            if target is not None:
                links += 1
                self.linked = True
                inside = self._inside(target)
                if inside is None:
                    return False
                self.absent = links > _MOST_LINKS
                parts.extendleft(reversed(inside.split("/")))
        return True

    def _step(self, part: str, *, last: bool) -> str | None:
        """Follow one part of the path; returns the target if it is a link."""
        try:
            descriptor = os.open(part, _LOOK, dir_fd=self.here)
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError) or error.errno in _ABSENT:
                self.absent = True
                return None
            raise
        try:
            status = os.fstat(descriptor)
            if stat.S_ISLNK(status.st_mode):
                return os.readlink("", dir_fd=descriptor)
            if stat.S_ISDIR(status.st_mode):
                self._entered.append((part, descriptor))
                descriptor = -1
            elif last:
                self.end = (part, status)
            else:
                self.absent = True
            return None
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _inside(self, target: str) -> str | None:
        """Where a link leads, from here or from the folder itself; None outside of the folder."""
        if not target.startswith("/"):
            return target
        real = self._folder.real.rstrip("/")
        if target != real and not target.startswith(f"{real}/"):
            return None
        self.close()
        return target[len(real) :]


def _opened(path: Path) -> Folder:
    try:
        return Folder(os.open(path, _FOLDER), os.path.realpath(path))
    except OSError as error:
        raise unreadable(str(path), error) from error
    except ValueError as error:
        raise GatherError("the path of a folder contains a null byte", remedy="name a folder") from error


def _outside() -> GatherError:
    return GatherError(
        "the path is not a folder below the folder that this engine serves",
        remedy="name a folder relative to the folder of `--root`",
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISFIFO(mode):
        return "fifo"
    return "socket" if stat.S_ISSOCK(mode) else "device"

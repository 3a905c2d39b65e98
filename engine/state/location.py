"""Where the state file is, and that it is ours alone: made whole under another name, then given its own.

The file is never opened here once it has its name: closing any descriptor of it would drop the locks that
SQLite holds on it in this process (fcntl(2), POSIX record locks).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.errors import Location, StateError

NAME = "state.sqlite3"
_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, with the same permissions; a stray one would be read as part of it."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITE_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def locate(folder: Path, create: Callable[[Path], None]) -> Path:
    """The state file in `folder`; `create` makes it at first use. Raises StateError unless it is ours alone.

    A folder that is made gets 0700, a file 0600. Refused: links, files of other users, files that others
    may read, folders in which others may replace them.
    """
    path = folder / NAME
    try:
        _make_folder(folder)
        if _status(path) is None:
            _make_file(path, create)
        for one in (path, *(Path(f"{path}{end}") for end in _BESIDE)):
            _check_file(one)
    except OSError as error:
        raise unusable(path, error) from error
    return path


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None where there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116  (a microsecond, asked before every use)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def unusable(path: Path, error: OSError) -> StateError:
    """What an operation on the file or its folder that failed means."""
    return StateError(
        f"the state cannot be opened: {(error.strerror or 'input or output failed').lower()}",
        remedy="make room, repair the disk or the permissions of the state folder, or name another folder",
        where=Location(str(path)),
    )


def _make_folder(folder: Path) -> None:
    missing = [folder, *folder.parents]
    while missing and missing[-1].is_dir():
        missing.pop()
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if found.st_uid not in {os.geteuid(), 0} or found.st_mode & _WRITE_OF_OTHERS:
        raise _refused(folder, "others may change the state folder", "make it yours alone: `chmod 700`, or `chown`")


def _make_file(path: Path, create: Callable[[Path], None]) -> None:
    """Make the whole file aside, then link it into place: nobody ever sees a part of it, the first one wins."""
    if any(_status(Path(f"{path}{end}")) for end in _BESIDE) and _status(path) is None:
        raise _refused(
            path, "the state file is gone, but not what belongs to it", "restore the file, or move its -wal file aside"
        )
    aside = path.with_name(f".{NAME}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        create(aside)
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    finally:
        for one in (aside, *(Path(f"{aside}{end}") for end in _BESIDE)):
            one.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _check_file(path: Path) -> None:
    found = _status(path)
    if found is None:
        return
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "the state is not a regular file", "move aside what stands in its place")
    if found.st_uid != os.geteuid():
        raise _refused(path, "the state belongs to another user", "run the engine as that user, or move it aside")
    if found.st_mode & _OTHERS:
        raise _refused(path, "others may read the state", "find out who did, then make it yours alone: `chmod 600`")


def _refused(path: Path, message: str, remedy: str) -> StateError:
    return StateError(message, remedy=remedy, where=Location(str(path)))

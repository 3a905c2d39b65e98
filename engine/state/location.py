"""Finds or creates the state file and checks its ownership; a new file is completed aside, then linked into place.

The file is never opened here after it has its name: closing any descriptor of it would release the locks that
SQLite has on it in this process (fcntl(2), POSIX record locks).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.errors import Location, StateError, reason_of
from engine.record.storage import make_folder, sync_folder

NAME = "state.sqlite3"
_BESIDE = ("-wal", "-shm", "-journal")
"""Files of SQLite beside a database, with the same permissions; a stray one would be read as part of it."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITE_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def locate(folder: Path, create: Callable[[Path], None]) -> Path:
    """The state file in `folder`; `create` makes it at first use. Raises StateError unless it is ours alone.

    A new folder gets mode 0700, a new file 0600. Refused: links, files of other users, files that others
    may read, folders in which others may replace them.
    """
    path = folder / NAME
    try:
        make_folder(folder)
        _check_folder(folder)
        if _status(path) is None:
            _make_file(path, create)
        _check_files(folder)
    except OSError as error:
        raise StateError(
            f"the state cannot be opened: {reason_of(error)}",
            remedy="free disk space, repair the disk or the permissions of the state folder, or use another folder",
            where=Location(str(path)),
        ) from error
    return path


def identity(path: Path, *, least: int = 0) -> tuple[int, int] | None:
    """The device and inode that this name has now; None if there is no file, or one of fewer bytes."""
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116  (a microsecond, before every use)
    except OSError:
        return None
    return None if found.st_size < least else (found.st_dev, found.st_ino)


def require_private(folder: Path) -> None:
    """Raise StateError if others can change this folder, or read or replace the state file in it. May raise OSError."""
    _check_folder(folder)
    _check_files(folder)


def _check_folder(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid not in {os.geteuid(), 0}:
        remedy = f"run the command as user {found.st_uid}, for example by `sudo -u`, or name another folder"
        raise _refused(folder, "the state folder belongs to another user", remedy)
    if found.st_mode & _WRITE_OF_OTHERS:
        raise _refused(
            folder, "other users can change the state folder", "restrict it to this user with `chmod 700` or `chown`"
        )


def _check_files(folder: Path) -> None:
    for name in (NAME, *(f"{NAME}{end}" for end in _BESIDE)):
        _check_file(folder / name)


def _make_file(path: Path, create: Callable[[Path], None]) -> None:
    """Create the whole file aside, then link it into place: no reader sees a part of it, the first one wins."""
    if any(_status(Path(f"{path}{end}")) for end in _BESIDE) and _status(path) is None:
        raise _refused(
            path, "the state file is missing, but its -wal file exists", "restore the file, or move its -wal file aside"
        )
    aside = path.with_name(f".{NAME}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        create(aside)
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    finally:
        for file in (aside, *(Path(f"{aside}{end}") for end in _BESIDE)):
            file.unlink(missing_ok=True)
    sync_folder(path.parent)


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
        raise _refused(path, "the state is not a regular file", "move aside what is in its place")
    if found.st_uid != os.geteuid():
        raise _refused(path, "the state belongs to another user", "run the engine as that user, or move it aside")
    if found.st_mode & _OTHERS:
        raise _refused(
            path, "other users can read the state", "find out who did, then restrict it to this user with `chmod 600`"
        )


def _refused(path: Path, message: str, remedy: str) -> StateError:
    return StateError(message, remedy=remedy, where=Location(str(path)))

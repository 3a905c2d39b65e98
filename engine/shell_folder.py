"""A folder that commands in the sandbox work on: its files go in as copies, and what may be kept comes back.

Nothing hidden goes in, and no link is followed: neither into the sandbox nor on the way back. What could not go in does
not come back.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.documents.files import printable, unreadable
from engine.errors import GatherError
from engine.points.sandbox import FilePath

MOST_FILES, MOST_BYTES = 1_000, 64 << 20
"""Of a folder: what a request can name, and what is read into memory. What a command gets is a value of the policy."""

_PATH: TypeAdapter[str] = TypeAdapter(FilePath)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def files_in(folder: Path) -> dict[str, bytes]:
    """The regular files below a folder by their paths there, but for hidden ones and links. Raises GatherError."""
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    for path in _paths(folder):
        if len(found) == MOST_FILES:
            raise _too_much(folder)
        name = path.relative_to(folder).as_posix()
        if not _fits(name):
            raise GatherError(
                f"the path `{printable(name, 1_100)}` cannot be given to a command",
                remedy="use at most 32 names and 1,000 characters, none of them a backslash or a control character",
            )
        try:
            with os.fdopen(os.open(path, _READ), "rb") as file:
                found[name] = file.read(left + 1)
        except OSError as error:
            raise unreadable(name, error) from error
        left -= len(found[name])
        if left < 0:
            raise _too_much(folder)
    return found


def _fits(path: str) -> bool:
    try:
        _PATH.validate_python(path)
    except ValidationError:
        return False
    return True


def _paths(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(above, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _unreadable(error: OSError) -> None:
    raise unreadable(str(error.filename), error) from error


def _too_much(folder: Path) -> GatherError:
    return GatherError(
        f"`{printable(str(folder))}` has more than {MOST_FILES} files or {MOST_BYTES} bytes",
        remedy="name a folder with the files that the command needs",
    )


def put_back(folder: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Write files below a folder, each whole or not at all, in place of those of the same path and with their mode.

    Returns the paths that were not written: hidden ones, because tools run what is in them, those behind a link, those
    that could not go in again, and those that the system refuses.
    """
    refused = []
    for path, data in files.items():
        *above, name = path.split("/")
        try:
            if not _fits(path):
                raise PermissionError
            _write(folder, above, name, data)
        except OSError:
            refused.append(path)
    return tuple(refused)


def _write(folder: Path, above: list[str], name: str, data: bytes) -> None:
    descriptor = os.open(folder, _FOLDER)
    try:
        for part in above:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=descriptor)
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        aside = f".{secrets.token_hex(8)}"
        file = os.open(aside, _NEW, 0o666, dir_fd=descriptor)
        try:
            with os.fdopen(file, "wb") as written:
                if (mode := _mode(name, descriptor)) is not None:
                    os.fchmod(file, mode)
                written.write(data)
            os.replace(aside, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except OSError:
            os.unlink(aside, dir_fd=descriptor)
            raise
    finally:
        os.close(descriptor)


def _mode(name: str, folder: int) -> int | None:
    """The permissions of a regular file; None if there is none."""
    with suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        return stat.S_IMODE(found) & 0o777 if stat.S_ISREG(found) else None
    return None

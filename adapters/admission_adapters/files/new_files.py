"""Creates files: never replaces a file, never follows a link, never exceeds the requested size."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from engine.errors import WorkError, reason_of

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def create(
    folder: int, name: str, chunks: Iterable[bytes | bytearray], most: int, *, sync: bool = True, mode: int = 0o400
) -> tuple[int, str]:
    """Create one file, read-only by its default mode, of at most `most` bytes; returns its size and SHA-256 in hex.

    On any failure nothing of it remains. Raises FileExistsError if the name exists, WorkError past `most`.
    """
    descriptor = os.open(name, _NEW, mode, dir_fd=folder)
    size, sha256 = 0, hashlib.sha256()
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in _capped(chunks, most):
                size += len(chunk)
                sha256.update(chunk)
                file.write(chunk)
            if sync:
                file.flush()
                os.fsync(descriptor)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    return size, sha256.hexdigest()


def existing(folder: int, name: str) -> BufferedReader:
    """Open a file for reading, unless it is a link."""
    return os.fdopen(os.open(name, _OLD, dir_fd=folder), "rb")


@contextmanager
def opened(folder: Path | str, within: int | None = None) -> Iterator[int]:
    """The descriptor of a folder, unless it is a link; `within` is the descriptor of the folder that it is in."""
    descriptor = os.open(folder, FOLDER, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: int) -> list[str]:
    """The names of everything in a folder."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


@contextmanager
def writing(what: str, taken: str, where: str = "the folder") -> Iterator[None]:
    """Turns errors of the system within into WorkErrors; `taken` is the remedy where another program made something."""
    try:
        yield
    except OSError as error:
        there = error.errno in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}
        remedy = taken if there else f"free disk space, or check the permissions of {where}"
        reason = reason_of(error)
        raise WorkError(f"{what} cannot be written: {reason}", remedy=remedy) from error


def _capped(chunks: Iterable[bytes | bytearray], most: int) -> Iterator[bytes | bytearray]:
    left = most
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise WorkError(f"an artifact is larger than {most} bytes", remedy="write less, or request a larger limit")
        yield chunk

"""All disk access of the record, in one class that tests replace to simulate crashes."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from engine.errors import Location, RecordError, reason_of

SMALL_BYTES = 1 << 16
"""The most that is read of a small file; those of the record have a few hundred bytes."""

_POLL_SECONDS = 0.01
"""Between two tries for the lock; short beside the time an engine needs to start."""


class LockHeldError(Exception):
    """Another process has the lock and did not release it in time."""


class ChangedError(OSError):
    """A file of the record was removed, renamed, replaced or changed by something other than its writer."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, f"`{path}` was removed, renamed, replaced or changed")


class Storage:
    """Files below one state folder, named by relative paths with `/`. Every method may raise OSError.

    Nothing is durable before `sync` of the file, and no name before `sync_folder` of its folder. The lock is one of
    `flock`, since any close of the file drops POSIX locks.
    """

    def __init__(self, root: Path) -> None:
        self.place = str(root)
        """Names these files in errors."""
        self._root = root
        self._owner = os.getpid()
        self._handles: dict[str, int] = {}
        self._lock: int | None = None
        self._watched: dict[str, tuple[str, _Signature]] = {}

    def lock(self, path: str, seconds: float) -> None:
        """Take the exclusive lock, waiting up to `seconds`. Raises LockHeldError."""
        if self.holds(path):
            return
        deadline = time.monotonic() + seconds
        self._take_lock(path, deadline)
        while not self.holds(path):  # removed by another process after it was opened here
            self._take_lock(path, deadline)

    def holds(self, path: str) -> bool:
        """Whether this process still has the lock, on the file with this name."""
        if self._lock is None:
            return False
        try:
            named = os.lstat(self._root / path)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._lock))

    def _take_lock(self, path: str, deadline: float) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        handle = self._open(path, os.O_RDWR | os.O_CREAT)
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(handle)
                    raise LockHeldError from None
                time.sleep(_POLL_SECONDS)
            except OSError:
                os.close(handle)
                raise
            else:
                self._lock = handle
                return

    def locked(self, path: str) -> bool:
        """Whether an engine has the lock now."""
        try:
            handle = self._open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def size(self, path: str) -> int | None:
        """Bytes of a regular file; None if there is none."""
        try:
            return os.lstat(self._root / path).st_size
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        """Open for reading."""
        handle = self._open(path, os.O_RDONLY)
        try:
            return os.fdopen(handle, "rb")
        except OSError:
            os.close(handle)
            raise

    def names(self, folder: str) -> list[str]:
        """Sorted names in a folder; empty if there is no folder."""
        try:
            return sorted(path.name for path in (self._root / folder).iterdir())
        except FileNotFoundError:
            return []

    def make_folder(self, path: str) -> None:
        """Create a folder (0700) and missing parents."""
        make_folder(self._root / path)

    def create(self, path: str) -> None:
        """Create an empty file (0600); raises FileExistsError if the name exists."""
        os.close(self._open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    def append(self, path: str, data: bytes) -> None:
        """Write all of `data` at the end; a short write raises OSError."""
        written = os.write(self._handle(path), data)
        if written != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def rewrite(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite bytes in place."""
        handle = self._open(path, os.O_WRONLY)
        try:
            if os.pwrite(handle, data, offset) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes."""
        os.ftruncate(self._handle(path), size)

    def sync(self, path: str) -> None:
        """Make the content of a file durable."""
        os.fdatasync(self._handle(path))

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing the target."""
        self.release(old)
        (self._root / old).rename(self._root / new)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self.release(path)
        (self._root / path).unlink(missing_ok=True)

    def sync_folder(self, path: str) -> None:
        """Make the entries of a folder durable."""
        sync_folder(self._root / path)

    def watch(self, path: str) -> None:
        """Remember the identity and content of the file with this name."""
        place = str(self._root / path)
        self._watched[path] = place, _signature(os.lstat(place))

    def unchanged(self, path: str, size: int | None = None) -> None:
        """Raise ChangedError unless the name still leads to the watched file.

        With `size`, the file must have this size; without it, it must be unchanged since.
        """
        place, signature = self._watched[path]
        try:
            found = _signature(os.lstat(place))  # two microseconds, once a file and group of lines
        except OSError as error:
            raise ChangedError(path) from error
        if found[:2] != signature[:2] or (found != signature if size is None else found[2] != size):
            raise ChangedError(path)

    def release_all(self) -> None:
        """Close every file, and keep the lock."""
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            _close(handle)

    def close(self) -> None:
        """Close every descriptor and release the lock."""
        self.release_all()
        if self._lock is not None:
            lock, self._lock = self._lock, None
            if os.getpid() == self._owner:
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_UN)  # forked processes have it open too
            _close(lock)

    def _open(self, path: str, flags: int) -> int:
        # O_NONBLOCK: a pipe in place of a file must not block forever
        return os.open(self._root / path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)

    def _handle(self, path: str) -> int:
        if path not in self._handles:
            self._handles[path] = self._open(path, os.O_WRONLY | os.O_APPEND)
        return self._handles[path]

    def release(self, path: str) -> None:
        """Close a file that will not be written to again."""
        handle = self._handles.pop(path, None)
        if handle is not None:
            os.close(handle)


def write_file(storage: Storage, path: str, data: bytes) -> None:
    """Replace a whole file atomically, also in a crash."""
    temporary = f"{path}.new"
    storage.remove(temporary)
    storage.create(temporary)
    storage.append(temporary, data)
    storage.sync(temporary)
    storage.rename(temporary, path)
    storage.sync_folder(path.rpartition("/")[0])


def read_file(storage: Storage, path: str) -> bytes | None:
    """A whole small file, at most `SMALL_BYTES` of it; None if there is none."""
    if storage.size(path) is None:
        return None
    with storage.open(path) as file:
        return file.read(SMALL_BYTES)


@contextmanager
def readable(state: Path) -> Iterator[None]:
    """Turn an OSError of the block into the RecordError for a record that cannot be read."""
    try:
        yield
    except OSError as error:
        reason = reason_of(error)
        raise RecordError(
            f"the record cannot be read: {reason}",
            remedy="check the state folder and its permissions",
            where=Location(str(error.filename or state)),
        ) from error


_Signature = tuple[int, int, int, int]
"""Device, inode, bytes, and time of the last change to the content in nanoseconds."""


def _signature(found: os.stat_result) -> _Signature:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _close(handle: int) -> None:
    with suppress(OSError):  # everything acknowledged was synced; the kernel frees the descriptor all the same
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder (0700) and missing parents."""
    missing = [folder, *folder.parents]
    while missing and missing[-1].is_dir():
        missing.pop()
    for parent in reversed(missing):  # from the outermost: each name durable before anything is put below it
        parent.mkdir(mode=0o700, exist_ok=True)
        sync_folder(parent.parent)


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""The artifact store: code, results and failure logs by the digest of their bytes, each with an expiry date (C62).

A file is named by its SHA-256, written to a temporary file and then linked, so it is never partial; only
the engine's user may read it. Its modification time is its expiry date.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from admission_adapters.files.drafts import DRAFT
from admission_adapters.files.new_files import create, existing, names_in, opened
from engine.errors import WorkError, reason_of

OBJECT_BYTES = 64 << 20
"""The largest object; the permit of a program sets a much lower limit."""

_DAY = 86_400
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SHELF = re.compile(r"[0-9a-f]{2}", re.ASCII)
_SWEEP_SECONDS = 3_600
"""The interval at which `put` removes expired objects."""

_OLD_DRAFT = 3_600
"""Seconds after which a draft is of an engine that died."""


class ArtifactStore:
    """A folder of objects below the state folder, created by the first write. Raises WorkError only.

    Threads and processes may share it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._next_sweep = 0
        self._booted_at = time.time() - _since_boot()

    def put(self, data: bytes, now: int, days: int) -> str:
        """Store an object for `days` from `now` (seconds since 1970 UTC), durable on return; returns its digest.

        An object that is already stored is kept until the later of the two dates. Expired objects are removed
        by a clock that cannot be set while the store is open, if `now` is ahead of it.
        """
        if days < 1:
            raise WorkError(
                "the retention of the object is not stated", remedy="state retention_days in policy/code.yaml"
            )
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            self.sweep(min(now, int(self._booted_at + _since_boot())))
        name, until = hashlib.sha256(data).hexdigest(), now + days * _DAY
        with self._shelf(name[:2], make=True) as shelf:
            if not _extended(shelf, name, until):
                _write(shelf, name, data, until)
        return f"sha256:{name}"

    def get(self, digest: str) -> bytes | None:
        """The object with this digest, `sha256:` and 64 hex digits or the digits alone; None if there is none."""
        name = digest.removeprefix("sha256:")
        if not _NAME.fullmatch(name):
            return None
        try:
            with self._shelf(name[:2], make=False) as shelf, existing(shelf, name) as file:
                data = file.read(OBJECT_BYTES + 1)
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != name:
            raise _changed()
        return data

    def sweep(self, now: int) -> int:
        """Remove expired objects and drafts of dead engines; returns the number of removed objects."""
        removed = 0
        for shelf_name in self._shelves():
            with suppress(FileNotFoundError), self._shelf(shelf_name, make=False) as shelf:
                for name in names_in(shelf):
                    with suppress(FileNotFoundError):
                        until = int(os.stat(name, dir_fd=shelf, follow_symlinks=False).st_mtime)
                        own = _NAME.fullmatch(name) is not None
                        stale = name.startswith(DRAFT) and until + _OLD_DRAFT <= now
                        if (own and until <= now) or stale:
                            os.unlink(name, dir_fd=shelf)
                            removed += own
        return removed

    def _shelves(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self._root.iterdir() if _SHELF.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _broken(error) from error

    @contextmanager
    def _shelf(self, name: str, *, make: bool) -> Iterator[int]:
        """The descriptor of one folder of objects; turns errors of the system into WorkErrors."""
        try:
            if make:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with opened(self._root) as root:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=root)
                        os.fsync(root)
                with opened(name, root) as shelf:
                    # A sweep must not remove an object whose expiry a concurrent `put` extends.
                    fcntl.flock(shelf, fcntl.LOCK_EX)
                    yield shelf
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _broken(error) from error


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _extended(shelf: int, name: str, until: int) -> bool:
    """Whether the object is already stored; its expiry is then extended to `until`."""
    try:
        found = os.stat(name, dir_fd=shelf, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise _changed()
    if found.st_mtime < until:
        os.utime(name, (until, until), dir_fd=shelf, follow_symlinks=False)
    return True


def _write(shelf: int, name: str, data: bytes, until: int) -> None:
    draft = DRAFT + secrets.token_hex(8)
    create(shelf, draft, (data,), OBJECT_BYTES, sync=False)
    try:
        os.utime(draft, (until, until), dir_fd=shelf, follow_symlinks=False)
        with existing(shelf, draft) as file:
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another engine was faster
            os.link(draft, name, src_dir_fd=shelf, dst_dir_fd=shelf, follow_symlinks=False)
    finally:
        os.unlink(draft, dir_fd=shelf)
    os.fsync(shelf)


def _changed() -> WorkError:
    return WorkError(
        "the object in the artifact store was changed after it was stored",
        remedy="find out what changed it; the record has its original digest",
        code="engine.artifacts_changed",
    )


def _broken(error: OSError) -> WorkError:
    reason = reason_of(error)
    full = " and make room" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return WorkError(
        f"the artifact store cannot be used: {reason}",
        remedy=f"check the folder `artifacts` of the state folder{full}",
        code="engine.artifacts_unavailable",
    )

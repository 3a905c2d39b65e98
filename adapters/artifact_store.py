"""The artifact store: code, results and failure logs by the digest of their bytes, kept for a stated time (C62).

A file is named by its SHA-256, written beside and then linked, so it is there whole or not at all; nobody
but the engine's user may read it. Its time of modification is the time until which it is kept.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adapters.new_files import FOLDER, create, existing, names_in
from engine.errors import WorkError

OBJECT_BYTES = 64 << 20
"""The largest object; what may be kept of a program is bounded by its permit far below."""

_DAY = 86_400
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SHELF = re.compile(r"[0-9a-f]{2}", re.ASCII)
_DRAFT = ".draft-"
_SWEEP_SECONDS = 3_600
"""How often what is kept no longer is removed, by whoever puts something in."""

_OLD_DRAFT = 3_600
"""Seconds after which a draft is of an engine that died."""


class ArtifactStore:
    """A folder of objects below the state folder, made when it is first written to. Raises WorkError only.

    Threads and processes may share it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._next_sweep = 0

    def put(self, data: bytes, now: int, days: int) -> str:
        """Keep an object for so many days from `now` (seconds since 1970 UTC), durable on return; its digest.

        What is there already is kept for the longer of the two times.
        """
        if days < 1:
            raise WorkError(
                "nothing says for how long an object is kept", remedy="state retention_days in policy/code.yaml"
            )
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            self.sweep(now)
        name, until = hashlib.sha256(data).hexdigest(), now + days * _DAY
        with self._shelf(name[:2], make=True) as shelf:
            if not _extended(shelf, name, until):
                _write(shelf, name, data, until)
        return f"sha256:{name}"

    def get(self, digest: str) -> bytes | None:
        """The object with this digest, `sha256:` and 64 hex digits or these alone; None where there is none."""
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
        """Remove what is kept no longer, and what an engine left that died; how many objects went."""
        removed = 0
        for shelf_name in self._shelves():
            with suppress(FileNotFoundError), self._shelf(shelf_name, make=False) as shelf:
                for name in names_in(shelf):
                    with suppress(FileNotFoundError):
                        until = int(os.stat(name, dir_fd=shelf, follow_symlinks=False).st_mtime)
                        own = _NAME.fullmatch(name) is not None
                        stale = name.startswith(_DRAFT) and until + _OLD_DRAFT <= now
                        if (own and until <= now) or stale:
                            os.unlink(name, dir_fd=shelf)
                            removed += own
        return removed

    def _shelves(self) -> list[str]:
        try:
            return sorted(one.name for one in self._root.iterdir() if _SHELF.fullmatch(one.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _broken(error) from error

    @contextmanager
    def _shelf(self, name: str, *, make: bool) -> Iterator[int]:
        """The descriptor of one folder of objects; what the system refuses becomes a WorkError here."""
        opened: list[int] = []
        try:
            if make:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            root = os.open(self._root, FOLDER)
            opened.append(root)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=root)
                    os.fsync(root)
            shelf = os.open(name, FOLDER, dir_fd=root)
            opened.append(shelf)
            fcntl.flock(shelf, fcntl.LOCK_EX)  # nobody sweeps away what somebody else keeps for longer
            yield shelf
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _broken(error) from error
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _extended(shelf: int, name: str, until: int) -> bool:
    """Whether the object is there already; it is then kept at least until then."""
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
    draft = _DRAFT + secrets.token_hex(8)
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
        "the object in the artifact store is not what was put there",
        remedy="find out who changed it; the record has its digest",
        code="engine.artifacts_changed",
    )


def _broken(error: OSError) -> WorkError:
    reason = os.strerror(error.errno).lower() if error.errno else "it failed"
    full = " and make room" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return WorkError(
        f"the artifact store cannot be used: {reason}",
        remedy=f"check the folder `artifacts` of the state folder{full}",
        code="engine.artifacts_unavailable",
    )

"""Built archives on disk: each in a folder named by the digest of all it was built from.

A folder appears whole or not at all, and is used again only when every file in it is what was
written. That finds half-written and damaged files. It proves nothing against who can write here:
the archives are proven by the digest of their content, by the build and again where OPA starts.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.documents.canonical import digest
from engine.errors import DecideError, reason_of

_NOTE = "note.json"
_UNUSED_SECONDS = 30 * 24 * 3600
_UNUSABLE = "set XDG_CACHE_HOME to a folder that this user can write and others cannot"


def kept(folder: Path, key: str) -> dict[str, bytes] | None:
    """The files of `folder/key`, read once, if they were stored earlier and are complete."""
    chosen = folder / key
    files = _whole(chosen)
    if files is not None:
        with suppress(OSError):
            os.utime(chosen)
    return files


def keep(folder: Path, key: str, files: Mapping[str, bytes]) -> Path:
    """Put the files into `folder/key`, unless another process has put the same there. Raises DecideError."""
    chosen = folder / key
    try:
        _private(folder)
        if _whole(chosen) == files:
            return chosen
        _publish(folder, chosen, files)
        _sweep(folder)
    except OSError as error:
        raise _unusable(folder, reason_of(error)) from error
    if _whole(chosen) != files:
        raise _unusable(folder, "it does not keep what is written")
    return chosen


def _unusable(folder: Path, reason: str) -> DecideError:
    return DecideError(
        f"the policy cache `{folder}` cannot be used: {reason}", remedy=_UNUSABLE, code="engine.policy_cache"
    )


def _whole(chosen: Path) -> dict[str, bytes] | None:
    """The files of a folder that is private and contains exactly what its note names; None otherwise."""
    try:
        if not all(_is_private(one.lstat()) for one in (chosen.parent.parent, chosen.parent, chosen)):
            return None
        note = json.loads((chosen / _NOTE).read_bytes())
        files = {path.name: path.read_bytes() for path in chosen.iterdir() if path.name != _NOTE}
    except (OSError, ValueError):
        return None
    return files if note == {name: digest(data) for name, data in files.items()} else None


def _publish(folder: Path, chosen: Path, files: Mapping[str, bytes]) -> None:
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        for name, data in files.items():
            (partial / name).write_bytes(data)
        note = {name: digest(data) for name, data in files.items()}
        (partial / _NOTE).write_text(json.dumps(note), encoding="utf-8")
        for _ in range(3):
            try:
                partial.rename(chosen)
            except OSError:  # it exists: another process was faster, or the entry is damaged
                if _whole(chosen) == files:
                    return
                _remove(chosen)
            else:
                return
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove(chosen: Path) -> None:
    """Take a damaged folder out of the way at once, then delete it."""
    aside = Path(tempfile.mkdtemp(prefix=".damaged-", dir=chosen.parent))
    try:
        with suppress(OSError):
            chosen.rename(aside / chosen.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _private(folder: Path) -> None:
    for one in (folder.parent, folder):
        one.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_private(one.lstat()):
            raise PermissionError(1, "it belongs to another user, or others may write to it")


def _is_private(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _sweep(folder: Path) -> None:
    """Remove what has not been used for a month, and what a killed process left."""
    oldest = time.time() - _UNUSED_SECONDS
    for path in folder.iterdir():
        with suppress(OSError):
            if path.lstat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)

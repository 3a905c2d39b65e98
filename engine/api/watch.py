"""`--watch`, for development: activate the policy again when files of its folders have changed and are whole."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.control import reload
from engine.documents.files import load
from engine.errors import GatherError
from engine.settings import ReadLimits, Settings

if TYPE_CHECKING:
    from engine.api.app import App

_SECONDS = 0.5
"""Between two looks; two equal looks after a change mean that the writer is done."""

_PATIENCE = 6
"""Equal looks after which a document that does not parse is a mistake and no longer a part of one."""


class Changes:
    """Decides at each look whether to activate. `active` is the content that was activated last."""

    def __init__(self, active: str) -> None:
        self._active = self._last = active
        self._equal = 0

    def ready(self, now: str, unfinished: dict[Path, bool]) -> bool:
        """Whether this content is to be activated: it is new, no longer changes, and is whole.

        `unfinished` has the files that are not whole, and whether one is open for writing.
        """
        self._equal = self._equal + 1 if now == self._last else 0
        self._last = now
        whole = not unfinished or (self._equal >= _PATIENCE and not any(unfinished.values()))
        if now == self._active or not self._equal or not whole:
            return False
        self._active = now
        return True


async def watch(api: App, settings: Settings, before: str) -> None:
    """Look at the content of the folders until cancelled.

    `before` is its digest before the served policy was read, so that an edit during the start is a change too.
    """
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # the signal of a lease, which is released at once
    folders, changes = policy_folders(settings), Changes(before)
    while True:
        await asyncio.sleep(_SECONDS)
        try:
            now = await asyncio.to_thread(lambda: (content_digest(folders), unfinished(folders)))
        except OSError:  # a folder was removed while it was read
            continue
        if changes.ready(*now):
            await reload(api, "the folders of the policy changed")


def policy_folders(settings: Settings) -> tuple[Path, ...]:
    """The folders that are watched."""
    return settings.rego, settings.policy, settings.recipe


def content_digest(folders: tuple[Path, ...]) -> str:
    """One digest over names and contents of all files below; of whatever can be read."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except OSError:
                content = b"?"
            found.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            found.update(content)
    return found.hexdigest()


def unfinished(folders: tuple[Path, ...]) -> dict[Path, bool]:
    """The rules and values that are not whole: open for writing (true), or no document (false)."""
    found: dict[Path, bool] = {}
    for path in (path for folder in folders for path in folder.rglob("*") if path.suffix in {".rego", ".yaml"}):
        if _is_written(path):
            found[path] = True
        elif path.suffix == ".yaml" and not _is_document(path):
            found[path] = False
    return found


def _is_written(path: Path) -> bool:
    """Whether a process has the file open for writing: the kernel then grants no read lease (fcntl(2))."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False  # missing or unreadable: the build reports it
    with closing(os.fdopen(descriptor, "rb")):
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return True
        except OSError:  # a file of another user, or a file system without leases: equal looks have to do
            return False
    return False


def _is_document(path: Path) -> bool:
    try:
        return load(path.read_bytes(), path.name, ReadLimits()).value is not None
    except (OSError, GatherError):
        return False

"""Finds gVisor's runsc as built for this user, compares it with its build record and keeps it open.

It is run by its descriptor, so that the sandbox's user needs no access to its folder, and so
that the compared file is the one that runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MODULE = Path(__file__).with_name("module")
"""The Go module that pins it; `engine sandbox install gvisor` builds from here."""

NAME = "runsc"
INSTALL = "run `engine sandbox install gvisor`, which builds it from its Go module"

_MODE, _WRITABLE = 0o555, 0o022
_PIN = re.compile(r"^\s*gvisor\.dev/gvisor (v\S+)", re.MULTILINE)


class MissingError(Exception):
    """There is no runsc, or another one than was pinned and built; the text contains the remedy."""


@dataclass(frozen=True, slots=True)
class Runsc:
    """A verified runsc: where it is, an open descriptor of it that stays open, its version and its SHA-256 in hex."""

    path: Path
    descriptor: int
    version: str
    sha256: str


def pinned() -> str:
    """The version that the module names, without the leading `v`."""
    found = _PIN.search((MODULE / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise MissingError("the module of gVisor pins no version: reinstall the package")
    return found[1].removeprefix("v")


def find(folder: Path) -> Runsc:
    """The runsc in `folder`. Reads all of it the first time and whenever it was touched. Raises MissingError."""
    try:
        found = (folder / NAME).stat()
    except OSError as error:
        raise MissingError(f"gVisor is not installed: {INSTALL}") from error
    try:
        note = (folder / f"{NAME}.json").read_text(encoding="utf-8")
        touched = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return _verified(folder / NAME, note, touched)
    except (OSError, ValueError) as error:
        raise MissingError(f"the metadata of the installed gVisor cannot be read: {INSTALL}") from error


@cache
def _verified(path: Path, note: str, touched: tuple[int, ...]) -> Runsc:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Runsc(path, descriptor, *_compared(descriptor, json.loads(note), touched))
    except BaseException:
        os.close(descriptor)
        raise


def _compared(descriptor: int, note: object, touched: tuple[int, ...]) -> tuple[str, str]:
    """Its version and digest, when it is the pinned one, as built, and executable by others."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = os.fstat(descriptor)
    if not isinstance(note, dict) or note.get("sha256") != digest or found.st_ino != touched[1]:
        raise MissingError(f"the installed gVisor differs from the file that was built: {INSTALL}")
    if note.get("version") != pinned():
        raise MissingError(f"the installed gVisor is not the pinned version: {INSTALL}")
    if (found.st_mode & _MODE) != _MODE or found.st_mode & _WRITABLE:
        raise MissingError(f"the permissions of the installed gVisor have changed: {INSTALL}")
    return pinned(), digest

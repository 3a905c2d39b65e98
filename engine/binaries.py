"""Find the bundled tools, OPA and the parser of commands, and refuse to run any other file in their place."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from engine.errors import DecideError
from engine.settings import bundled

_TITLES = {"opa": "OPA", "shell_parser": "parser of commands"}
_REBUILD = "reinstall the package, or run scripts/run, which builds it again"


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary whose digest was compared with the one noted when it was built."""

    path: Path
    version: str
    sha256: str
    unchanged: tuple[int, ...] = ()
    """The `fstat` of the file whose digest was computed; the kernel changes it with every write."""
    title: str = "OPA"

    @contextmanager
    def verified(self) -> Iterator[int]:
        """The file, open and compared again: to be executed by this descriptor. Raises DecideError."""
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _refused(f"the bundled {self.title} is missing or cannot be read") from error
        with file:
            if _state(file) != self.unchanged and hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise _refused(f"the bundled {self.title} was changed since this engine started")
            yield file.fileno()


def find_binary(name: str = "opa") -> Binary:
    """The bundled tool of this name. Raises DecideError when it is absent, not executable, or another file."""
    path, note, title = bundled(name), bundled(f"{name}.json"), _TITLES[name]
    try:
        built = json.loads(note.read_text(encoding="utf-8"))
        with path.open("rb") as file:
            state = _state(file)
        found = _digest(path, state)
    except (OSError, ValueError) as error:
        raise _refused(f"the bundled {title} is missing or cannot be read") from error
    if not isinstance(built, dict) or found != built.get("sha256"):
        raise _refused(f"the bundled {title} differs from the file that was built")
    if not os.access(path, os.X_OK):
        raise _refused(f"the bundled {title} is not executable")
    return Binary(path, str(built.get("version")), found, state, title)


def _state(file: BinaryIO) -> tuple[int, ...]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@lru_cache(maxsize=4)
def _digest(path: Path, state: tuple[int, ...]) -> str:
    """The digest of this file in this state, computed once per process. Raises OSError when it changes meanwhile."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if _state(file) != state:
            raise OSError("the file changes")
    return found


def _refused(message: str) -> DecideError:
    return DecideError(message, remedy=_REBUILD, code="engine.opa_binary")

"""Find the bundled OPA and refuse to run any other file in its place."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.errors import DecideError
from engine.settings import bundled

_REBUILD = "reinstall the package, or run scripts/run, which builds it again"


@dataclass(frozen=True, slots=True)
class Binary:
    """The OPA binary whose digest was compared with the one noted when it was built."""

    path: Path
    version: str
    sha256: str

    @contextmanager
    def verified(self) -> Iterator[int]:
        """The file, open and compared again: to be executed by this descriptor. Raises DecideError."""
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _refused("the bundled OPA is missing or cannot be read") from error
        with file:
            if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise _refused("the bundled OPA was changed since this engine started")
            yield file.fileno()


def find_binary() -> Binary:
    """The bundled OPA. Raises DecideError when it is absent, not executable, or another file."""
    path, note = bundled("opa"), bundled("opa.json")
    try:
        built = json.loads(note.read_text(encoding="utf-8"))
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise _refused("the bundled OPA is missing or cannot be read") from error
    if not isinstance(built, dict) or found != built.get("sha256"):
        raise _refused("the bundled OPA is not the file that was built")
    if not os.access(path, os.X_OK):
        raise _refused("the bundled OPA may not be executed")
    return Binary(path, str(built.get("version")), found)


def _refused(message: str) -> DecideError:
    return DecideError(message, remedy=_REBUILD, code="engine.opa_binary")

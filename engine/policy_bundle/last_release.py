"""The last served release, stored in the state folder: an older one is never served again.

`<state>/policy/last_release.json` is replaced atomically, so that after a crash the old or the new one
exists. Anyone who can write to the state folder could also remove it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from engine.documents.canonical import canonical
from engine.documents.files import opened_folder, read_bytes
from engine.errors import GatherError, Location, PolicyError, Problem, StateError, reason_of
from engine.model import Digest, Model
from engine.record.storage import make_folder

_FILE = "last_release.json"
_BYTES = 64 << 10
_REMEDY = "restore it from a backup; to accept any release once, on purpose, remove the file"


class LastRelease(Model):
    """Name, sequence and digest of the release that was served last."""

    format: Literal[1] = 1
    name: str
    sequence: Annotated[int, Field(ge=1)]
    digest: Digest

    def refuses(self, new: LastRelease) -> tuple[str, str] | None:
        """Why `new` must not be served after this one: message and remedy. None when it may."""
        if new.name != self.name:
            message = f"this is a release of the policy `{new.name}`; `{self.name}` was served last"
            return (
                message,
                f"release it as `{self.name}`; to change the policy on purpose, remove policy/{_FILE} of the state",
            )
        if new.sequence < self.sequence:
            message = f"this is a rollback: release {new.sequence} is older than {self.sequence}, which was served last"
            return (
                message,
                f"to go back, release its content again, after release {self.sequence}: `engine policy rollback`",
            )
        if new.sequence == self.sequence and new.digest != self.digest:
            message = f"another release with the sequence {new.sequence} was served last"
            return message, f"give the new release a sequence above {self.sequence}"
        return None


def read_last(state: Path) -> LastRelease | None:
    """What was served last; None when nothing was. Raises PolicyError when that cannot be known."""
    path = state / "policy" / _FILE
    try:
        path.lstat()
        return LastRelease.model_validate_json(read_bytes(path, _BYTES))
    except FileNotFoundError:
        return None
    except (GatherError, OSError, ValidationError) as error:
        message = "the release that was served last is unknown: the file cannot be read"
        raise PolicyError((Problem(Location(str(path)), message, _REMEDY),)) from error


def write_last(state: Path, new: LastRelease, record: Callable[[], object] = lambda: None) -> None:
    """Remember a release for good before this returns. `record` is called once it is written aside, before it counts.

    Raises PolicyError when one is remembered that `new` must not follow, StateError when it cannot be written.
    """
    folder = state / "policy"
    try:
        make_folder(folder)
        with opened_folder(folder, alone=True) as handle:  # two engines never write a lower sequence over a higher one
            last = read_last(state)
            if last == new:
                record()
                return
            if last is not None and (problem := last.refuses(new)) is not None:
                raise PolicyError((Problem(Location(str(folder / _FILE)), *problem),))
            partial = _write(folder, canonical(new.model_dump(mode="json")))
            record()
            partial.replace(folder / _FILE)
            os.fsync(handle)
        with opened_folder(state) as handle:
            os.fsync(handle)
    except OSError as error:
        reason = reason_of(error)
        raise StateError(
            f"cannot write `{folder / _FILE}`: {reason}",
            remedy="free disk space, and check the permissions of the state folder",
        ) from error


def _write(folder: Path, data: bytes) -> Path:
    partial = folder / f".{_FILE}.partial"
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return partial

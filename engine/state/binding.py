"""Remembers which database the engines of a state folder share: no other one, and no file, is used by mistake.

Without it, an engine that is started without the address would see no stop, no token and no used budget.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from engine.errors import Location, StateError, reason_of
from engine.record.storage import make_folder, sync_folder

NAME = "shared-state"
"""A file with the identity of the database, which its migration has drawn."""


def is_bound(folder: Path) -> bool:
    """Whether the engines of this folder share a state."""
    return (folder / NAME).exists()


def demand_unbound(folder: Path) -> None:
    """Raise StateError if the engines of this folder share a state."""
    if is_bound(folder):
        raise _refused(
            folder,
            "the engines of this folder share a state in PostgreSQL",
            "give its address with `--state` or ENGINE_STATE_DATABASE, or remove this file to use the state file",
        )


def bind(folder: Path, identity: str) -> None:
    """Remember the shared state of a folder. Raises StateError if it is not the one that was remembered."""
    try:
        make_folder(folder)
        with suppress(FileExistsError):
            descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  (opened exclusively)
                file.write(f"{identity}\n")
                file.flush()
                os.fsync(file.fileno())
            sync_folder(folder)
        known = (folder / NAME).read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise _refused(folder, f"it cannot be read: {reason_of(error)}", "repair it") from error
    if known != identity:
        raise _refused(
            folder,
            "the engines of this folder share another state than that of this address",
            "give the address of that database, or remove this file to use the new one",
        )


def _refused(folder: Path, message: str, remedy: str) -> StateError:
    return StateError(message, remedy=remedy, where=Location(str(folder / NAME)))

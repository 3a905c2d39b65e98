"""The engine's state between requests: budgets, approvals, keys, tokens, prefixes, children, attempts, checks, stops.

Behind one class, `Store`; only this package contains SQL.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.state.location import NAME
from engine.state.rows import StateLimits

if TYPE_CHECKING:
    from engine.state.store import Store


def open_store(folder: Path, limits: StateLimits | None = None, *, after_fault: bool = False) -> Store:
    """Open the state in a state folder, making both at first use. Raises StateError.

    Refused: a file that is a link, owned by another user, readable by others, damaged, of another program or of
    a later version. One of an earlier version is upgraded in place. Only a file that was never there is made anew.
    `after_fault` writes once more what a disk that failed may have lost.
    """
    from engine.state.store import Store  # a dry run without state needs no SQLite

    return Store(folder, limits or StateLimits(), after_fault=after_fault)


def exists(folder: Path) -> bool:
    """Whether the folder contains a state file, usable or not."""
    try:
        (folder / NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # opening it raises the reason
    return True

"""What the engine remembers between requests: budgets, approvals, keys, tokens, prefixes, children, attempts, checks.

Behind one interface, `Store`; SQL stands in this room only.
"""

from __future__ import annotations

from pathlib import Path

from engine.state.location import NAME
from engine.state.store import (
    ApprovalClosedError,
    ApprovalRow,
    ApprovalState,
    ApprovalUnknownError,
    ArtifactCheckRow,
    AttemptRow,
    AttemptState,
    Begun,
    BegunKind,
    Binding,
    CheckName,
    ChildRow,
    ChildState,
    Claim,
    Counter,
    IssuedToken,
    NewApproval,
    NewArtifactCheck,
    NewAttempt,
    NewChild,
    NewPrefix,
    PrefixRow,
    RecordHead,
    StateLimits,
    Store,
    TokenRow,
)

__all__ = [
    "ApprovalClosedError",
    "ApprovalRow",
    "ApprovalState",
    "ApprovalUnknownError",
    "ArtifactCheckRow",
    "AttemptRow",
    "AttemptState",
    "Begun",
    "BegunKind",
    "Binding",
    "CheckName",
    "ChildRow",
    "ChildState",
    "Claim",
    "Counter",
    "IssuedToken",
    "NewApproval",
    "NewArtifactCheck",
    "NewAttempt",
    "NewChild",
    "NewPrefix",
    "PrefixRow",
    "RecordHead",
    "StateLimits",
    "Store",
    "TokenRow",
    "exists",
    "open_store",
]


def open_store(folder: Path, limits: StateLimits | None = None, *, after_fault: bool = False) -> Store:
    """Open the state in a state folder, making both at first use. Raises StateError.

    Refused: a file that is a link, of somebody else, readable by others, damaged, of another program or of
    a later version. One of an earlier version is upgraded in place. Only a file that was never there is made anew.
    `after_fault` writes once more what a disk that failed may have lost.
    """
    from engine.state.sqlite import SqliteStore  # a dry run that asks for no state needs no SQLite

    return SqliteStore(folder, limits or StateLimits(), after_fault=after_fault)


def exists(folder: Path) -> bool:
    """Whether something stands where the state of this folder would be, usable or not."""
    try:
        (folder / NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # opening it will say why
    return True

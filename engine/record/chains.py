"""The chains of a state folder: complete records, one for each engine that writes at the same time.

state/                   chain 1
└── chains/
    ├── 002/             chain 2, with the same files as chain 1
    └── 003/

An engine uses the first chain that no engine uses, and adds one if all are in use. Only a lock in use leads to
the next chain: a broken chain is a fault, because otherwise damage to a chain would start a fresh one.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import Location, RecordError
from engine.record.layout import LOCK, RECORDS, BreakKind, BrokenError, broken_file
from engine.record.log import broken_error, unavailable
from engine.record.storage import LockHeldError, Storage, readable

MOST_CHAINS = 64
"""Engines on one state folder at a time: more than processors, and few enough to verify and read side by side."""

_CHAINS = "chains"
_NUMBER = re.compile(r"[0-9]{3}")


def chain_path(number: int) -> str:
    """What precedes the path of a file of this chain, relative to the state folder."""
    return "" if number == 1 else f"{_CHAINS}/{number:03d}/"


def chain_folder(state: Path, number: int) -> Path:
    """The folder of a chain; chain 1 is the state folder itself."""
    return state / chain_path(number)


def chain_folders(state: Path) -> dict[int, Path]:
    """The folder of each chain by its number, from 1 to the last that exists. Raises RecordError."""
    with readable(state):
        return {number: chain_folder(state, number) for number in range(1, _last(state) + 1)}


def require_chain(state: Path, number: int, last: int) -> None:
    """Raise BrokenError if this chain is missing although chain `last` was added after it."""
    if number < last and not (chain_folder(state, number) / RECORDS).is_dir():
        raise broken_file(f"{chain_path(number)}{RECORDS}", BreakKind.ROLLED_BACK, "a chain", "none")


def claim(state: Path) -> tuple[int, Storage]:
    """Lock the first chain that no engine uses; returns its number and files. Raises RecordError."""
    try:
        last = _last(state)
        for number in range(1, MOST_CHAINS + 1):
            require_chain(state, number, last)
            storage = Storage(chain_folder(state, number))
            storage.make_folder(RECORDS)
            try:
                storage.lock(LOCK, 0.0)  # closed again by a failure
            except LockHeldError:
                continue
            return number, storage
    except BrokenError as problem:
        raise broken_error(problem, str(state)) from None
    except OSError as error:
        raise unavailable(error, str(state)) from error
    raise RecordError(
        f"all {MOST_CHAINS} chains of this record are in use by engines",
        remedy="stop one of them, or use another state folder (`--state`)",
        where=Location(str(state)),
        code="engine.record_locked",
    )


def held_chains(state: Path) -> list[int]:
    """The chains in use by engines. Raises OSError."""
    chains = range(1, _last(state) + 1)
    return [number for number in chains if Storage(chain_folder(state, number)).locked(LOCK)]


def _last(state: Path) -> int:
    """The number of the last chain; a folder is listed no later than those that were made after it."""
    numbers = [int(name) for name in Storage(state).names(_CHAINS) if _NUMBER.fullmatch(name)]
    return max([1, *(number for number in numbers if number <= MOST_CHAINS)])

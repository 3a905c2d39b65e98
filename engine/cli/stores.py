"""The state of a state folder, for the commands that people use on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from engine.cli import options
from engine.errors import GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.state import Store


@contextmanager
def opened(state: Path | None) -> Iterator[Store]:
    """The state, made at first use. Raises StateError."""
    from engine.state import open_store

    store = open_store(options.settings(state).state)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def found(state: Path | None) -> Iterator[Store]:
    """The state that is there: none is made by looking for it. Raises GatherError where there is none."""
    from engine.state import exists

    folder = options.settings(state).state
    if not exists(folder):
        raise GatherError(
            f"`{shown(str(folder))}` has no state yet",
            remedy="name the state folder of the engine with --state, or in ENGINE_STATE_DIR",
        )
    with opened(state) as store:
        yield store


def now() -> int:
    """Seconds since 1970 UTC."""
    return int(time.time())


def told(seconds: int) -> str:
    """A time as people and records write it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "after the year 9999"


def rows(pairs: dict[str, str | None]) -> None:
    """Tell names and values in two columns, without those that are absent; each on one line."""
    for name, value in pairs.items():
        if value is not None:
            typer.echo(f"  {name:<11} {shown(value, 4_000)}")

"""The engine's state between requests: budgets, approvals, keys, tokens, prefixes, children, attempts, checks, stops.

Behind one class, `Store`; only this package contains SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StateError, install_extra
from engine.state.binding import bind, demand_unbound, is_bound
from engine.state.location import NAME
from engine.state.rows import StateLimits

if TYPE_CHECKING:
    from engine.settings import Settings
    from engine.state.store import LocalStore, Store

_SHARED_SWEEP = 64
"""A shared state is swept once a second, not at each operation, so each sweep removes as much as so many."""


def open_store(folder: Path, limits: StateLimits | None = None, *, after_fault: bool = False) -> LocalStore:
    """Open the state in a state folder, making both at first use. Raises StateError.

    Refused: a file that is a link, owned by another user, readable by others, damaged, of another program or of
    a later version. One of an earlier version is upgraded in place. Only a file that was never there is made anew.
    `after_fault` writes once more what a disk that failed may have lost.
    """
    from engine.state.database import Database  # a dry run without state needs no SQLite
    from engine.state.store import LocalStore

    chosen = limits or StateLimits()
    return LocalStore(Database(folder, chosen, after_fault=after_fault), chosen)


def open_shared(address: str, limits: StateLimits | None = None, *, folder: Path | None = None) -> Store:
    """Open the state in the PostgreSQL database at this address, whose tables exist. Raises StateError.

    Refused: an address with a password, a server that may lose what it commits, tables of an earlier or a later
    version, and another database than the engines of the state folder `folder` used before.
    """
    from engine.state.store import Store

    with _extra():
        from engine.state.postgres.database import PostgresDatabase
    chosen = limits or StateLimits()
    database = PostgresDatabase(address, chosen)
    try:
        if folder is not None:
            bind(folder, database.identity)
    except BaseException:
        database.close()
        raise
    return Store(database, replace(chosen, sweep=chosen.sweep * _SHARED_SWEEP))


def open_state(settings: Settings, *, after_fault: bool = False) -> Store:
    """Open the state that these settings name: shared if they have an address, else the file in their folder."""
    if settings.database is not None:
        return open_shared(settings.database, folder=settings.state)
    demand_unbound(settings.state)
    return open_store(settings.state, after_fault=after_fault)


def prepare_shared(address: str) -> None:
    """Make the tables of a shared state, or migrate them to this version. Raises StateError."""
    with _extra():
        from engine.state.postgres.connecting import as_owner
        from engine.state.postgres.schema import migrate
    as_owner(address, migrate)


def let_serve(address: str, role: str) -> None:
    """Let a role of PostgreSQL write what engines write to a shared state, and nothing else. Raises StateError."""
    with _extra():
        from engine.state.postgres.connecting import as_owner
        from engine.state.postgres.schema import grant
    as_owner(address, lambda connection: grant(connection, role))


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        remedy = install_extra("postgres")
        raise StateError("a state in PostgreSQL needs packages that are not installed", remedy=remedy) from error


def has_state(settings: Settings) -> bool:
    """Whether there is a state where these settings say, usable or not."""
    return settings.database is not None or exists(settings.state) or is_bound(settings.state)


def exists(folder: Path) -> bool:
    """Whether the folder contains a state file, usable or not."""
    try:
        (folder / NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # opening it raises the reason
    return True

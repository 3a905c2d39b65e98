"""What the owner of the tables does before engines use them: make or migrate them, and let a role serve."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import psycopg

from engine.state.postgres import faults
from engine.state.postgres.connecting import connect, unusable
from engine.state.postgres.schema import grant, migrate
from engine.state.rows import StateLimits


def prepare(address: str) -> None:
    """Make the tables in this database, or bring them to the version of this engine. Raises StateError."""
    _as_owner(address, migrate)


def let_serve(address: str, role: str) -> None:
    """Give a role what engines need of the tables, and take everything else. Raises StateError."""
    _as_owner(address, lambda connection: grant(connection, role))


def _as_owner(address: str, work: Callable[[psycopg.Connection], None]) -> None:
    with closing(connect(address, StateLimits(), migrating=True)) as connection:
        try:
            work(connection)
        except psycopg.Error as error:
            raise unusable(address, faults.owners_reason(error)) from error

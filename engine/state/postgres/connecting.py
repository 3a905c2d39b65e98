"""Connections to PostgreSQL: how each is made, and what it must promise before anything is written through it."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict

from engine.errors import Location, StateError
from engine.state.address import checked
from engine.state.postgres import faults
from engine.state.postgres.schema import SCHEMA
from engine.state.rows import StateLimits

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

_PROMISES = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),"
    " current_setting('server_encoding'), pg_backend_pid()"
)
_MIGRATION_SECONDS = 600
"""For each statement of a migration, and its wait for another migration."""


class _Flag(Dumper):
    """A bool as the number that the tables store."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: Any) -> Buffer:
        """One digit."""
        return b"1" if obj else b"0"


def parameters(address: str, limits: StateLimits, *, migrating: bool = False) -> dict[str, Any]:
    """The parameters of a connection to this address. Raises StateError if it cannot be one."""
    try:
        parsed = conninfo_to_dict(checked(address))
    except (ValueError, psycopg.Error) as error:
        words = str(error) if isinstance(error, ValueError) else "the address of the shared state is not a URI"
        raise StateError(words, remedy="write it as postgresql://HOST/DATABASE?user=USER") from None
    seconds = _MIGRATION_SECONDS if migrating else limits.statement_seconds
    waiting = _MIGRATION_SECONDS if migrating else limits.lock_seconds
    settings = {
        "search_path": SCHEMA,
        "statement_timeout": int(seconds * 1000),
        "lock_timeout": int(waiting * 1000),
        "idle_in_transaction_session_timeout": int(limits.answer_seconds * 1000),  # a stopped engine frees its locks
    }
    if "sslmode" not in parsed and "PGSSLMODE" not in os.environ and _elsewhere(parsed):
        parsed["sslmode"] = "verify-full"  # an impostor could grant approvals
    return parsed | {
        "autocommit": True,
        "application_name": "admission-engine",
        "client_encoding": "UTF8",
        "connect_timeout": limits.connect_seconds,
        "target_session_attrs": "read-write",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }


def _elsewhere(parsed: dict[str, Any]) -> bool:
    """Whether the server may be on another machine, as one that a service file names."""

    def stated(name: str) -> list[str]:
        return [one for one in str(parsed.get(name) or os.environ.get(f"PG{name.upper()}", "")).split(",") if one]

    hosts = [host for host in stated("host") if host[0] not in "/@"]
    return bool(stated("service")) or not _LOOPBACK.issuperset(hosts + stated("hostaddr"))


def connect(address: str, limits: StateLimits, *, migrating: bool = False) -> psycopg.Connection:
    """A connection that keeps what it commits. Raises StateError."""
    try:
        connection = psycopg.connect(**parameters(address, limits, migrating=migrating))
    except psycopg.Error as error:
        raise unusable(address, faults.reason(error)) from None
    if (weakness := prepare(connection)) is not None:
        connection.close()
        raise unusable(address, weakness)
    return connection


def as_owner(address: str, work: Callable[[psycopg.Connection], None]) -> None:
    """Do what the owner of the tables does before engines use them. Raises StateError."""
    with closing(connect(address, StateLimits(), migrating=True)) as connection:
        try:
            work(connection)
        except psycopg.Error as error:
            raise unusable(address, faults.owners_reason(error)) from error


def prepare(connection: psycopg.Connection) -> faults.Reason | None:
    """Prepare a new connection; returns the reason why commits on it are not safe, None if they are.

    A pooler makes up the process id of a connection: the process behind a cut one could not be ended, and settings
    and locks could belong to another one.
    """
    connection.adapters.register_dumper(bool, _Flag)
    try:
        found = connection.execute(_PROMISES).fetchone() or ("off",) * 5
    except psycopg.Error as error:
        return faults.reason(error)
    for name, value in zip(("fsync", "synchronous_commit", "full_page_writes"), found, strict=False):
        if value == "off":
            lost = f"PostgreSQL runs with {name} = off, and a crash loses what it has confirmed"
            return lost, f"set {name} = on for the server, the database and the role"
    if found[4] != connection.info.backend_pid:
        return faults.POOLER
    if found[3] != "UTF8":
        return f"the database has the encoding {found[3]}", "create it with ENCODING 'UTF8' TEMPLATE template0"
    return None


def hung_up(connection: psycopg.Connection) -> bool:
    """Whether the server has ended an idle connection; costs no round trip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def unusable(address: str, reason: faults.Reason, kind: type[StateError] = StateError) -> StateError:
    """The error for a database that cannot be used."""
    message, remedy = reason
    return kind(f"the state cannot be used: {message}", remedy=remedy, where=Location(address))

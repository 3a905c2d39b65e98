"""Connections are kept as long as they are whole, and shared by as many operations as there is time for."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from engine.errors import StateError
from engine.state.rows import Counter
from engine.state.store import Store
from tests.postgres import SERVING, Server, shared
from tests.processes import in_child
from tests.state.samples import NOW, PATIENT, together

ONE = Counter("n", "k", 0)


class RefusedByTestError(Exception):
    """Raised in the middle of an operation."""


def process(store: Store) -> int:
    """The process of PostgreSQL that answers."""
    asked = "SELECT pg_backend_pid()"
    return int(store._database.read(lambda connection: connection.execute(asked).fetchone())[0])


def test_a_connection_is_used_again_also_after_an_operation_that_was_refused(store: Store) -> None:
    first = process(store)
    assert process(store) == first

    def operation(connection: Any) -> None:
        connection.execute("INSERT INTO budgets (name, key, \"window\", start, used) VALUES ('n', 'k', 0, 0, 5)")
        raise RefusedByTestError

    with pytest.raises(RefusedByTestError):
        store._database.write(operation)
    assert process(store) == first
    assert store.used(ONE, NOW) == 0


def test_an_aborted_transaction_is_not_reported_as_committed(store: Store) -> None:
    def operation(connection: Any) -> None:
        with suppress(psycopg.Error):
            connection.execute("SELECT 1 / 0")

    with pytest.raises(StateError, match="gave up a transaction instead of committing it"):
        store._database.write(operation)
    assert store.writable()


def told_under_load(store: Store) -> set[str]:
    """The messages of twelve operations at once, half a second each; an empty one for an operation that succeeds."""

    def work(_: int) -> str:
        try:
            store._database.read(lambda connection: connection.execute("SELECT pg_sleep(0.5)").fetchone())
        except StateError as error:
            return error.message
        return ""

    return {*together(12, work)}


def test_an_operation_that_waits_too_long_is_refused_and_later_ones_succeed(address: str) -> None:
    with shared(address, replace(PATIENT, connections=1, wait_seconds=3.0)) as store:
        assert told_under_load(store) == {"", "the state cannot be used: too many operations wait for PostgreSQL"}
        assert store.used(ONE, NOW) == 0


def test_a_connection_with_weaker_durability_is_reported_as_the_reason(server: Server, address: str) -> None:
    with shared(address, replace(PATIENT, connections=2, wait_seconds=3.0)) as store:
        process(store)
        server.administer(f"ALTER ROLE {SERVING} SET synchronous_commit = off")
        try:
            told = told_under_load(store)
        finally:
            server.administer(f"ALTER ROLE {SERVING} RESET ALL")
        assert any("synchronous_commit = off" in one for one in told)
        assert not any("too many operations" in one for one in told)


def test_a_forked_process_closes_no_connection_of_its_parent(store: Store) -> None:
    first, own = process(store), os.getpid()

    def close() -> bool:
        store.close()
        return os.getpid() != own

    assert in_child(close)
    assert process(store) == first

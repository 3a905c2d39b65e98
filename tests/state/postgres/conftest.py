"""A server for all tests here, and a database for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.state.store import Store
from tests.postgres import SERVING, Server, running, shared
from tests.state.samples import address_file


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that no test here harms."""
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[str]:
    """A new database for the tests of a module."""
    name = server.database()
    yield name
    server.drop(name)


@pytest.fixture
def address(server: Server, database: str) -> str:
    """The address of a database without rows, for the role that serves."""
    server.empty(database)
    return server.address(database, SERVING)


@pytest.fixture(autouse=True)
def in_postgres(tmp_path: Path, address: str) -> None:
    """What the tests of this folder and their processes open in a folder is this database."""
    for folder in (tmp_path, tmp_path / "state"):
        address_file(folder).write_text(address, encoding="utf-8")


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with shared(address) as store:
        yield store

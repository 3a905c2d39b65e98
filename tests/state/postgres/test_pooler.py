"""No state is opened through a connection pooler: what would break silently is refused, in every mode of PgBouncer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from engine.errors import StateError
from engine.state import open_shared, prepare_shared
from tests.facilities import needs
from tests.postgres import OWNER, SERVING, Server, account
from tests.processes import own_port, until

pytestmark = needs("pgbouncer")

ROLE = (
    "ALTER ROLE {role} SET search_path = admission_engine",
    "ALTER ROLE {role} SET statement_timeout = '500ms'",
    "ALTER ROLE {role} SET lock_timeout = '500ms'",
)
"""What an administrator would set so that it seems to work."""

Pooled = Callable[..., str]


@pytest.fixture
def pooled(server: Server, database: str) -> Iterator[Pooled]:
    """Starts PgBouncer with these settings before the server; gives the address of the database through it."""
    with ExitStack() as stack:

        def start(role: str, **settings: str) -> str:
            port = stack.enter_context(own_port())
            folder = server.folder / f"pooler-{port}"
            folder.mkdir()
            (folder / "users").write_text(f'"{OWNER}" ""\n"{SERVING}" ""\n')
            own = {"listen_addr": "127.0.0.1", "listen_port": port, "unix_socket_dir": "", "auth_type": "trust"}
            own |= {"auth_file": folder / "users", "logfile": folder / "log", "default_pool_size": 8}
            lines = [f"{name} = {value}" for name, value in (own | settings).items()]
            text = f"[databases]\n* = host={server.folder}\n[pgbouncer]\n" + "\n".join(lines) + "\n"
            (folder / "pgbouncer.ini").write_text(text)
            if os.geteuid() == 0:
                for one in (folder, *folder.iterdir()):
                    shutil.chown(one, "postgres", "postgres")
            process = subprocess.Popen(
                [str(shutil.which("pgbouncer")), "-q", str(folder / "pgbouncer.ini")], **account()
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            until(lambda: _listens(port))
            return f"postgresql://{role}@127.0.0.1:{port}/{database}"

        yield start


def _listens(port: int) -> bool:
    with closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_no_state_is_opened_through_a_pooler(server: Server, pooled: Pooled, mode: str) -> None:
    """Neither one that refuses our settings, nor one that drops them, however the role is set up."""
    server.administer(*(line.format(role=SERVING) for line in ROLE))
    try:
        for settings in ({}, {"ignore_startup_parameters": "options,extra_float_digits"}):
            address = pooled(SERVING, pool_mode=mode, **settings)
            with pytest.raises(StateError, match="a connection pooler is between") as caught:
                open_shared(address)
            assert "write the address of PostgreSQL itself" in caught.value.remedy
    finally:
        server.administer(f"ALTER ROLE {SERVING} RESET ALL")


def test_no_tables_are_made_through_a_pooler(pooled: Pooled) -> None:
    address = pooled(OWNER, pool_mode="session", ignore_startup_parameters="options")
    with pytest.raises(StateError, match="a connection pooler is between"):
        prepare_shared(address)


def test_the_pooler_itself_works(pooled: Pooled) -> None:
    """Without the engine's demands, the same addresses answer."""
    with psycopg.connect(pooled(SERVING, pool_mode="transaction"), autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)

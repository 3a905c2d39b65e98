"""A PostgreSQL server of the tests' own: started, killed, stopped and started again; a database for each test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from engine.state import open_shared
from engine.state.postgres.connecting import connect
from engine.state.postgres.schema import RIGHTS, SCHEMA, grant, migrate
from engine.state.rows import StateLimits
from engine.state.store import Store
from tests.facilities import missing
from tests.processes import alive, stop, until
from tests.state.samples import PATIENT

OWNER, SERVING = "engine_owner", "engine_app"
KEPT = {"versions", "probe"}
SAFE = {"fsync": "on", "max_connections": "60"}


def binaries() -> Path | None:
    """The programs of the newest PostgreSQL on this machine, where Debian's package puts them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@cache
def account() -> dict[str, Any]:
    """Neither PostgreSQL nor PgBouncer runs as root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


class Server:
    """One cluster, whose folder is removed with it. Any user of this machine who finds its socket may log in."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is where the data goes, such as a small file system; by default a temporary folder."""
        found = binaries()
        assert found is not None
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="apg-"))
        self.data = (folder or self.folder) / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._template: str | None = None
        if account():
            for one in {self.folder, self.data.parent}:
                shutil.chown(one, "postgres", "postgres")
        made = ["-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-X", str(self.folder / "wal")]
        self._run("initdb", "-D", str(self.data), *made)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments], check=True, capture_output=True, cwd="/", **account()
        )

    def start(self, **changed: str) -> None:
        """Start it and wait until it answers; `changed` are settings for this run."""
        settings = SAFE | {"listen_addresses": "", "unix_socket_directories": str(self.folder)} | changed
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                cwd="/",
                **account(),
            )
        ready = [str(self._programs / "pg_isready"), "-h", str(self.folder)]
        until(lambda: subprocess.run(ready, capture_output=True, check=False).returncode == 0)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def backends(self) -> list[int]:
        """Its other processes."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def kill(self) -> None:
        """End it as a crash would, and wait until nothing of it is left."""
        stop(self.pid)  # first, so that it starts no more of them
        everything = [self.pid, *self.backends()]
        for pid in everything:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait()
        for pid in everything:
            until(lambda pid=pid: not alive(pid))  # type: ignore[misc]

    def stop(self) -> None:
        """End it in order."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        for sent in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(sent)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
                return

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / ".s.PGSQL.5432"

    def encrypted(self, certificate: Path, host: str) -> dict[str, str]:
        """Settings to listen on this address of the machine too, with TLS and the key and certificate in this file."""
        own = self.folder / "tls.pem"
        shutil.copy(certificate, own)
        own.chmod(0o600)
        if account():
            shutil.chown(own, "postgres", "postgres")
        return {"listen_addresses": host, "ssl": "on", "ssl_cert_file": str(own), "ssl_key_file": str(own)}

    def address(self, database: str, user: str = OWNER, port: int | None = None) -> str:
        """The address of one of its databases, through a proxy that listens on this port of the machine."""
        place = f"/{database}?host={self.folder}" if port is None else f"127.0.0.1:{port}/{database}"
        return f"postgresql://{user}@{place}"

    def administer(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as its superuser."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def database(self) -> str:
        """A new database, with the tables of the state, and the role that serves granted; its name."""
        if self._template is None:
            self._template = self.empty_database()
            self.administer(f"CREATE ROLE {SERVING} LOGIN")
            with closing(connect(self.address(self._template), StateLimits(), migrating=True)) as connection:
                migrate(connection)
                grant(connection, SERVING)
        return self.empty_database(template=self._template)

    def empty_database(self, encoding: str = "UTF8", template: str = "template0") -> str:
        """A new database without tables, or one like the template; its name."""
        name = f"t{uuid4().hex}"
        self.administer(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE {template}")
        return name

    def empty(self, name: str) -> None:
        """Remove the rows of a test, which takes a tenth of the time of a new database."""
        tables = [f"{SCHEMA}.{table}" for table in RIGHTS if table not in KEPT]
        self.administer(*(f"DELETE FROM {table}" for table in tables), database=name)  # noqa: S608

    def drop(self, name: str) -> None:
        """Remove a database, even if it is in use."""
        self.administer(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """The server and its processes stopped: connections are accepted by the kernel, and nothing answers."""
    stop(server.pid)  # first: what ends from now on stays as a zombie
    backends = server.backends()
    for pid in backends:
        stop(pid)
    try:
        yield
    finally:
        for pid in (*backends, server.pid):  # the server last: it clears away what has ended
            os.kill(pid, signal.SIGCONT)


@contextmanager
def running(folder: Path | None = None, settings: Mapping[str, str] = {}) -> Iterator[Server]:
    """A server of its own, which its tests may harm; they are skipped where there is no PostgreSQL."""
    if (lacking := missing("postgresql")) is not None:
        pytest.skip(lacking)
    server = Server(folder)
    try:
        server.start(**settings)
        yield server
    finally:
        server.close()


def shared(address: str, limits: StateLimits = PATIENT) -> closing[Store]:
    """An open shared state."""
    return closing(open_shared(address, limits))

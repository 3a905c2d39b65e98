"""PostgreSQL behind TLS: its certificate has to be of the named host and of the named authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state import open_shared
from engine.state.rows import Counter
from tests.postgres import SERVING, Server, running, shared
from tests.sources.https import Authority
from tests.state.samples import NOW

NAME, ADDRESS = "db.example.org", "127.83.70.1"
ONE = Counter("n", "k", 60)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with running() as server:
        yield server


def address(server: Server, host: str, authority: Path) -> str:
    database = server.database()
    return f"postgresql://{SERVING}@{host}/{database}?hostaddr={ADDRESS}&sslrootcert={authority}"


def test_only_the_named_host_with_a_certificate_of_the_named_authority_is_used(own: Server, tmp_path: Path) -> None:
    ours, other = Authority(tmp_path), Authority(tmp_path, "another")
    own.stop()
    own.start(**own.encrypted(ours.certificate(NAME), ADDRESS))
    with shared(address(own, NAME, ours.path)) as store:
        assert store.reserve("one", (ONE,), NOW) == (0,)
        assert store._database.read(
            lambda connection: connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
        ) == (True,)
    for wrong in (
        address(own, "db2.example.org", ours.path),
        address(own, NAME, other.path),
        address(own, NAME, tmp_path / "missing.pem"),
        address(own, NAME, ours.path).partition("&")[0],  # no authority is named, and the user has none
    ):
        with pytest.raises(StateError, match="certificate of PostgreSQL cannot be verified") as caught:
            open_shared(wrong)
        assert "sslrootcert" in caught.value.remedy
    own.stop()
    own.start(**own.encrypted(ours.certificate(NAME, 0), ADDRESS))
    with pytest.raises(StateError, match="certificate of PostgreSQL cannot be verified"):
        open_shared(address(own, NAME, ours.path))
    own.stop()
    own.start(listen_addresses=ADDRESS)
    with pytest.raises(StateError, match="offers no TLS"):
        open_shared(address(own, NAME, ours.path))

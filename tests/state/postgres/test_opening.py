"""A shared state is opened only where it keeps what it commits, has our tables, and is the one that was used before."""

from __future__ import annotations

import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.errors import Exit, StateError
from engine.settings import Settings
from engine.state import let_serve, open_shared, open_state, prepare_shared
from engine.state.binding import NAME
from engine.state.postgres.schema import RIGHTS, SCHEMA, statements
from engine.state.rows import Counter
from engine.state.schema import VERSION
from tests.postgres import OWNER, SERVING, Server, running, shared
from tests.processes import until
from tests.state.samples import LONG_AGO, NOW, PATIENT, asked, opened, together

ONE = Counter("n", "k", 60)
SET_VERSION = "UPDATE admission_engine.versions SET version = {}"


def refusal(address: str) -> StateError:
    with pytest.raises(StateError) as caught:
        open_shared(address)
    error = caught.value
    assert (error.code, error.exit) == ("engine.state_unavailable", Exit.FAILED_CLOSED)
    assert error.remedy
    return error


def test_a_database_without_tables_is_refused_until_its_owner_has_made_them(server: Server) -> None:
    name = server.empty_database()
    assert "no tables" in refusal(server.address(name)).message
    prepare_shared(server.address(name))
    prepare_shared(server.address(name))  # a second time there is nothing to do
    assert "may not do this" in refusal(server.address(name, SERVING)).message
    let_serve(server.address(name), SERVING)
    with shared(server.address(name, SERVING)) as store:
        assert store.reserve("one", (ONE,), NOW) == (0,)
        store.resolve(store.request_approval(asked()).id, "granted", "user:lee", None, NOW)
        with psycopg.connect(server.address(name, SERVING), autocommit=True) as connection:
            assert connection.execute("DELETE FROM admission_engine.approvals").rowcount == 0  # it is evidence
    for user, role, message in ((SERVING, OWNER, "does not own the tables"), (OWNER, "nobody", "no such role")):
        with pytest.raises(StateError, match=message):
            let_serve(server.address(name, user), role)
    server.drop(name)


def test_concurrent_migrations_leave_a_usable_database(server: Server) -> None:
    name = server.empty_database()
    together(8, lambda _: prepare_shared(server.address(name)))
    let_serve(server.address(name), SERVING)
    with shared(server.address(name, SERVING)) as store:
        assert store.writable()
    server.drop(name)


@pytest.mark.parametrize(
    ("version", "message"), [(VERSION + 1, f"version {VERSION + 1}, this engine knows"), (4, "4, this")]
)
def test_tables_of_another_version_are_refused(server: Server, version: int, message: str) -> None:
    name = server.database()
    server.administer(SET_VERSION.format(version), database=name)
    assert message in refusal(server.address(name, SERVING)).message
    if version > VERSION:
        with pytest.raises(StateError, match=message):
            prepare_shared(server.address(name))
    server.drop(name)


def test_a_migration_that_fails_leaves_the_tables_as_they_were(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = server.database()
    with shared(server.address(name, SERVING)) as store:
        store.reserve("one", (ONE,), NOW)
    server.administer(SET_VERSION.format(4), database=name)
    steps = ("CREATE TABLE more (x BIGINT)", "CREATE TABLE tokens (x BIGINT)")
    monkeypatch.setattr("engine.state.postgres.schema.statements", lambda _: steps)
    with pytest.raises(StateError):
        prepare_shared(server.address(name))
    with psycopg.connect(server.address(name)) as connection:
        found = "SELECT version, to_regclass('admission_engine.more') FROM admission_engine.versions"
        assert connection.execute(found).fetchone() == (4, None)
    monkeypatch.setattr("engine.state.postgres.schema.statements", lambda _: steps[:1])
    prepare_shared(server.address(name))
    with shared(server.address(name, SERVING)) as store:
        assert store.used(ONE, NOW) == 1
    server.drop(name)


def test_every_table_has_grants_and_none_belongs_to_the_record() -> None:
    made = {words.split()[2] for words in statements(0) if words.startswith("CREATE TABLE")}
    assert made | {"versions"} == set(RIGHTS)
    assert not made & {"record_heads", "retention_orders"}


WEAK: list[tuple[dict[str, str], str]] = [
    ({"fsync": "off"}, "fsync = off"),
    ({"full_page_writes": "off"}, "full_page_writes = off"),
    ({"synchronous_commit": "off"}, "synchronous_commit = off"),
    ({"default_transaction_read_only": "on"}, "read-only"),
]


def test_a_server_with_weak_durability_settings_is_refused() -> None:
    with running() as own:
        name = own.database()
        for settings, message in WEAK:
            own.stop()
            own.start(**settings)
            assert message in refusal(own.address(name, SERVING)).message
        own.stop()
        own.start()
        with shared(own.address(name, SERVING)) as store:  # the control
            assert store.writable()
        own.administer(f"ALTER ROLE {SERVING} SET synchronous_commit = off")
        assert "synchronous_commit = off" in refusal(own.address(name, SERVING)).message


def test_another_encoding_is_refused(server: Server) -> None:
    name = server.empty_database("SQL_ASCII")
    assert "has the encoding SQL_ASCII" in refusal(server.address(name)).message
    server.drop(name)


def test_a_missing_server_database_or_role_is_reported(server: Server) -> None:
    for user, database in (("nobody", "postgres"), (SERVING, "nothing")):
        assert "no such database or role" in refusal(server.address(database, user)).message
    assert "cannot be reached" in refusal("postgresql://127.0.0.1:1/name").message


def test_engines_of_a_folder_use_one_shared_state(server: Server, address: str, tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    settings = Settings(state=folder, database=address)
    with closing(open_state(Settings(state=folder, database=None))) as store:  # before, the file was used
        assert store.writable()
    for _ in range(2):
        with closing(open_state(settings)) as store:
            assert store.writable()
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    with pytest.raises(StateError, match="share a state in PostgreSQL"):
        open_state(Settings(state=folder, database=None))
    other = server.empty_database()
    prepare_shared(server.address(other))
    with pytest.raises(StateError, match="share another state"):
        open_state(Settings(state=folder, database=server.address(other)))
    (folder / NAME).unlink()
    with closing(open_state(Settings(state=folder, database=None))) as store:
        assert store.writable()
    server.drop(other)


FORBIDDEN: dict[str, str] = {
    "another input under an approval": "UPDATE approvals SET input_digest = 'x'",
    "another requester": "UPDATE approvals SET requester = 'x'",
    "a longer approval": "UPDATE approvals SET expires_at = expires_at + 1",
    "a longer token": "UPDATE tokens SET expires_at = expires_at + 1",
    "another secret": "UPDATE tokens SET digest = digest",
    "a token that is gone": "DELETE FROM tokens",
    "a stop that is gone": "DELETE FROM stops",
    "another stop": "UPDATE stops SET name = 'x'",
    "a child that is gone": "DELETE FROM children",
    "another check": "UPDATE artifact_checks SET passed = 1",
    "another memory": "UPDATE memories SET owner = 'x'",
    "other versions": "UPDATE versions SET version = 1",
    "a table that is gone": "DROP TABLE stops",
    "a table of its own": "CREATE TABLE mine (x BIGINT)",
    "a program": "COPY tokens TO PROGRAM 'true'",
    "no protection of rows": "ALTER TABLE approvals DISABLE ROW LEVEL SECURITY",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_serving_role_cannot_rewrite_evidence(address: str, what: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(FORBIDDEN[what].encode())


def test_the_serving_role_removes_only_unresolved_approvals(address: str) -> None:
    with shared(address) as store:
        kept = store.resolve(store.request_approval(asked()).id, "granted", "user:lee", None, NOW)
        store.request_approval(asked(requester="other"))
        with psycopg.connect(address, autocommit=True) as connection:
            assert connection.execute("DELETE FROM admission_engine.approvals").rowcount == 1
        assert store.approvals(None, 9) == (kept,)


def test_old_rows_are_removed_beside_the_requests(tmp_path: Path) -> None:
    old = {"open_hold_seconds": 100, "idempotency_seconds": 100, "unanswered_seconds": 100, "run_seconds": 100}
    limits = replace(PATIENT, settled_hold_seconds=10, **old)
    minutely, later = Counter("minute", "", 60), LONG_AGO + 100_000
    with opened(tmp_path / "state", limits) as store:
        for number in range(20):
            store.reserve(f"open {number}", (minutely,), LONG_AGO)
            store.begin("scope", str(number), "body", LONG_AGO)
            store.request_approval(asked(requester=str(number), created_at=LONG_AGO, expires_at=LONG_AGO + 9))
            store.touch(f"run {number}", ["private"], f"hold {number}", LONG_AGO)
        answered = store.request_approval(asked(created_at=LONG_AGO, expires_at=LONG_AGO + 9))
        answered = store.resolve(answered.id, "refused", "user:lee", None, LONG_AGO)
        store.reserve("later", (minutely,), later)
        store.begin("scope", "later", "body", later)
        store.request_approval(asked(requester="later", created_at=later, expires_at=later + 9))
        store.touch("later", ["private"], "later", later)
        tables = ("holds", "budgets", "idempotency", "touches", "approvals")
        until(lambda: [_count(store, table) for table in tables] == [1, 1, 1, 1, 2])
        assert answered in store.approvals(None, 9)


def _count(store: Any, table: str) -> int:
    query = f"SELECT count(*) FROM {table}"  # noqa: S608
    count: int = store._database.read(lambda connection: connection.execute(query).fetchone())[0]
    return count


def test_a_revocation_takes_effect_on_every_engine_before_it_returns(address: str) -> None:
    with shared(address) as serving, shared(address) as revoking:
        issued, other = (revoking.issue(name, ["source"], NOW + 9, NOW) for name in ("one", "two"))
        for _ in range(5):
            assert serving.token(issued.text, NOW) is not None
        revoking.revoke(issued.id, NOW)
        assert serving.token(issued.text, NOW) is None
        assert serving.token(other.text, NOW) is not None


LONG = replace(PATIENT, recent_seconds=1e6, lag_seconds=1e6)


def test_recent_reads_are_served_from_the_cache_until_a_change(address: str) -> None:
    with shared(address, LONG) as serving, shared(address) as issuing:
        assert not serving.at_hand()
        serving.in_force()
        assert serving.at_hand()
        assert not serving.tokens_at_hand(None)
        assert not serving.any_issued()
        assert serving.tokens_at_hand(None)
        issued, once = (
            issuing.issue(name, ["source"], NOW + 9, NOW, single_use=name == "once") for name in ("a", "once")
        )
        unknown = f"aet_00000000_{'x' * 43}"
        for presented in (issued.text, once.text, unknown):
            assert not serving.tokens_at_hand(presented)
            serving.token(presented, NOW + 9)  # it has expired, but is known from now on
        assert serving.tokens_at_hand(issued.text)
        assert not serving.tokens_at_hand(once.text)  # the server has to be asked whether it was used
        assert not serving.tokens_at_hand(unknown)
        issuing.any_issued()
        issuing.in_force()
        until(lambda: not issuing.at_hand() and not issuing.tokens_at_hand(None))

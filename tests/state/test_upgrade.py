"""A state file of an earlier version gets what it lacks in place, and keeps what it has; or is left as it was.

`version_1.sql` is the dump of a file that the engine wrote when version 1 was the newest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StateError
from engine.state import open_store, schema
from engine.state.database import Database
from engine.state.rows import ChildRow, Counter, StateLimits, TokenRow
from engine.state.store import Store
from tests.expect import there
from tests.processes import python, said, send_line
from tests.state.samples import NOW, approved, asked, opened, together

NAME = "state.sqlite3"
DUMP = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
LATER = schema.VERSION + 1
KNOWN = f"this engine knows version {schema.VERSION}"
ID = "0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with a file of version 1."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / NAME).touch(mode=0o600)
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(DUMP)
    return folder


def _everything(folder: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(folder / NAME)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}  # noqa: S608


def _version(folder: Path) -> int:
    with closing(sqlite3.connect(folder / NAME)) as connection:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return found


def test_an_upgraded_file_keeps_its_rows_and_has_the_new_tables(state: Path) -> None:
    before = _everything(state)
    assert _version(state) == 1
    assert all(before[name] for name in ("budgets", "holds", "approvals", "idempotency", "tokens", "probe"))
    with opened(state) as store:
        assert _version(state) == schema.VERSION
        names = ["prefixes", "children", "attempts", "artifact_checks", "record_heads", "retention_orders"]
        names += ["stops", "agents", "memories", "source_records", "source_blocks", "touches", "code_runs"]
        names += ["activations", "replicas"]
        added: dict[str, list[Any]] = {name: [] for name in names}
        approvals = [(*row, None) for row in before["approvals"]]  # how the caller came in is not known
        tokens = [(*row, "[]", None, 0, None) for row in before["tokens"]]  # they approve nothing
        assert _everything(state) == {**before, **added, "approvals": approvals, "tokens": tokens}
        _hold_what_it_held(store)
        assert store.add_child(ChildRow(ID, "p", NOW)) == ChildRow(ID, "p", NOW)
        row = store.approve_prefix(approved())
    with opened(state) as store:  # a second time there is nothing to do
        assert store.prefixes(None, None, 9) == (row,)
        assert store.child(ID) is not None


def _hold_what_it_held(store: Store) -> None:
    assert store.used(Counter("n", "k", 60), NOW) == 7
    store.release("open hold")
    assert store.used(Counter("n", "k", 60), NOW) == 3
    granted = there(store.approval("1" * 32))
    assert (granted.state, granted.reason) == ("granted", "seen the contract")
    assert store.request_approval(asked()) == granted
    assert store.begin("scope", "done", "body", NOW).answer == "answer"
    assert store.begin("scope", "pending", "body", NOW).kind == "pending"
    assert store.tokens() == (TokenRow("8a674a45", "pipeline", ("source",), NOW, NOW + 9),)
    assert store.writable()


def _spoiled(how: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(how)

    return spoil


def _cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "this version": (
        _spoiled(f"PRAGMA user_version = {schema.VERSION}"),
        "damaged",
    ),  # but with the tables of the earlier one
    "later version": (
        _spoiled(f"PRAGMA user_version = {LATER}"),
        f"version {LATER}, {KNOWN}",
    ),
    "negative version": (
        _spoiled("PRAGMA user_version = -1"),
        f"version -1, {KNOWN}",
    ),
    "table gone": (_spoiled("DROP TABLE tokens"), "damaged"),
    "table more": (_spoiled("CREATE TABLE children (id)"), "damaged"),
    "trigger": (_spoiled("CREATE TRIGGER t AFTER INSERT ON holds BEGIN DELETE FROM holds; END"), "damaged"),
    "another journal": (_spoiled("PRAGMA journal_mode = DELETE"), "damaged"),
    "cut": (_cut, "damaged"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_corrupt_file_is_not_upgraded(state: Path, name: str) -> None:
    spoil, message = SPOILED[name]
    spoil(state / NAME)
    before = (state / NAME).read_bytes()
    with pytest.raises(StateError, match=message):
        open_store(state)
    assert (state / NAME).read_bytes() == before


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _everything(state)

    def statements(after: int, version: int = schema.VERSION) -> tuple[str, ...]:
        real = schema.statements(after, version)
        return (*real, "CREATE TABLE tokens (x)") if after else real

    with monkeypatch.context() as patch:
        patch.setattr("engine.state.database.statements", statements)  # the last statement of an upgrade fails
        with pytest.raises(StateError):
            open_store(state)
    assert (_version(state), _everything(state)) == (1, before)
    with opened(state) as store:  # the control
        assert store.writable()


def test_a_file_that_a_later_engine_upgrades_first_is_left_to_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(state):
        pass
    _spoiled("PRAGMA user_version = 3")(state / NAME)
    real = Database._upgrade

    def late(database: Database) -> None:
        _spoiled(f"PRAGMA user_version = {LATER}")(state / NAME)
        real(database)

    monkeypatch.setattr(Database, "_upgrade", late)
    with pytest.raises(StateError, match=f"version {LATER}, {KNOWN}"):
        open_store(state)
    assert _version(state) == LATER


def test_the_wait_for_a_blocking_writer_is_bounded(state: Path) -> None:
    with closing(sqlite3.connect(state / NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match="another process holds it"):
            open_store(state, StateLimits(busy_seconds=0.05))
        other.execute("ROLLBACK")
    assert _version(state) == 1
    with opened(state):
        assert _version(state) == schema.VERSION


def test_threads_that_open_at_once_upgrade_once(state: Path) -> None:
    def use(number: int) -> int:
        with opened(state) as store:
            return store.reserve(str(number), (Counter("fresh", "", 0),), NOW)[0]

    assert sorted(together(12, use)) == list(range(12))
    assert _version(state) == schema.VERSION


OPENER = """
import sys
from pathlib import Path
from engine.state.rows import Counter
from tests.state.samples import NOW, opened

print("ready", flush=True)
input()
with opened(Path(sys.argv[1])) as store:
    print(store.reserve(sys.argv[2], (Counter("fresh", "", 0),), NOW)[0], flush=True)
"""


@pytest.mark.full
def test_processes_that_open_at_once_upgrade_once(state: Path) -> None:
    with python(OPENER, state, "one") as one, python(OPENER, state, "two") as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        send_line(one)
        send_line(two)
        assert {said(one), said(two)} == {"0", "1"}
    assert _version(state) == schema.VERSION


def test_a_file_of_version_1_that_is_open_is_upgraded_under_it(state: Path) -> None:
    """As when a new engine is started before the old one has ended: what version 1 had stays where it was."""
    with closing(sqlite3.connect(state / NAME, isolation_level=None)) as old:
        assert old.execute("SELECT count FROM probe").fetchone() == (1,)
        with opened(state) as store:
            old.execute("UPDATE probe SET count = count + 1")
            assert store.writable()
        assert old.execute("SELECT count FROM probe").fetchone() == (3,)


def test_a_new_file_and_an_upgraded_one_are_the_same(state: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir(mode=0o700)
    schemas = []
    for folder in (state, tmp_path / "new"):
        Database(folder, StateLimits()).close()
        with closing(sqlite3.connect(folder / NAME)) as connection:
            query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
            schemas.append(connection.execute(query).fetchall())
    assert schemas[0] == schemas[1]

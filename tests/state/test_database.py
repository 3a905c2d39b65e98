"""The state file: ours alone, of one version, whole, or not used at all; and never an error of SQLite."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineError, Exit, StateError
from engine.state import exists, location, open_store
from engine.state.database import Database
from engine.state.rows import ChildRow, Counter, StateLimits
from engine.state.schema import VERSION
from engine.state.store import Store
from tests.facilities import needs
from tests.processes import open_under, until
from tests.state.samples import NOW, SECONDS, approved, asked, opened, together

ONE = Counter("n", "k", 60)
NAME = "state.sqlite3"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state that holds something of everything."""
    folder = tmp_path / "state"
    with opened(folder) as store:
        _use(store)
    return folder


def _use(store: Store) -> None:
    tag = os.urandom(8).hex()
    store.reserve(tag, (ONE, Counter("all", "", 0)), NOW)
    store.settle(tag, {"n": 3})
    row = store.request_approval(asked(requester=tag))
    store.resolve(row.id, "granted", "user:lee", None, NOW)
    store.claim(row.id, tag, asked(requester=tag), NOW)
    store.begin("scope", tag, "body", NOW)
    store.finish("scope", tag, "answer" * 500, "r", "v")
    issued = store.issue("pipeline", ["source"], NOW + 9, NOW)
    assert store.token(issued.text, NOW) is not None
    assert store.used(ONE, NOW) >= 3
    store.approvals(None, 100)
    store.tokens()
    store.revoke_prefix(store.approve_prefix(approved(principal=tag)).id, NOW)
    store.prefixes(None, None, 100)
    child = store.add_child(ChildRow(str(uuid.uuid4()), tag, NOW))
    store.end_child(child.id, "ended", NOW)
    store.children(None, 100)


@contextmanager
def held(
    database: Database, work: Callable[[sqlite3.Connection], Any] = lambda _: None
) -> Iterator[ThreadPoolExecutor]:
    """Hold the committing thread in an operation, so that what threads hand in meanwhile gathers; then do `work`."""
    begun, go_on = threading.Event(), threading.Event()

    def operation(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go_on.wait(SECONDS)
        work(connection)

    with ThreadPoolExecutor(8) as pool:
        pool.submit(database.write, operation)
        assert begun.wait(SECONDS)
        try:
            yield pool
        finally:
            go_on.set()


def gathered(database: Database, count: int) -> None:
    """Wait until so many operations are handed in and wait for the committing thread."""
    until(lambda: database._waiting.qsize() >= count)


def _count(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("UPDATE probe SET count = count + 1 RETURNING count").fetchone()[0]
    return found


def _damage(path: Path, table: str) -> None:
    """Overwrite the first page of one table; the list of tables and the other tables stay whole."""
    with closing(sqlite3.connect(path)) as connection:
        page, size = (
            connection.execute(query).fetchone()[0]
            for query in (f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'", "PRAGMA page_size")  # noqa: S608
        )
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_a_call_that_raced_with_close_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(state) as store:
        store.reserve("before", (ONE,), NOW)
    monkeypatch.setattr(Database, "_check", lambda _: None)  # who had been let through before it was closed
    with pytest.raises(StateError, match="it is closed"):
        store.reserve("after", (ONE,), NOW)


def test_a_store_whose_thread_cannot_start_is_refused_and_leaves_nothing_open(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        with pytest.raises(StateError, match="no thread can be started"):
            open_store(state)
    assert open_under(state) == []
    with opened(state) as store:
        assert store.used(ONE, NOW) >= 3


def refusal(folder: Path) -> StateError:
    with pytest.raises(StateError) as caught:
        open_store(folder)
    error = caught.value
    assert (error.code, error.exit) == ("engine.state_unavailable", Exit.FAILED_CLOSED)
    assert error.remedy
    assert error.where is not None
    return error


def test_folder_and_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    before = os.umask(0)
    try:
        assert not exists(folder)
        with opened(folder) as store:
            _use(store)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        (tmp_path / "control").touch()
    finally:
        os.umask(before)
    assert modes == {NAME: 0o600, f"{NAME}-wal": 0o600, f"{NAME}-shm": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "control").stat().st_mode) == 0o666  # positive control
    assert exists(folder)
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_a_commit_is_synced_and_the_schema_guarded(state: Path) -> None:
    with closing(open_store(state)) as store:
        for connection in (store._database._writer, store._database._reader):
            for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
                assert connection.execute(f"PRAGMA {pragma}").fetchone()[0] == value
        with pytest.raises(StateError):
            store._database.read(lambda reader: reader.execute("DELETE FROM tokens"))


def test_an_existing_file_is_not_recreated(state: Path) -> None:
    with opened(state):
        before = state.stat().st_mtime_ns
        with opened(state):
            pass
        assert state.stat().st_mtime_ns == before  # nothing was made in the folder, not even for a moment


def test_a_concurrently_created_file_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, others = location._make_file, list[Store]()

    def late(path: Path, create: Callable[[Path], None]) -> None:
        monkeypatch.setattr(location, "_make_file", real)
        others.append(open_store(path.parent))
        real(path, create)

    monkeypatch.setattr(location, "_make_file", late)
    with opened(tmp_path / "state") as store, closing(others[0]):
        others[0].reserve("one", (ONE,), NOW)
        assert store.used(ONE, NOW) == 1


def test_many_first_uses_at_once_make_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "state"

    def use(number: int) -> int:
        with opened(folder) as store:
            return store.reserve(str(number), (ONE,), NOW)[0]

    assert sorted(together(12, use)) == list(range(12))
    assert [path.name for path in folder.iterdir()] == [NAME]


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _readable(path: Path) -> None:
    path.chmod(0o640)


def _writable_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def _linked_wal(path: Path) -> None:
    Path(f"{path}-wal").symlink_to(path.with_name("elsewhere"))


def _lonely_wal(path: Path) -> None:
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"left over")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_link, "not a regular file"),
        (_dangling, "not a regular file"),
        (_folder, "not a regular file"),
        (_pipe, "not a regular file"),
        (_readable, "users can read"),
        (_writable_folder, "users can change"),
        (_linked_wal, "not a regular file"),
        (_lonely_wal, "but its -wal file exists"),
    ],
)
def test_a_file_that_is_not_ours_alone_is_refused(state: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(state / NAME)
    assert message in refusal(state).message
    assert exists(state) == (spoil is not _lonely_wal)
    assert not (state / "nowhere").exists()


@needs("root")
@pytest.mark.parametrize(("name", "message"), [(NAME, "the state belongs"), ("", "the state folder belongs")])
def test_a_file_or_folder_of_another_user_is_refused(state: Path, name: str, message: str) -> None:
    os.chown(state / name, 12345, -1)
    assert refusal(state).message == f"{message} to another user"
    assert "as" in refusal(state).remedy.split()


KNOWN = f"this engine knows version {VERSION}"
SPOILED: dict[str, tuple[bytes | str, str]] = {
    "empty": (b"", "not a state file"),
    "cut": (b"SQLite format 3\0", "not a state file"),
    "noise": (random.Random(5).randbytes(20_000), "not a state file"),  # noqa: S311
    "later version": (
        f"PRAGMA user_version = {VERSION + 1}",
        f"version {VERSION + 1}, {KNOWN}",
    ),
    "no version": ("PRAGMA user_version = 0", f"version 0, {KNOWN}"),
    "another program": ("PRAGMA application_id = 7", "not a state file"),
    "earlier version": ("PRAGMA user_version = 1", "damaged"),  # but with the tables of this one
    "table gone": ("DROP TABLE tokens", "damaged"),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON holds BEGIN DELETE FROM holds; END", "damaged"),
    "column more": ("ALTER TABLE tokens ADD COLUMN more TEXT", "damaged"),
    "another journal": ("PRAGMA journal_mode = DELETE", "damaged"),
}


def _spoil(path: Path, how: bytes | str) -> None:
    if isinstance(how, bytes):
        path.write_bytes(how)
        return
    with sqlite3.connect(path) as connection:
        connection.executescript(how)
    connection.close()


@pytest.mark.parametrize("name", SPOILED)
def test_a_corrupt_state_file_is_refused_and_left_unchanged(state: Path, name: str) -> None:
    how, message = SPOILED[name]
    _spoil(state / NAME, how)
    before = (state / NAME).read_bytes()
    assert message in refusal(state).message
    assert (state / NAME).read_bytes() == before  # nothing is repaired by guessing


def test_the_database_of_another_program_is_refused(state: Path) -> None:
    (state / NAME).unlink()
    _spoil(state / NAME, "CREATE TABLE t (x)")
    (state / NAME).chmod(0o600)
    assert "not a state file" in refusal(state).message


def test_a_damaged_file_is_refused_or_serves_but_never_raises_anything_else(state: Path) -> None:
    whole = (state / NAME).read_bytes()
    chance = random.Random(7)  # noqa: S311
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        at = chance.randrange(len(data))
        data[at : at + chance.choice([1, 40, 4096])] = chance.randbytes(chance.choice([1, 40, 4096]))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        (state / NAME).write_bytes(data)
        refused += _refused(state)
    assert refused > 20
    (state / NAME).write_bytes(whole)
    assert not _refused(state)  # positive control


def _refused(state: Path) -> bool:
    try:
        with opened(state) as store:
            _use(store)
    except StateError:
        return True
    finally:
        for end in ("-wal", "-shm"):
            Path(f"{state / NAME}{end}").unlink(missing_ok=True)
    return False


@pytest.mark.full(after=2)
@pytest.mark.parametrize("stored", ["", "[", "{}", "[1]", '"source"', "null"])
def test_names_that_no_engine_wrote_are_refused(state: Path, stored: str) -> None:
    with opened(state) as store:
        text = store.issue("pipeline", ["source"], NOW + 9, NOW).text
        id_ = store.request_approval(asked()).id
        store.approve_prefix(approved())
    with sqlite3.connect(state / NAME) as connection:
        connection.execute("UPDATE prefixes SET words = ?", (stored,))
        connection.execute("UPDATE tokens SET points = ?", (stored,))
        connection.execute("UPDATE approvals SET codes = ?", (stored,))
    connection.close()
    with opened(state) as store:
        for use in (
            lambda: store.token(text, NOW),
            store.tokens,
            lambda: store.claim(id_, "d", asked(), NOW),
            lambda: store.prefixes(None, None, 9),
        ):
            with pytest.raises(StateError, match="damaged"):
                use()
        assert store.used(ONE, NOW) == 3


def test_a_failed_constraint_fails_only_its_own_operation(state: Path) -> None:
    with opened(state) as store:
        store.reserve("hold", (ONE,), NOW)
    with sqlite3.connect(state / NAME) as connection:
        connection.execute("UPDATE budgets SET used = 0")  # less than is held
    connection.close()
    with opened(state) as store:
        with pytest.raises(StateError):
            store.release("hold")
        assert store.used(ONE, NOW) == 0
        assert store.reserve("other", (ONE,), NOW) == (0,)


@pytest.mark.full
def test_damage_found_in_use_ends_the_store(state: Path) -> None:
    with opened(state, StateLimits(checked_bytes=0)) as store:
        data = bytearray((state / NAME).read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        with (state / NAME).open("r+b") as file:
            file.write(data)
        with pytest.raises(StateError, match="damaged"):
            store.approvals(None, 100)
        with pytest.raises(StateError, match="damaged"):
            store.reserve("hold", (ONE,), NOW)
        assert not store.writable()


def test_damage_fails_queued_operations_too(state: Path) -> None:
    _damage(state / NAME, "approvals")
    ran: list[sqlite3.Connection] = []
    with closing(Database(state, StateLimits(batch=1, checked_bytes=0))) as database:
        whole = not database.failed and database.write(_count) == 1
        with held(database, lambda connection: connection.execute("SELECT * FROM approvals").fetchall()) as pool:
            waiting = pool.submit(database.write, ran.append)
            gathered(database, 1)
        tries: list[Callable[[], None]] = [
            waiting.result,
            lambda: database.read(ran.append),
            lambda: database.write(ran.append),
        ]
        for use in tries:
            with pytest.raises(StateError, match="damaged"):
                use()
        assert (whole, database.failed, ran) == (True, True, [])


@pytest.mark.parametrize(("fewer", "noticed"), [(0, True), (1, False)])
def test_a_file_up_to_a_size_is_read_whole_before_it_is_used(state: Path, fewer: int, noticed: bool) -> None:  # noqa: FBT001
    limits = StateLimits(checked_bytes=(state / NAME).stat().st_size - fewer)
    _damage(state / NAME, "approvals")
    if noticed:
        with pytest.raises(StateError, match="damaged"):
            open_store(state, limits)
        return
    with opened(state, limits) as store:
        assert store.used(ONE, NOW) == 3
        with pytest.raises(StateError, match="damaged"):
            store.approvals(None, 9)


def test_a_replaced_file_is_refused(state: Path) -> None:
    """A store that went on with the old file would count apart from all others."""
    with opened(state) as store:
        assert store.writable()
        copy = state / "copy"
        shutil.copyfile(state / NAME, copy)
        copy.replace(state / NAME)
        for use in (lambda: store.used(ONE, NOW), lambda: store.reserve("h", (ONE,), NOW), lambda: store.token("", 1)):
            with pytest.raises(StateError, match="moved, replaced or emptied"):
                use()
        assert not store.writable()
        (state / NAME).unlink()
        with pytest.raises(StateError, match="moved, replaced or emptied"):
            store.used(ONE, NOW)


def test_a_file_that_is_emptied_is_refused_at_once(state: Path) -> None:
    """SQLite would go on for a while with what it has in memory and in its log."""
    with opened(state) as store:
        store.reserve("h", (ONE,), NOW)
        os.truncate(state / NAME, 0)
        with pytest.raises(StateError, match="moved, replaced or emptied"):
            store.reserve("i", (ONE,), NOW)


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_commit_to_a_concurrently_moved_file_is_reported_as_failed(end: str, state: Path) -> None:
    path = Path(f"{state / 'state.sqlite3'}{end}")
    with opened(state) as store:
        with pytest.raises(StateError, match="moved, replaced or emptied"):
            store._database.write(lambda _: path.rename(path.with_suffix(".aside")))
        path.with_suffix(".aside").rename(path)
        assert store.writable()


def test_a_closed_store_is_refused(state: Path) -> None:
    store = open_store(state)
    assert store.writable()
    store.close()
    store.close()
    for use in (lambda: store.used(ONE, NOW), lambda: store.release("h"), lambda: store.token("", NOW)):
        with pytest.raises(StateError, match="closed"):
            use()
    assert not store.writable()


def test_closing_completes_submitted_operations(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state")

    def work(number: int) -> int:
        if number == 0:
            store.close()
            return 0
        done = 0
        try:
            for count in range(200):
                store.reserve(f"{number} {count}", (ONE,), NOW)
                done += 1
        except StateError:
            pass
        return done

    done = sum(together(8, work))
    with opened(tmp_path / "state") as again:
        assert again.used(ONE, NOW) == done


@pytest.fixture
def database(state: Path) -> Iterator[Database]:
    with closing(Database(state, StateLimits(batch=2, busy_seconds=0.5))) as database:
        yield database


def test_operations_submitted_before_a_close_are_completed(database: Database) -> None:
    with held(database) as pool:
        waiting = pool.submit(database.write, _count)
        gathered(database, 1)
        closed = pool.submit(database.close)
        gathered(database, 2)
    assert waiting.result() == 1
    assert closed.result() is None


def test_operations_that_gather_share_commits_up_to_a_number(database: Database) -> None:
    ran: list[str] = []
    database._writer.set_trace_callback(ran.append)
    with held(database) as pool:
        waiting = [pool.submit(database.write, _count) for _ in range(5)]
        gathered(database, 5)
    assert sorted(one.result() for one in waiting) == [1, 2, 3, 4, 5]
    commits = " ".join(ran).split("COMMIT")
    assert [commit.count("SAVEPOINT") for commit in commits] == [1, 2, 2, 1, 0]


def test_only_another_writer_is_waited_for(database: Database) -> None:
    ran: list[str] = []
    database._writer.execute("PRAGMA query_only = ON")
    database._writer.set_trace_callback(ran.append)
    with pytest.raises(StateError, match="it may not be written"):
        database.write(_count)
    assert ran == ["BEGIN IMMEDIATE"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_store_does_nothing_and_leaves_the_parent_intact(state: Path) -> None:
    with opened(state) as store:
        pid = os.fork()
        if pid == 0:
            os._exit(_tried_in_child(store))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        before = store.used(ONE, NOW)
        store.reserve("parent", (ONE,), NOW)
        assert store.used(ONE, NOW) == before + 1
    with opened(state) as store:
        assert store.used(ONE, NOW) == before + 1


def _tried_in_child(store: Store) -> int:
    try:
        for use in (lambda: store.used(ONE, NOW), lambda: store.reserve("child", (ONE,), NOW)):
            try:
                use()
            except StateError as error:
                if "another process" not in error.message:
                    return 1
            else:
                return 2
        before = os.listdir("/proc/self/fd")  # noqa: PTH208  (the same descriptors, as text)
        store.close()
        if os.listdir("/proc/self/fd") != before:  # noqa: PTH208
            return 5
        return 3 if store.writable() else 0
    except BaseException:  # noqa: BLE001  (nothing of pytest may run in the child)
        return 4


def test_another_writer_is_waited_for_and_then_refused(state: Path) -> None:
    other = sqlite3.connect(state / NAME, isolation_level=None)
    try:
        with opened(state, StateLimits(busy_seconds=0.05)) as store:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StateError, match="another process holds it"):
                store.reserve("hold", (ONE,), NOW)
            assert store.used(ONE, NOW) == 3  # reading goes on
            with opened(state, StateLimits(busy_seconds=0.05)) as another:  # and so does opening
                assert another.used(ONE, NOW) == 3
            other.execute("ROLLBACK")
            assert store.reserve("hold", (ONE,), NOW) == (3,)
    finally:
        other.close()


def test_an_operation_that_fails_undoes_only_its_own_writes(tmp_path: Path) -> None:
    """Operations that share a commit do not share their errors."""
    (tmp_path / "state").mkdir(mode=0o700)
    database = Database(tmp_path / "state", StateLimits())

    def operation(number: int) -> Callable[[sqlite3.Connection], int]:
        def run(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE probe SET count = count + 1")
            if number % 2:
                raise StateError("odd", remedy="none")
            return number

        return run

    def work(number: int) -> bool:
        try:
            return database.write(operation(number)) == number
        except StateError as error:
            return error.message == "odd" and number % 2 == 1

    try:
        assert together(32, work) == [True] * 32
        assert database.read(lambda reader: reader.execute("SELECT count FROM probe").fetchone()) == (16,)
    finally:
        database.close()


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    assert exists(long)  # perhaps
    assert "too long" in refusal(long).message
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be opened" in refusal(tmp_path / "file" / "state").message


@needs("immutable_files")
def test_a_read_only_state_denies(state: Path) -> None:
    path = state / NAME
    subprocess.run(["chattr", "+i", str(path)], check=True)  # noqa: S607
    errors: list[EngineError] = []
    try:
        _attempt(state, errors)
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)  # noqa: S607
    assert [error.code for error in errors] == ["engine.state_unavailable"]
    with opened(state) as store:
        assert store.writable()


def _attempt(state: Path, errors: list[Any]) -> None:
    try:
        with opened(state) as store:
            assert not store.writable()
            store.reserve("hold", (ONE,), NOW)
    except EngineError as error:
        errors.append(error)

"""The record at an object store: everything that was shipped verifies there, and nothing shipped is replaced."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from engine.cli.record.commands import app
from engine.documents.canonical import canonical
from engine.errors import EngineError, GatherError, RecordError, install_extra
from engine.record import shipping
from engine.record.chains import chain_folder
from engine.record.checkpoint import read_identity, signed_statement
from engine.record.layout import KEY, BreakKind
from engine.record.objects import ObjectStore
from engine.record.retention import RetentionOrder
from engine.record.shipping import RECEIPT, SHIPPING, Shipped, first_unshipped, ship, trust
from engine.record.storage import Storage
from engine.record.stored import StoredVerification, verify_store
from engine.record.verify import require_checkpoint, verify
from tests.expect import refused
from tests.processes import python, said, send_line
from tests.record.samples import decision, event, open_log

fsspec = pytest.importorskip("fsspec", reason="the extra `ray` is not installed")
memory = pytest.importorskip("fsspec.implementations.memory")

SEGMENT = 12_000  # bytes, some 17 lines
YEAR_LATER = int(datetime(2027, 11, 21, tzinfo=UTC).timestamp())  # the samples are from a year before


def write(state: Path, count: int, first: int = 1) -> None:
    with open_log(state, segment_bytes=SEGMENT) as log:
        for number in range(first, first + count):
            log.append(decision(number), (event(number),) * (number % 3 == 0))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    write(tmp_path / "state", 60)
    return tmp_path / "state"


@pytest.fixture(params=["file", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    class Bucket(memory.MemoryFileSystem):  # type: ignore[misc,name-defined]
        protocol = "bucket"

    fsspec.register_implementation("bucket", Bucket, clobber=True)
    place = f"{request.param}://{tmp_path}/store"
    yield place
    fs, root = fsspec.core.url_to_fs(place)
    if fs.exists(root):
        fs.rm(root, recursive=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that can be a store."""
    return tmp_path / "store"


@pytest.fixture
def store(state: Path, place: Path) -> Path:
    """A store to which the state was shipped."""
    ship(state, str(place))
    return place


def objects(url: str) -> dict[str, bytes]:
    """Every object by its name below the chain, or below the store."""
    fs, root = fsspec.core.url_to_fs(url)
    return {path[len(root) + 1 :]: fs.cat_file(path) for path in fs.find(root)}


def chain(url: str) -> dict[str, bytes]:
    """The objects of the only chain."""
    return {name.split("/", 2)[2]: data for name, data in objects(url).items()}


def found_at(url: str | Path, *states: Path, keys: bool = True) -> tuple[list[StoredVerification], list[Any]]:
    """What is verified at a store with the keys of these states, and without their receipts."""
    known = [(state / KEY).read_bytes() for state in states] if keys else []
    nowhere = Path(str(states[0]) + ".none") if states else Path("none")
    return verify_store(ObjectStore(str(url)), trust(nowhere, str(url), known, None))


def only(url: str | Path, *states: Path, keys: bool = True) -> StoredVerification:
    """The verification of the only chain."""
    found, strange = found_at(url, *states, keys=keys)
    assert len(found) == 1
    assert not strange
    return found[0]


def check_whole(url: Path, state: Path) -> None:
    """Everything is at the store, and intact."""
    one = only(url, state)
    assert (one.found.ok, one.found.removed, one.unverified) == (True, 0, 0), one.found.breaks


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@contextmanager
def fails(kind: type[EngineError], text: str) -> Iterator[None]:
    """Fail unless the block raises an error of this family with this text."""
    with pytest.raises(kind) as caught:
        yield
    assert text in caught.value.one_line()


def restated(store: Path, state: Path, **changes: Any) -> Path:
    """Change the statement at the store and sign it with the key of the chain; returns its path."""
    path = next(store.rglob("chain.json"))
    stated = json.loads(path.read_bytes())
    fields = {name: value for name, value in stated.items() if name not in {"time", "key", "mac"}}
    path.write_bytes(signed_statement({**fields, **changes}, identity(state), stated["time"]))
    return path


def retain(state: Path) -> int:
    """Remove what is old from chain 1; the lines removed."""
    with open_log(state, segment_bytes=SEGMENT) as log:
        done = RetentionOrder("d" * 32, 30, YEAR_LATER, None, None).carry_out(log, state)
        return 0 if done is None else done.lines


def test_a_shipped_record_verifies_at_the_store(state: Path, url: str) -> None:
    sent = ship(state, url)[1]
    there = chain(url)
    local = {path.name: path.read_bytes() for path in (state / "records").glob("decisions.*.jsonl")}
    *closed, last = sorted(local)
    assert {name: there[name] for name in closed} == {name: local[name] for name in closed}
    assert there["open/60.decisions.jsonl"] == local[last]
    assert (sent.segments, sent.seq) == (len(closed), 60)
    one = only(url, state)
    assert (one.found.ok, one.signed, one.found.records, one.found.source_events) == (True, True, 60, 20)
    assert one.found.head == verify(state).head
    assert one.found.segments == len(local)


def test_shipping_again_sends_nothing_and_changes_nothing(state: Path, url: str) -> None:
    ship(state, url)
    before = objects(url)
    assert ship(state, url)[1] == Shipped(0, 0, 60)
    assert objects(url) == before
    (state / RECEIPT).unlink()  # without a receipt, everything is compared at the store
    assert ship(state, url)[1].size == 0
    assert objects(url) == before


def test_later_lines_are_added_and_the_open_segment_is_replaced(state: Path, url: str) -> None:
    for last in range(60, 160, 10):
        ship(state, url)
        one = only(url, state)
        assert (one.found.ok, one.found.records) == (True, last)
        assert {name.split(".")[0] for name in chain(url) if name.startswith("open/")} == {f"open/{last}"}
        write(state, 10, last + 1)


def test_a_record_without_lines_is_shipped_and_verifies(tmp_path: Path, url: str) -> None:
    write(tmp_path / "empty", 0)
    assert ship(tmp_path / "empty", url)[1].seq == 0
    assert not [name for name in chain(url) if name.startswith("open/")]
    one = only(url, tmp_path / "empty")
    assert (one.found.ok, one.found.records) == (True, 0)
    assert ship(tmp_path / "none", url) == {}


def test_a_store_has_many_engines_with_many_chains_and_one_summary(tmp_path: Path, url: str) -> None:
    states = [tmp_path / "one", tmp_path / "two"]
    for number, state in enumerate(states):
        write(state, 20 + number)
        write(chain_folder(state, 2), 30)
        assert sorted(ship(state, url)) == [1, 2]
    keys = [chain_folder(state, number) / KEY for state in states for number in (1, 2)]
    told = run("verify", url, "--state", states[0], "--key", keys[2], "--key", keys[3], "--format", "json")
    document = json.loads(told.stdout)
    assert (told.exit_code, document["engines"], document["records"], len(document["chains"])) == (0, 2, 101, 4)
    told = run("verify", url, "--state", states[0])
    assert told.exit_code == 1
    assert "2 engines, 4 chains, all intact, signature not checked: 2: 101 records" in told.stdout
    assert told.stdout.count("give a copy of keys/record.key with id") == 2


def test_of_two_shipments_at_once_the_later_one_leaves_all_chains_to_the_other(state: Path, store: Path) -> None:
    write(chain_folder(state, 2), 30)
    with closing(Storage(state)) as other:
        other.lock(shipping._LOCK, 0.0)
        with refused(RecordError, "engine.record_locked"):
            ship(state, str(store))
    assert not [*store.glob("*/002")]
    assert sorted(ship(state, str(store))) == [1, 2]


def test_the_commands_name_the_store(state: Path, place: Path) -> None:
    for command in ("ship", "verify"):
        assert run(command, place, "--state", state).stdout.startswith(f"store: file://{place}\n")
        told = run(command, place, "--state", state, "--format", "json")
        assert json.loads(told.stdout)["store"] == f"file://{place}"


@pytest.mark.parametrize("keys", [True, False])
def test_every_object_that_is_changed_cut_removed_or_swapped_is_found_and_named(
    state: Path, store: Path, *, keys: bool
) -> None:
    whole = {path: path.read_bytes() for path in store.rglob("*.json*")}
    assert len(whole) > 8
    for path, data in whole.items():
        name = str(path.relative_to(store))
        middle = len(data) // 2
        other = next(data for one, data in whole.items() if one != path)
        for how, changed in {
            "changed": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "cut": data[: -len(data) // 3],
            "cut after a line": data[: data.rfind(b"\n", 0, -1) + 1],
            "emptied": b"",
            "removed": None,
            "swapped": other,
        }.items():
            if how == "changed" and path.name == "chain.json" and not keys:
                continue  # it may be its signature
            path.unlink() if changed is None else path.write_bytes(changed)
            found, strange = found_at(store, state, keys=keys)
            breaks = [broken.file for one in found for broken in one.found.breaks] + [one.file for one in strange]
            assert name in breaks, (name, how, breaks)
            path.write_bytes(data)
    assert only(store, state, keys=keys).found.ok


def test_two_segments_that_are_exchanged_are_named(state: Path, store: Path) -> None:
    first, second = sorted(store.rglob("decisions.*.jsonl"))[:2]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    names = [str(path.relative_to(store)) for path in (first, second)]
    assert [broken.file for broken in only(store, state).found.breaks] == names


def test_a_rewritten_chain_is_found_with_its_key_and_not_called_proven_without(state: Path, store: Path) -> None:
    path = next(store.rglob("chain.json"))
    path.write_bytes(path.read_bytes().replace(b'"time":"2026', b'"time":"2027'))
    told = run("verify", store, "--state", state)
    assert told.exit_code == 4
    assert "chain.json:1: bad_signature" in told.stdout
    assert run("verify", store, "--state", state.parent).exit_code == 1


def test_a_statement_with_fewer_segments_than_lines_is_a_break_without_its_key_too(store: Path) -> None:
    path = next(store.rglob("chain.json"))
    path.write_bytes(re.sub(rb'"segments":\[[^]]+\]', b'"segments":[]', path.read_bytes()))
    broken = only(store, keys=False).found.breaks
    assert {one.kind for one in broken} == {BreakKind.CHECKPOINT_MISMATCH}
    assert {one.expected for one in broken} == {"0 bytes"}


def test_a_segment_that_is_cut_or_gone_is_reported_with_its_bytes(state: Path, store: Path) -> None:
    path = next(store.rglob("decisions.000002.jsonl"))
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    (cut,) = only(store, state).found.breaks
    assert (cut.kind, cut.expected, cut.found) == (
        BreakKind.CHECKPOINT_MISMATCH,
        f"{len(data)} bytes",
        f"{len(data) - 1} bytes",
    )
    path.unlink()
    (gone,) = only(store, state).found.breaks
    assert (gone.kind, gone.expected, gone.found) == (BreakKind.MISSING_SEGMENT, f"{len(data)} bytes", "none")


def test_source_events_that_are_cut_or_gone_are_reported_with_their_bytes(state: Path, store: Path) -> None:
    closed = sorted(path for path in store.rglob("source_events.*.jsonl") if path.parent.name != "open")[1]
    open_ = next(store.rglob("open/*.source_events.*.jsonl"))
    for path in (closed, open_):
        data = path.read_bytes()
        for left, there in ((data[:-1], f"{len(data) - 1} bytes"), (None, "none")):
            path.unlink() if left is None else path.write_bytes(left)
            (broken,) = only(store, state).found.breaks
            assert (broken.file, broken.kind) == (str(path.relative_to(store)), BreakKind.MISSING_SEGMENT)
            assert (broken.expected, broken.found) == (f"{len(data)} bytes", there)
        path.write_bytes(data)


def test_changed_source_events_are_named_by_their_object(state: Path, store: Path) -> None:
    found = list(store.rglob("source_events.*.jsonl"))
    assert len(found) > 2
    for path in found:
        data = path.read_bytes()
        first = data.index(b"contacts-") + 9
        path.write_bytes(data[:first] + b"x" + data[first + 1 :])
        (broken,) = only(store, state).found.breaks
        assert broken.file == str(path.relative_to(store))
        path.write_bytes(data)


@pytest.mark.parametrize("changes", [{"engine": "f" * 32}, {"chain": 2}, {"installation": "f" * 32}])
def test_a_statement_about_another_chain_is_a_break_although_it_is_signed(
    state: Path, store: Path, changes: dict[str, Any]
) -> None:
    path = restated(store, state, **changes)
    (broken,) = only(store, state).found.breaks
    assert (broken.file, broken.kind) == (str(path.relative_to(store)), BreakKind.CHECKPOINT_MISMATCH)


def test_a_chain_in_the_place_of_another_one_is_a_break(tmp_path: Path, place: Path) -> None:
    state = tmp_path / "state"
    for number in (1, 2, 3):
        write(chain_folder(state, number), 5)
    ship(state, str(place))
    engine = next(place.iterdir())
    shutil.rmtree(engine / "002")
    (engine / "003").rename(engine / "002")
    states = [chain_folder(state, number) for number in (1, 2, 3)]
    assert [one.found.ok for one in found_at(place, *states)[0]] == [True, False]
    engine.rename(place / ("f" * 32))
    assert [one.found.ok for one in found_at(place, *states)[0]] == [False, False]


def test_a_chain_that_is_gone_is_missed_by_its_number_and_by_its_engine(tmp_path: Path, place: Path) -> None:
    state = tmp_path / "state"
    for number in (1, 2, 3):
        write(chain_folder(state, number), 20)
    ship(state, str(place))
    engine = next(place.iterdir())
    shutil.rmtree(engine / "002")
    found, _ = found_at(place, *(chain_folder(state, number) for number in (1, 2, 3)))
    assert [one.chain for one in found if not one.found.ok] == [2]
    shutil.rmtree(engine / "003")
    assert all(one.found.ok for one in found_at(place, state)[0]) is True  # nobody else knows of it
    told = run("verify", place, "--state", state)
    assert told.exit_code == 4
    assert "/003/chain.json:1: rolled_back" in told.stdout


def test_an_older_state_of_the_store_is_found_by_its_engine_and_by_a_copied_checkpoint(
    state: Path, store: Path, tmp_path: Path
) -> None:
    shutil.copytree(store, tmp_path / "older")
    write(state, 60, 61)
    ship(state, str(store))
    shutil.copy(state / "checkpoints/decisions.json", tmp_path / "copy.json")
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "older", store)
    assert only(store, state).found.ok
    assert run("verify", store, "--state", state).exit_code == 4
    against = ("--against", tmp_path / "copy.json", "--key", state / KEY)
    told = run("verify", store, "--state", tmp_path, *against)
    assert told.exit_code == 4
    assert "rolled_back" in told.stdout
    with fails(RecordError, "the store lost what was shipped"):
        ship(state, str(store))


@pytest.mark.parametrize("within_a_chain", [False, True])
def test_an_object_of_no_chain_is_named(state: Path, store: Path, *, within_a_chain: bool) -> None:
    name = f"{next(store.iterdir()).name}/001/notes.txt" if within_a_chain else "notes.txt"
    (store / name).write_text("mine", encoding="utf-8")
    found, strange = found_at(store, state)
    assert found[0].found.ok
    assert [one.file for one in strange] == [name]
    assert run("verify", store, "--state", state).exit_code == 4


def test_a_copied_checkpoint_is_compared_with_the_chain_that_signed_it(tmp_path: Path, place: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    states = [chain_folder(state, number) for number in (1, 2)]
    for folder in (*states, other):
        write(folder, 20)
    ship(state, str(place))
    keys = [(folder / KEY).read_bytes() for folder in states]
    for folder, kinds in ((states[1], []), (other, ["rolled_back"])):
        copy = (folder / "checkpoints/decisions.json").read_bytes()
        found, strange = verify_store(ObjectStore(str(place)), trust(tmp_path / "none", str(place), keys, copy))
        assert [one.found.ok for one in found] == [True, True]
        assert [(one.file, str(one.kind)) for one in strange] == [("--against", kind) for kind in kinds]


def test_engines_with_different_numbers_of_chains_miss_none(tmp_path: Path, place: Path) -> None:
    many, one = tmp_path / "many", tmp_path / "one"
    folders = [many, chain_folder(many, 2), one]
    for folder in folders:
        write(folder, 5)
    ship(many, str(place))
    ship(one, str(place))
    found, strange = found_at(place, *folders)
    assert (sorted(one.chain for one in found), strange) == ([1, 1, 2], [])
    assert all(one.found.ok for one in found)


def test_a_store_that_is_shipped_to_while_it_is_verified_is_intact(
    state: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, shipped = ObjectStore.sizes, list[int]()

    def meanwhile(self: ObjectStore, below: str = "") -> dict[str, int]:
        found = sizes(self, below)
        if not shipped:
            shipped.append(1)
            write(state, 40, 61)
            ship(state, str(store))
        return found

    monkeypatch.setattr(ObjectStore, "sizes", meanwhile)
    one = only(store, state)
    assert (one.found.ok, one.found.records) == (True, 100), one.found.breaks


def test_a_state_that_shipped_nothing_here_misses_nothing_here(state: Path, store: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", 5)
    told = run("verify", store, "--state", tmp_path / "other", "--key", state / KEY)
    assert (told.exit_code, "intact" in told.stdout) == (0, True), told.stdout


def test_a_shipped_segment_is_never_replaced_by_another_content(state: Path, store: Path) -> None:
    path = next(store.rglob("decisions.000002.jsonl"))
    changed = path.read_bytes()[:-9] + b"tampered\n"
    (state / RECEIPT).unlink()
    for other in (changed, changed[-50:]):
        path.write_bytes(other)
        with fails(RecordError, "has another content than here"):
            ship(state, str(store))
        assert path.read_bytes() == other
    path.write_bytes(changed[:50])  # the beginning of it: an upload that did not end
    ship(state, str(store))
    assert only(store, state).found.ok


def test_an_object_with_more_than_its_bytes_is_not_replaced(state: Path, place: Path) -> None:
    events = (state / "records/source_events.jsonl").read_bytes()
    ship(state, str(place))
    path = next(place.rglob("source_events.0-*.jsonl"))
    more = events[: path.stat().st_size + 9]
    path.write_bytes(more)
    (state / RECEIPT).unlink()
    with fails(RecordError, "has another content than here"):
        ship(state, str(place))
    assert path.read_bytes() == more


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_source_events_that_the_store_lost_are_noticed_and_sent_again_under_their_names(
    state: Path, store: Path, *, cut: bool, retained: bool
) -> None:
    write(state, 60, 61)
    ship(state, str(store))
    if retained:
        retain(state)
        ship(state, str(store))
    before = objects(str(store))
    for path in [path for path in store.rglob("source_events.*.jsonl") if path.parent.name != "open"]:
        data = path.read_bytes()
        path.write_bytes(data[:-1]) if cut else path.unlink()
        start = path.name.split(".")[1].split("-")[0]
        with fails(RecordError, f"source events of `{path.parent.relative_to(store)}/` from byte {int(start):,} on"):
            ship(state, str(store))
        (state / RECEIPT).unlink()  # what the remedy says
        ship(state, str(store))
        assert only(store, state).found.ok
        assert objects(str(store)) == before


def test_a_store_that_keeps_other_bytes_than_it_was_sent_is_noticed(
    state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = ObjectStore.put
    monkeypatch.setattr(ObjectStore, "put", lambda self, name, source, size: put(self, name, source, size - 1))
    with fails(RecordError, "was not read back as it was written"):
        ship(state, str(place))
    assert not (state / RECEIPT).exists()
    assert not list(place.rglob("chain.json"))


def test_a_segment_truncated_during_its_shipment_is_not_stated(
    state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, path = ObjectStore.put, state / "records/decisions.000002.jsonl"

    def meanwhile(self: ObjectStore, name: str, source: Any, size: int) -> None:
        put(self, name, source, size)
        path.write_bytes(path.read_bytes()[:500])

    monkeypatch.setattr(ObjectStore, "put", meanwhile)
    with refused(RecordError, "engine.record_broken"):
        ship(state, str(place))
    assert not list(place.rglob("decisions.000002.jsonl"))
    assert not list(place.rglob("chain.json"))


@pytest.mark.parametrize(("signed", "text"), [(True, "is of another chain"), (False, "is not signed by this chain")])
def test_nothing_is_shipped_over_a_statement_of_another_chain(
    state: Path, store: Path, text: str, *, signed: bool
) -> None:
    path = restated(store, state, installation="f" * 32)
    if not signed:
        path.write_bytes(path.read_bytes().replace(b'"time":"2026', b'"time":"2027'))
    write(state, 20, 61)
    before = objects(str(store))
    with fails(RecordError, text):
        ship(state, str(store))
    assert objects(str(store)) == before


def test_after_an_interrupted_shipment_the_object_that_was_read_is_named(
    state: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(state, 40, 61)
    monkeypatch.setattr(ObjectStore, "replace", interrupted)
    with pytest.raises(RecordError):
        ship(state, str(store))
    assert (only(store, state).found.ok, only(store, state).found.records) == (True, 60)
    as_open = next(store.rglob("open/60.decisions.jsonl"))
    segment = json.loads(next(store.rglob("chain.json")).read_bytes())["checkpoint"]["segment"]
    as_closed = next(store.rglob(f"decisions.{segment:06d}.jsonl"))
    for path in (as_open, as_closed):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"contacts-", b"Contacts-", 1))
        (broken,) = only(store, state).found.breaks
        assert broken.file == str(path.relative_to(store))
        path.write_bytes(data)
        for own in as_open.parent.iterdir():
            own.unlink()  # all of it is in closed objects too
        assert (only(store, state).found.ok, only(store, state).found.records) == (True, 60)
    as_closed.unlink()
    (broken,) = only(store, state).found.breaks
    assert (broken.file, broken.kind) == (str(as_open.relative_to(store)), BreakKind.MISSING_SEGMENT)


def interrupted(*_: object) -> None:
    raise InterruptedError


def test_a_segment_lost_by_the_store_is_noticed_by_the_next_shipment(state: Path, store: Path) -> None:
    path = next(store.rglob("decisions.000002.jsonl"))
    cut = path.read_bytes()[:-1]
    path.write_bytes(cut)
    with fails(RecordError, f"found {len(cut):,} bytes"):
        ship(state, str(store))
    path.unlink()
    with fails(RecordError, "found no such object"):
        ship(state, str(store))
    (state / RECEIPT).unlink()  # what the remedy says
    ship(state, str(store))
    assert only(store, state).found.ok


def test_an_older_copy_and_a_continued_copy_of_a_record_ship_nothing(state: Path, place: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(state, copy)
    write(state, 20, 61)
    ship(state, str(place))
    before = objects(str(place))
    with fails(RecordError, "has lines that are not here"):
        ship(copy, str(place))
    write(copy, 30, 500)
    with fails(RecordError, "has lines that are not here"):
        ship(copy, str(place))
    assert objects(str(place)) == before


def test_a_broken_record_is_not_shipped(state: Path, place: Path) -> None:
    path = state / "records/decisions.000002.jsonl"
    path.write_bytes(path.read_bytes().replace(b"contacts-2", b"contacts-9", 1))
    with refused(RecordError, "engine.record_broken"):
        ship(state, str(place))
    assert not list(place.rglob("decisions.000002*"))


@pytest.mark.usefixtures("store")
def test_another_store_is_refused_until_shipping_is_reset(state: Path, tmp_path: Path) -> None:
    with fails(RecordError, "this record is shipped to"):
        ship(state, str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()
    (state / SHIPPING).unlink()
    ship(state, str(tmp_path / "other"))
    assert only(tmp_path / "other", state).found.ok


def test_retention_removes_only_what_is_at_the_store(state: Path, url: str) -> None:
    write(chain_folder(state, 2), 60)
    ship(state, url)
    write(state, 60, 61)
    shipped = read_seq(state)
    assert retain(state) == shipped
    assert retain(state) == 0
    found = verify(state)
    assert (found.ok, found.removed) == (True, shipped)
    ship(state, url)
    assert retain(state) > 0
    ship(state, url)
    found_there, _ = found_at(url, state, chain_folder(state, 2))
    assert [one.found.ok for one in found_there] == [True, True]
    assert (found_there[0].found.removed, found_there[0].found.anchor) == (0, None)  # the store has all of it


def read_seq(state: Path) -> int:
    return int(json.loads((state / RECEIPT).read_bytes())["seq"])


def test_a_new_chain_of_a_shipped_record_is_kept_until_it_is_shipped(state: Path, store: Path) -> None:
    folder = chain_folder(state, 2)
    write(folder, 60)
    order = RetentionOrder("d" * 32, 30, YEAR_LATER, None, None)
    with open_log(folder, segment_bytes=SEGMENT) as log:
        assert order.carry_out(log, state) is None
    ship(state, str(store))
    with open_log(folder, segment_bytes=SEGMENT) as log:
        assert order.carry_out(log, state) is not None


def test_a_record_that_is_not_shipped_is_retained_as_before(state: Path) -> None:
    assert first_unshipped(state, Storage(state), identity(state)) is None
    assert retain(state) > 0


def identity(state: Path) -> Any:
    with closing(Storage(state)) as storage:
        return read_identity(storage)


def test_removal_by_retention_is_distinguished_from_loss_at_the_store(state: Path, store: Path) -> None:
    retain(state)
    write(state, 60, 61)
    ship(state, str(store))
    anchor = json.loads((state / "checkpoints/anchor.json").read_bytes())
    segments = {
        int(path.name.split(".")[1]): path for path in store.rglob("decisions.*.jsonl") if path.parent.name != "open"
    }
    segments[1].unlink()
    one = only(store, state)
    assert (one.found.ok, one.found.removed, one.unverified) == (True, anchor["seq"], anchor["segment"] - 2)
    for number in range(2, anchor["segment"]):
        segments[number].unlink()
    one = only(store, state)
    assert (one.found.ok, one.found.removed, one.unverified) == (True, anchor["seq"], 0)
    told = run("verify", store, "--state", state)
    assert told.exit_code == 0
    assert f"{anchor['seq']} removed by retention" in told.stdout
    gone = segments[anchor["segment"]]
    gone.unlink()
    one = only(store, state)
    assert [(broken.file, str(broken.kind)) for broken in one.found.breaks] == [
        (str(gone.relative_to(store)), "missing_segment")
    ]


def test_a_pruned_record_is_shipped_from_its_anchor(state: Path, url: str) -> None:
    removed = retain(state)
    write(state, 60, 61)
    ship(state, url)
    one = only(url, state)
    assert (one.found.ok, one.found.removed, one.found.source_events) == (True, removed, 40)
    (state / RECEIPT).unlink()
    retain(state)
    ship(state, url)
    assert only(url, state).found.ok


def test_a_record_pruned_beyond_its_last_shipment_is_shipped_from_its_anchor(state: Path, store: Path) -> None:
    (state / SHIPPING).unlink()  # the operator stopped shipping, and retention no longer waits for it
    write(state, 60, 61)
    removed = retain(state)
    assert removed > read_seq(state)
    write(state, 60, 121)
    ship(state, str(store))
    one = only(store, state)
    assert (one.found.ok, one.found.removed) == (True, removed), one.found.breaks


def test_segments_removed_by_retention_are_not_shipped_again(state: Path, store: Path) -> None:
    assert retain(state) > 0
    write(state, 5, 61)
    assert ship(state, str(store))[1].segments == 1
    stated = json.loads(next(store.rglob("chain.json")).read_bytes())
    assert stated["anchor"] == json.loads((state / "checkpoints/anchor.json").read_bytes())
    restated(store, state, anchor=None)  # as of a shipment between the line of a removal and its anchor
    assert ship(state, str(store))[1].segments == 0
    assert json.loads(next(store.rglob("chain.json")).read_bytes())["anchor"] == stated["anchor"]


def test_a_lost_statement_is_signed_again_for_what_retention_removed_here(state: Path, store: Path) -> None:
    assert retain(state) > 0
    write(state, 5, 61)
    ship(state, str(store))
    path = next(store.rglob("chain.json"))
    stated = json.loads(path.read_bytes())
    path.unlink()
    ship(state, str(store))
    assert json.loads(path.read_bytes())["segments"] == stated["segments"]
    check_whole(store, state)


def test_shipped_segments_removed_before_their_statement_are_stated_later(
    state: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(state, 60, 61)
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "replace", interrupted)  # a shipment that ends before its statement
        with pytest.raises(RecordError):
            ship(state, str(store))
    assert retain(state) > 60
    ship(state, str(store))
    check_whole(store, state)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("cut", [False, True])
def test_a_lost_statement_is_not_signed_again_for_segments_that_do_not_lead_to_the_anchor(
    state: Path, store: Path, number: int, *, cut: bool
) -> None:
    retain(state)
    assert json.loads((state / "checkpoints/anchor.json").read_bytes())["segment"] == 5
    statement, path = next(store.rglob("chain.json")), next(store.rglob(f"decisions.{number:06d}.jsonl"))
    statement.unlink()
    data = path.read_bytes()
    last = data.rfind(b"\n", 0, -1) + 1
    path.write_bytes(data[:last] if cut else data[:last] + data[last:].replace(b"contacts-", b"Contacts-", 1))
    with fails(RecordError, "the store lost what was shipped: `"):
        ship(state, str(store))
    assert not statement.exists()
    (state / RECEIPT).unlink()  # what the remedy says
    ship(state, str(store))
    one = only(store, state)
    assert (one.found.ok, one.unverified) == (True, 4), one.found.breaks
    write(state, 60, 61)
    ship(state, str(store))
    assert only(store, state).found.ok


def test_an_upload_that_did_not_end_before_retention_removed_its_segment_is_not_read(
    state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(self: ObjectStore, name: str, source: Any, size: int) -> None:
        put(self, name, source, size // 2 if "decisions" in name else size)
        if "decisions" in name:
            raise RecordError("interrupted", remedy="ship again")

    put = ObjectStore.put
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "put", half)
        with pytest.raises(RecordError):
            ship(state, str(place))
    (path,) = place.rglob("decisions.*")
    assert path.name == "decisions.000001.jsonl"
    retain(state)
    removed = json.loads((state / "checkpoints/anchor.json").read_bytes())["segment"] - 1
    for number in range(2, removed + 1):
        shutil.copy(path, path.with_name(f"decisions.{number:06d}.jsonl"))
    for last in (60, 120):
        ship(state, str(place))
        one = only(place, state)
        assert (one.found.ok, one.unverified) == (True, removed), one.found.breaks
        write(state, 60, last + 1)


@pytest.mark.parametrize("step", ["read_receipt", "require_checkpoint", "require_contained", "read_statement"])
@pytest.mark.parametrize("again", [False, True])
def test_retention_during_a_shipment_loses_nothing(
    state: Path, store: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, again: bool
) -> None:
    if again:
        write(state, 60, 61)
    act, done = getattr(shipping, step), list[int]()

    def meanwhile(*arguments: Any) -> Any:
        if not done:
            done.append(0)
            done[0] = retain(state)
        return act(*arguments)

    monkeypatch.setattr(shipping, step, meanwhile)
    ship(state, str(store))
    assert done[0] > 0
    check_whole(store, state)


def test_retention_between_a_receipt_and_its_statement_loses_nothing(
    state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, done = shipping._Shipment._send_open, list[int]()

    def sent(self: Any, *arguments: Any) -> None:
        send(self, *arguments)
        done.append(retain(state))

    ship(state, str(place))
    write(state, 60, 61)
    monkeypatch.setattr(shipping._Shipment, "_send_open", sent)
    ship(state, str(place))
    assert done[0] > 60
    check_whole(place, state)


def test_retention_before_the_first_receipt_is_waited_out(
    state: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, done = require_checkpoint, list[int]()

    def meanwhile(*arguments: Any) -> Any:
        found = checked(*arguments)
        if not done:
            done.append(retain(state))
        return found

    monkeypatch.setattr(shipping, "require_checkpoint", meanwhile)
    ship(state, str(place))
    one = only(place, state)
    assert (one.found.ok, one.found.removed) == (True, done[0]), one.found.breaks


def test_a_segment_that_is_gone_here_without_retention_is_not_blamed_on_the_store(state: Path, store: Path) -> None:
    (state / "records/decisions.000002.jsonl").unlink()
    with refused(RecordError, "engine.record_broken"):
        ship(state, str(store))


def test_a_chain_is_restored_from_the_store_as_the_documentation_says(state: Path, place: Path, tmp_path: Path) -> None:
    retain(state)
    write(state, 60, 61)
    ship(state, str(place))
    there, back = chain(str(place)), tmp_path / "back"
    for folder in ("records", "checkpoints", "keys"):
        (back / folder).mkdir(parents=True)
    for kept in (KEY, "installation.json"):
        shutil.copy(state / kept, back / kept)
    statement = json.loads(there["chain.json"])
    events = {int(name.split(".")[-2].split("-")[0]): data for name, data in there.items() if "source_events" in name}
    (back / "records/source_events.jsonl").write_bytes(b"".join(events[start] for start in sorted(events)))
    for name, data in there.items():
        if "decisions" in name:
            number = statement["checkpoint"]["segment"]
            own = f"decisions.{number:06d}.jsonl" if name.startswith("open/") else name
            (back / "records" / own).write_bytes(data)
    (back / "checkpoints/decisions.json").write_bytes(canonical(statement["checkpoint"]))
    (back / "checkpoints/anchor.json").write_bytes(canonical(statement["anchor"]))
    found = verify(back)
    assert (found.ok, found.head) == (True, verify(state).head)


def test_one_process_at_a_time_ships_a_chain(state: Path, place: Path) -> None:
    with closing(Storage(state)) as other:
        other.lock("checkpoints/shipping.lock", 0.0)
        with refused(RecordError, "engine.record_locked"):
            ship(state, str(place))
    ship(state, str(place))
    assert only(place, state).found.ok


SHIPPERS = """
import os, signal, sys
from pathlib import Path
from engine.errors import EngineError
from engine.record import objects, shipping, storage, stored

def dying(step):
    left = [step]

    def before(half):
        left[0] -= 1
        if left[0] == 0:
            half()
            os.kill(os.getpid(), signal.SIGKILL)

    put, remove, write = objects.ObjectStore.put, objects.ObjectStore.remove, shipping.write_file
    move = objects.sync_folder

    def cut(self, name, source, size):
        before(lambda: put(self, name, source, size // 2))
        put(self, name, source, size)

    def removed(self, name):
        before(lambda: None)
        remove(self, name)

    def written(*what):
        before(lambda: None)
        write(*what)

    def moved(folder):
        before(lambda: None)
        move(folder)

    objects.ObjectStore.put, objects.ObjectStore.remove, shipping.write_file = cut, removed, written
    objects.sync_folder = moved

for line in sys.stdin:
    state, url, step = line.split()
    child = os.fork()
    if child == 0:
        if int(step):
            dying(int(step))
        try:
            shipping.ship(Path(state), url)
        except EngineError as error:
            os.write(1, f"{error.code}\\n".encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.write(1, b"killed\\n" if os.WIFSIGNALED(status) else b"ended\\n")
"""


@pytest.mark.parametrize("earlier", [False, True])
def test_a_shipment_that_is_killed_at_any_moment_is_continued(state: Path, tmp_path: Path, *, earlier: bool) -> None:
    if earlier:
        ship(state, str(tmp_path / "base"))
        write(state, 60, 61)
    step, answer = 0, "killed"
    with python(SHIPPERS) as process:
        while answer == "killed":
            step += 1
            own, store = tmp_path / f"state-{step}", tmp_path / f"store-{step}"
            shutil.copytree(state, own)
            if earlier:
                shutil.copytree(tmp_path / "base", store)
                moved(own, store)
            send_line(process, f"{own} file://{store} {step}")
            answer = said(process)
            if answer == "killed":
                check_interrupted(own, store, earlier=earlier)
            ship(own, str(store))
            one = only(store, own)
            assert (one.found.ok, one.found.records) == (True, 120 if earlier else 60), step
            shutil.rmtree(own)
            shutil.rmtree(store)
    assert step > 15


def check_interrupted(own: Path, store: Path, *, earlier: bool) -> None:
    """After a kill, what was shipped before verifies; what nothing vouches for yet is not called intact."""
    try:
        one = only(store, own)
    except RecordError:
        assert not earlier
        return
    kinds = [str(broken.kind) for broken in one.found.breaks]
    assert kinds == [] or (kinds == ["checkpoint_missing"] and not earlier), kinds
    assert one.found.records in ({60, 120} if earlier else {0, 60})


def moved(state: Path, store: Path) -> None:
    """The same state, shipped to a copy of its store."""
    data = json.loads((state / RECEIPT).read_bytes())
    fields = {name: value for name, value in data.items() if name not in {"time", "key", "mac"}}
    place = f"file://{store}"
    (state / RECEIPT).write_bytes(signed_statement({**fields, "url": place}, identity(state), data["time"]))
    (state / SHIPPING).write_text(json.dumps({"url": place}), encoding="utf-8")


def test_shippers_at_once_and_a_writing_engine_leave_a_store_that_verifies(state: Path, place: Path) -> None:
    with open_log(state, segment_bytes=SEGMENT) as log, python(SHIPPERS) as one, python(SHIPPERS) as two:
        for number in range(61, 161):
            log.append(decision(number))
            if number % 10 == 0:
                log.vouch()
                send_line(one, f"{state} file://{place} 0")
                send_line(two, f"{state} file://{place} 0")
                for process in (one, two):
                    while (answer := said(process)) != "ended":
                        assert answer == "engine.record_locked"
                found = only(place, state)
                assert (found.found.ok, found.found.records) == (True, number), found.found.breaks
    ship(state, str(place))
    assert only(place, state).found.records == 160


@pytest.mark.parametrize("below", ["", "records", "records/deep", "new/folder"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_store_inside_the_state_folder_is_refused(state: Path, tmp_path: Path, below: str, *, linked: bool) -> None:
    place = state
    if linked:
        place = tmp_path / "link"
        place.symlink_to(state)
    before = sorted(state.rglob("*"))
    with fails(GatherError, "is inside the state folder"):
        ship(state, f"file://{place / below}")
    assert sorted(state.rglob("*")) == before


def test_a_store_around_the_state_folder_is_refused(state: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(state.parent)
    for around in (state.parent, tmp_path / "link", state.parent.parent):
        with fails(GatherError, "contains the state folder"):
            ship(state, str(around))


def test_a_store_in_the_linked_folder_of_a_chain_is_refused(state: Path, tmp_path: Path) -> None:
    folder = chain_folder(state, 2)
    write(folder, 20)
    (folder / "records").rename(tmp_path / "volume")
    (folder / "records").symlink_to(tmp_path / "volume")
    with fails(GatherError, "is inside the state folder"):
        ship(state, str(tmp_path / "volume"))
    ship(state, str(tmp_path / "state-2"))  # beside it, with a name that begins the same


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("nothing://bucket/folder", "is not a URL of a store that fsspec knows"),
        ("gs://bucket/folder", "no package for `gs://bucket/folder` is installed"),
        ("", "names no folder and no bucket"),
        ("memory://records", "keeps nothing"),
        ("simplecache::file:///folder", "has credentials, a query or several protocols"),
        ("http://store/folder?signature=abc", "has credentials, a query or several protocols"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with fails(GatherError, told):
        ship(state, place)
    assert not (state / SHIPPING).exists()


def test_a_url_with_credentials_is_refused_and_not_repeated(state: Path) -> None:
    with pytest.raises(GatherError) as caught:
        ship(state, "s3://" + "AKIA1:hunter2" + "@bucket/folder")
    assert "hunter2" not in f"{caught.value}{caught.value.remedy}"


def test_a_missing_fsspec_names_the_extra(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(GatherError) as caught:
        ship(state, "file:///folder")
    assert caught.value.remedy == install_extra("ship")


def test_a_store_that_cannot_be_reached_changes_nothing_and_tells_no_secret(state: Path) -> None:
    class Down(fsspec.AbstractFileSystem):  # type: ignore[misc,name-defined]
        protocol = "down"

        def ls(self, path: str, **_: Any) -> Any:  # noqa: ARG002  (no path is reached)
            raise ConnectionError("no route to host with sk-proj-0a1b2c3d4e5f6g7h8i9j")

    fsspec.register_implementation("down", Down)
    for act in (lambda: ship(state, "down://bucket/records"), lambda: found_at("down://bucket/records", state)):
        with pytest.raises(RecordError) as caught:
            act()
        told = caught.value.one_line()
        assert "ConnectionError: no route to host" in told
        assert "sk-proj" not in told
        assert caught.value.exit == 4
    assert not (state / SHIPPING).exists()
    assert not (state / RECEIPT).exists()

"""Chains: who gets which one, what their faults mean for the others, and how they are verified and read as one."""

from __future__ import annotations

import csv
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli.record.commands import app
from engine.errors import RecordError
from engine.model import Mode
from engine.record import chains
from engine.record.chain import Entry
from engine.record.chains import chain_folder, chain_folders, claim, held_chains
from engine.record.checkpoint import read_identity
from engine.record.export import cloudevents, csv_rows
from engine.record.heads import Heads
from engine.record.layout import CHECKPOINT, DECISIONS, INSTALLATION, LOCK, RECORDS
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, Line, _merged, entries, lines, newest, select
from engine.record.retention import last_policy
from engine.record.standing import StandingLog
from engine.record.storage import Storage
from engine.record.verify_chains import verify_chains
from engine.state import open_store
from tests.expect import refused
from tests.record.samples import NoState, clock, decision, event, open_log
from tests.threads import at_once

THREE = (1, 2, 3)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def three(state: Path) -> Path:
    """Three chains, of which the state remembers the heads; decision n is at n seconds and in chain (n - 1) % 3 + 1."""
    with closing(open_store(state)) as store, ExitStack() as stack:
        logs = [standing(state, stack, store) for _ in THREE]
        for number in range(1, 10):
            logs[(number - 1) % 3].append(at(number), (event(number),) if number == 5 else ())
    return state


def standing(state: Path, stack: ExitStack, heads: Heads | None = None) -> StandingLog:
    return stack.enter_context(closing(StandingLog(state, lambda: heads or NoState(), clock=clock)))


def at(number: int, mode: Mode = Mode.CHECK) -> DecisionRecord:
    return decision(number, mode=mode).model_copy(update={"time": f"2026-11-21T00:00:{number:02d}.000000Z"})


def write_at(folder: Path, *numbers: int) -> None:
    with open_log(folder) as log:
        for number in numbers:
            log.append(at(number))


def number(found: object) -> int:
    assert isinstance(found, Entry)
    assert isinstance(found.body, DecisionRecord)
    return int(found.body.decision_id, 16)


def heads(state: Path) -> dict[int, dict[str, object]]:
    with closing(open_store(state)) as store:
        return {chain: dict(known) for chain, known in store.record_heads().items()}


def breaks(state: Path, against: bytes | None = None) -> list[tuple[str, str]]:
    with closing(open_store(state)) as store:
        found = verify_chains(state, store.record_heads(), against)
    return [(one.kind.value, one.file) for chain in found.values() for one in chain.breaks]


# who gets which chain


def test_each_engine_has_a_chain_and_the_first_free_one_is_taken_again(state: Path) -> None:
    with ExitStack() as stack:
        logs = [standing(state, stack) for _ in THREE]
        assert [log.chain for log in logs] == [1, 2, 3]
        assert held_chains(state) == [1, 2, 3]
        logs[1].close()
        assert held_chains(state) == [1, 3]
        assert standing(state, stack).chain == 2
    assert held_chains(state) == []
    assert list(chain_folders(state).values()) == [state, state / "chains/002", state / "chains/003"]
    installations = {read_identity(Storage(folder)) for folder in chain_folders(state).values()}
    assert len(installations) == 3


def test_the_last_chain_is_the_last(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_CHAINS", 2)
    with closing(claim(state)[1]), closing(claim(state)[1]), refused(RecordError, "engine.record_locked"):
        claim(state)


def test_chains_up_to_the_last_number_are_listed(state: Path) -> None:
    (state / "chains/064").mkdir(parents=True)
    assert list(chain_folders(state)) == list(range(1, 65))


def test_a_chain_whose_first_start_was_interrupted_is_started_again(state: Path) -> None:
    with closing(claim(state)[1]):
        (state / "chains/002").mkdir(parents=True)
        chain, storage = claim(state)
        storage.close()
    assert chain == 2


def test_engines_started_concurrently_get_a_chain_each(state: Path) -> None:
    claimed = at_once([lambda: claim(state)] * 16)
    assert sorted(chain for chain, _ in claimed) == list(range(1, 17))
    for _, storage in claimed:
        storage.close()


def test_a_reopened_record_stays_on_its_chain(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.record.standing._TICK_SECONDS", 3600.0)
    monkeypatch.setattr("engine.record.standing._REST", 0)
    with ExitStack() as stack:
        first, second = standing(state, stack), standing(state, stack)
        assert second.append(at(1)) == 1
        shutil.move(state / "chains/002" / CHECKPOINT, state / "aside")
        with pytest.raises(RecordError):
            second.append(at(2))
        first.close()
        second._tick()
        assert (second.chain, second.usable) == (2, False)
        shutil.move(state / "aside", state / "chains/002" / CHECKPOINT)
        second._tick()
        second.append(at(3))
    assert [(found.chain, number(found)) for found in select(state, Filter(point="source"), 9).entries] == [
        (2, 1),
        (2, 3),
    ]


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "line added": (lambda chain: add(chain / DECISIONS, b"no record\n"), "engine.record_broken"),
    "checkpoint gone": (lambda chain: (chain / CHECKPOINT).unlink(), "engine.record_broken"),
    "installation gone": (lambda chain: (chain / INSTALLATION).unlink(), "engine.record_rolled_back"),
    "record gone": (lambda chain: shutil.rmtree(chain / RECORDS), "engine.record_rolled_back"),
    "lock is a folder": (lambda chain: replaced(chain / LOCK, Path.mkdir), "engine.record_unavailable"),
    "lock is a link": (
        lambda chain: replaced(chain / LOCK, lambda lock: lock.symlink_to("x")),
        "engine.record_unavailable",
    ),
}


def add(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def replaced(path: Path, put: Callable[[Path], None]) -> None:
    path.unlink()
    put(path)


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"contacts-", b"Contacts-", 1))


@pytest.mark.parametrize("chain", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_an_unusable_chain_is_not_replaced_by_a_new_one(three: Path, name: str, chain: int) -> None:
    spoil, code = FAULTS[name]
    with closing(open_store(three)) as store, ExitStack() as stack:
        if chain == 2:
            standing(three, stack, store)
        spoil(chain_folder(three, chain))
        log = standing(three, stack, store)
        assert not log.usable
        with refused(RecordError, code):
            log.append(at(20))
    assert len(chain_folders(three)) == 3


def test_a_deleted_chain_is_not_recreated(three: Path) -> None:
    shutil.rmtree(three / "chains/003")
    with closing(open_store(three)) as store, ExitStack() as stack:
        logs = [standing(three, stack, store) for _ in THREE]
        assert [log.usable for log in logs] == [True, True, False]
        with pytest.raises(RecordError, match="rolled back or replaced"):
            logs[2].append(at(20))
    assert breaks(three) == [("rolled_back", "chains/003/installation.json")]


@pytest.mark.parametrize("remembered", [True, False])
def test_a_gap_in_the_chain_numbers_is_reported_and_not_filled(three: Path, *, remembered: bool) -> None:
    shutil.rmtree(three / "chains/002")
    if not remembered:
        (three / "state.sqlite3").unlink()
    with closing(claim(three)[1]), refused(RecordError, "engine.record_rolled_back"):
        claim(three)
    assert not (three / "chains/002").exists()
    assert breaks(three) == [("rolled_back", "chains/002/installation.json" if remembered else "chains/002/records")]


def test_a_missing_first_chain_is_not_recreated_beside_others(three: Path) -> None:
    for name in (RECORDS, "checkpoints", "keys"):
        shutil.rmtree(three / name)
    for name in (INSTALLATION, "state.sqlite3"):
        (three / name).unlink()
    with refused(RecordError, "engine.record_rolled_back"):
        claim(three)
    assert breaks(three) == [("rolled_back", "records")]


def test_folders_without_a_chain_number_are_ignored(three: Path) -> None:
    for name in ("1", "02", "0004", "000", "001", "065", "002.bak", "notes"):
        (three / "chains" / name).mkdir()
    assert list(chain_folders(three)) == [1, 2, 3]
    assert breaks(three) == []


class Full(Storage):
    """A disk on which chain 1 has no room."""

    def append(self, path: str, data: bytes) -> None:
        if path == DECISIONS and self.place.endswith("/state"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(path, data)


def test_a_full_disk_denies_on_its_chain_only(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "Storage", Full)
    with ExitStack() as stack:
        first, second = standing(state, stack), standing(state, stack)
        with pytest.raises(RecordError, match="no space left on device"):
            first.append(at(1))
        assert second.append(at(2)) == 1
        assert standing(state, stack).chain == 3  # the first one is still held
    assert [number(found) for found in entries(state, Filter())] == [2]
    assert breaks(state) == []


# verified as one


def test_the_heads_of_all_chains_are_remembered_and_compared(three: Path) -> None:
    assert sorted(heads(three)) == [1, 2, 3]
    assert breaks(three) == []
    shutil.copytree(three / "chains/002", three.parent / "old")
    with closing(open_store(three)) as store, ExitStack() as stack:
        logs = [standing(three, stack, store) for _ in THREE]
        logs[1].append(at(20))
    shutil.rmtree(three / "chains/002")
    shutil.copytree(three.parent / "old", three / "chains/002")
    assert breaks(three) == [("rolled_back", "chains/002/records/decisions.000001.jsonl")]


def test_chains_that_changed_places_are_found(three: Path) -> None:
    (three / "chains/002").rename(three / "chains/x")
    (three / "chains/003").rename(three / "chains/002")
    (three / "chains/x").rename(three / "chains/003")
    assert breaks(three) == [("rolled_back", f"chains/00{n}/installation.json") for n in (2, 3)]


def test_tampering_is_found_in_its_chain(three: Path) -> None:
    edit(three / "chains/002" / DECISIONS)
    told = CliRunner().invoke(app, ["verify", "--state", str(three), "--format", "json"])
    found = json.loads(told.stdout)
    (broken,) = found["breaks"]
    assert (told.exit_code, found["ok"], found["repairable"]) == (4, False, False)
    assert (broken["chain"], broken["file"]) == (2, "chains/002/records/decisions.000001.jsonl")
    assert [chain["ok"] for chain in found["chains"]] == [True, False, True]
    text = CliRunner().invoke(app, ["verify", "--state", str(three)]).stdout
    assert "chain 2: record BROKEN" in text
    assert "chains/002/records/decisions.000001.jsonl:1: " in text
    assert "3 chains, not intact: 2: " in text


def test_all_chains_are_counted(three: Path) -> None:
    told = CliRunner().invoke(app, ["verify", "--state", str(three), "--format", "json"])
    found = json.loads(told.stdout)
    assert (told.exit_code, found["ok"], found["records"], found["source_events"]) == (0, True, 9, 1)
    assert [(chain["chain"], chain["records"]) for chain in found["chains"]] == [(1, 3), (2, 3), (3, 3)]
    text = CliRunner().invoke(app, ["verify", "--state", str(three)]).stdout
    assert f"3 chains, all intact: 9 records, {found['bytes']:,} bytes" in text


def test_a_torn_tail_of_one_chain_can_be_repaired(three: Path) -> None:
    add(three / "chains/002" / DECISIONS, b'{"seq":')
    assert CliRunner().invoke(app, ["verify", "--state", str(three)]).exit_code == 1
    with ExitStack() as stack:
        for _ in THREE:
            standing(three, stack)
    assert CliRunner().invoke(app, ["verify", "--state", str(three)]).exit_code == 0


def test_a_kept_checkpoint_is_compared_with_the_chain_that_signed_it(three: Path) -> None:
    kept = (three / "chains/002" / CHECKPOINT).read_bytes()
    assert breaks(three, kept) == []
    with closing(open_store(three)) as store:
        found = verify_chains(three, store.record_heads(), kept)
    assert [chain.contained for chain in found.values()] == [(3,), (3, 3), (3,)]
    assert breaks(three, kept.replace(b'"seq":3', b'"seq":4')) == [("bad_signature", "--against")]
    assert breaks(three, b"no checkpoint") == [("bad_signature", "--against")]
    shutil.rmtree(three / "chains/003")
    shutil.rmtree(three / "chains/002")
    (three / "state.sqlite3").unlink()
    assert breaks(three) == []  # with the state gone too, nothing here can tell
    assert breaks(three, kept) == [("rolled_back", "--against")]


def test_a_chain_without_a_record_is_not_blamed_for_a_kept_checkpoint(three: Path) -> None:
    kept = (three / "chains/003" / CHECKPOINT).read_bytes()
    (three / "state.sqlite3").unlink()
    for name in ("checkpoints", "keys", INSTALLATION, DECISIONS, "records/source_events.jsonl"):
        path = three / "chains/002" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert breaks(three, kept) == []


# read as one


def test_chains_are_read_in_order_of_time(three: Path) -> None:
    assert [number(found) for found in entries(three, Filter())] == list(range(1, 10))
    assert [number(found) for found in newest(three, Filter())] == list(range(9, 0, -1))
    selection = select(three, Filter(), 4)
    assert [number(found) for found in selection.entries] == [6, 7, 8, 9]
    assert [found.chain for found in selection.entries] == [3, 1, 2, 3]
    assert selection.matching == 9
    places = [str(found.where) for found in lines(three) if isinstance(found, Line)]
    assert places[:2] == ["records/decisions.000001.jsonl:1", "chains/002/records/decisions.000001.jsonl:1"]


def test_a_clock_that_was_set_back_changes_no_order_within_a_chain(state: Path) -> None:
    write_at(state, 1, 9, 2, 10)
    write_at(state / "chains/002", 5, 11)
    assert [number(found) for found in entries(state, Filter())] == [1, 5, 9, 2, 10, 11]
    assert [number(found) for found in newest(state, Filter())] == [11, 10, 5, 2, 9, 1]


def test_an_unreadable_line_is_reported_with_its_chain(three: Path) -> None:
    path = three / "chains/002" / DECISIONS
    add(path, b"no record\n")
    selection = select(three, Filter(), 20)
    assert len(selection.entries) == 9
    assert [str(place) for place in selection.unreadable] == ["chains/002/records/decisions.000001.jsonl:4"]


def test_show_and_export_name_the_chain(three: Path) -> None:
    one = ["show", "--state", str(three), "--decision-id", f"{5:032x}"]
    assert "line 2 of chain 2" in CliRunner().invoke(app, one).stdout
    rows = list(csv.DictReader("".join(str(row) for row in csv_rows(three, Filter())).splitlines()))
    assert [(row["chain"], row["seq"]) for row in rows[:4]] == [("1", "1"), ("2", "1"), ("3", "1"), ("1", "2")]
    events = [json.loads(str(line)) for line in cloudevents(three, Filter())]
    assert len({one["source"] for one in events}) == 3
    assert len({one["id"] for one in events}) == 9
    assert [one["source"] for one in events[:3]] == [one["source"] for one in events[3:6]]


def test_the_last_policy_is_looked_up_in_all_chains(three: Path) -> None:
    assert last_policy(three) is None
    with open_log(three / "chains/003") as log:
        log.append(at(30, Mode.ENFORCE))
        log.append(at(31, Mode.ENFORCE).model_copy(update={"policy": None}))  # OPA did not answer
    assert last_policy(three) == at(30).policy


def test_one_line_of_each_chain_is_in_memory() -> None:
    pulled = 0

    def endless() -> Iterator[Entry]:
        nonlocal pulled
        while True:
            pulled += 1
            yield Entry(1, "", at(1))

    merged = _merged(endless() for _ in THREE)
    for _ in range(100):
        next(merged)
    assert pulled <= 103


def test_a_lock_probed_by_a_reader_costs_no_decision(state: Path) -> None:
    """A look at the lock shares it for a moment: an engine that starts just then takes the next chain."""
    claim(state)[1].close()
    with (state / LOCK).open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        chain, storage = claim(state)
        storage.close()
    assert chain == 2

"""A record removed, cut, rolled back or cannot be written: nothing is allowed, nothing is taken, it recovers."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest

from engine.engine import Engine
from engine.errors import RecordError, StateError
from engine.flow import Answer, Context
from engine.model import Caller, Via
from engine.record.chain import Position
from engine.record.layout import CHECKPOINT, CHECKPOINTS, DECISIONS, EVENTS, INSTALLATION, KEY, LOCK, RECORDS
from engine.record.log import RecordLog
from engine.record.standing import StandingLog
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.settings import Settings
from engine.state import open_store
from tests.api.serving import ALLOWED, serving
from tests.command import Command, decisions, lines
from tests.conftest import BUNDLES, case
from tests.expect import codes, there
from tests.path.test_budgets import ceiling
from tests.processes import limited, python, said, until
from tests.record.samples import NoState, clock, decision

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
REQUEST = {"path": str(BUNDLES / "offline_fixture"), "digest": None}


@contextmanager
def opened(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, now=lambda: MOMENT) as engine:
        yield engine


def aside(path: Path) -> Callable[[], None]:
    """Rename; gives the way back."""
    other = path.with_name(f"{path.name}.aside")
    path.rename(other)

    def back() -> None:
        if path.is_dir():
            shutil.rmtree(path)
        other.rename(path)

    return back


def replaced(path: Path) -> Callable[[], None]:
    back = aside(path)
    shutil.copy(path.with_name(f"{path.name}.aside"), path)
    return back


def truncated(path: Path) -> Callable[[], None]:
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 10)

    def back() -> None:
        path.write_bytes(whole)

    return back


FAULTS: dict[str, Callable[[Path], Callable[[], None]]] = {
    "segment-renamed": lambda state: aside(state / DECISIONS),
    "segment-replaced-by-a-copy": lambda state: replaced(state / DECISIONS),
    "segment-truncated": lambda state: truncated(state / DECISIONS),
    "source-events-renamed": lambda state: aside(state / EVENTS),
    "records-folder-renamed": lambda state: aside(state / RECORDS),
    "checkpoint-renamed": lambda state: aside(state / CHECKPOINT),
    "checkpoint-truncated": lambda state: truncated(state / CHECKPOINT),
    "checkpoints-folder-renamed": lambda state: aside(state / CHECKPOINTS),
    "installation-renamed": lambda state: aside(state / INSTALLATION),
    "key-renamed": lambda state: aside(state / KEY),
    "lock-renamed": lambda state: aside(state / LOCK),
    "state-folder-renamed": aside,
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_or_damaged_record_denies_and_recovers_when_restored(fault: str, settings: Settings) -> None:
    with opened(settings) as engine:
        first = engine.decide("source", REQUEST)
        assert (first.exit, engine.status().record) == (0, True)  # the control
        back = FAULTS[fault](settings.state)
        refused = engine.decide("source", REQUEST)
        assert (refused.exit, codes(refused), refused.result) == (4, ["engine.record_unavailable"], None)
        assert refused.decision.findings[0].remedy
        assert not engine.status().record
        back()
        until(lambda: engine.status().record)
        last = engine.decide("source", REQUEST)
        assert last.exit == 0
    found = verify(settings.state)
    assert found.ok, found.breaks
    there = [one["decision_id"] for one in decisions(settings.state)]
    assert there == [first.decision.decision_id, last.decision.decision_id]


def test_a_removed_record_keeps_denying_and_is_not_recreated(settings: Settings) -> None:
    with opened(settings) as engine:
        assert engine.decide("source", REQUEST).exit == 0
        for path in (settings.state / RECORDS).glob("*.jsonl"):
            path.unlink()
        answers = [engine.decide("source", REQUEST) for _ in range(5)]
        assert {code for one in answers for code in codes(one)} == {"engine.record_unavailable"}
        until(lambda: "reopened" in engine.decide("source", REQUEST).decision.findings[0].requirement)
        assert engine.decide("source", REQUEST).exit == 4
        shutil.rmtree(settings.state)
        answers = [engine.decide("source", REQUEST) for _ in range(5)]
        assert {one.exit for one in answers} == {4}
    assert not settings.state.exists() or not (settings.state / INSTALLATION).exists()


@pytest.mark.full
def test_an_idle_engine_notices_the_loss_of_its_record(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as api:
        assert api.decide("license", ALLOWED).json["outcome"] == "allow"
        assert api.ask("GET", "/ready").status == 200
        back = aside(api.state / DECISIONS)
        until(lambda: api.ask("GET", "/ready").status == 503)
        assert api.ask("GET", "/ready").json["record"] is False
        assert api.ask("GET", "/health").status == 200
        assert api.decide("license", ALLOWED).status == 503
        back()
        until(lambda: api.ask("GET", "/ready").status == 200)
        assert api.decide("license", ALLOWED).json["outcome"] == "allow"
        warned = {line["event"] for line in api.log_lines() if line.get("level") == "warning"}
        assert {"record_failed", "record_recovered"} <= warned
    assert verify(api.state).ok


@pytest.mark.full
def test_a_fault_of_the_record_is_not_shared_by_callers_that_are_not_identified(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, env={"AGENTA_AGENT_RUNNER_TOKEN": "a-shared-token"}) as api:
        back = aside(api.state / DECISIONS)
        until(lambda: api.ask("GET", "/ready").status == 503)
        assert [api.decide("license", ALLOWED).status for _ in range(3)] == [503] * 3
        back()
        until(lambda: api.ask("GET", "/ready").status == 200)
        replies = [api.decide("license", ALLOWED) for _ in range(3)]
        assert [one.status for one in replies] == [401] * 3
        assert api.stop() == 0
    recorded = lines(api.state)
    (again,) = [line for line in recorded if line["kind"] == "replay"]
    (denied,) = {one.json["decision"]["decision_id"] for one in replies}
    assert (again["decision_id"], again["times"]) == (denied, 2)
    assert denied in [line.get("decision_id") for line in recorded if line["kind"] == "decision"]


@pytest.mark.full
def test_a_second_engine_after_a_removed_lock_breaks_no_chain(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setattr("engine.record.standing._TICK_SECONDS", 3600.0)  # the first does not look before it is asked
            first = stack.enter_context(opened(settings))
            told = [first.decide("source", REQUEST)]
        (settings.state / LOCK).unlink()
        second = stack.enter_context(opened(settings))
        told.append(second.decide("source", REQUEST))
        told.append(first.decide("source", REQUEST))
        assert codes(told[-1]) == ["engine.record_unavailable"]
        told.append(second.decide("source", REQUEST))  # finds a line that is not its own, or has cut it already
        until(lambda: second.status().record)
        told.append(second.decide("source", REQUEST))
        assert [told[0].exit, told[1].exit, told[2].exit, told[4].exit] == [0, 0, 4, 0]
    assert verify(settings.state).ok
    answered = [one.decision.decision_id for one in told if one.exit == 0]
    assert [one["decision_id"] for one in decisions(settings.state)] == answered


# a fault that passes


ACCEPTED = case("license", "accepted").case.request
REVIEWED = case("license", "review_required").case.request
PIPELINE = Caller(via=Via.PROCESS, principal="pipeline")
LINE = 600
"""Bytes, fewer than a line of the record has: a file that may grow by these holds a part of the next line."""


def full(state: Path, file: str = DECISIONS) -> AbstractContextManager[None]:
    """No room for another line in this file: a limit on the size of files stands for a full disk."""
    return limited(resource.RLIMIT_FSIZE, (state / file).stat().st_size + LINE)


def grown(settings: Settings) -> Settings:
    """With a record that is by far the largest file, so that a limit on the size of files is met by it alone."""
    with RecordLog.open(Storage(settings.state), lock_seconds=1.0) as log:
        log.append(decision(1, {"point": "source", "filler": ["x" * 1000] * 3000}))
    return settings


def used(state: Path) -> int:
    """Everything that budgets have counted."""
    with closing(sqlite3.connect(state / "state.sqlite3")) as connection:
        return int(connection.execute("SELECT total(used) FROM budgets").fetchone()[0])


def ask(engine: Engine, request: Any = ACCEPTED, mode: str = "enforce", **context: Any) -> Answer:
    asked = Context(caller=PIPELINE, **context)
    if mode == "check":
        return engine.check("license", request, asked)
    return engine.decide("license", request, context=asked)


@pytest.mark.full
def test_after_a_full_disk_writing_resumes_with_an_intact_chain(settings: Settings) -> None:
    with opened(grown(settings)) as engine:
        first = ask(engine)
        assert first.exit == 0
        with full(settings.state):
            refused = [ask(engine) for _ in range(3)]
            assert [codes(one) for one in refused] == [["engine.record_unavailable"]] * 3
            assert not engine.status().record
        until(lambda: engine.status().record)
        last = ask(engine)
        assert last.exit == 0
    found = verify(settings.state)
    assert found.ok, found.breaks
    ids = [one["decision_id"] for one in decisions(settings.state)]
    assert ids[-2:] == [first.decision.decision_id, last.decision.decision_id]
    assert not {one.decision.decision_id for one in refused} & set(ids)
    assert [one["kind"] for one in lines(settings.state)][-2:] == ["recovery", "decision"]


@pytest.mark.full
def test_while_the_disk_is_full_every_refusal_takes_milliseconds(settings: Settings) -> None:
    with opened(grown(settings)) as engine:
        assert ask(engine).exit == 0
        with full(settings.state):
            ask(engine)
            before = time.process_time()
            answers = [ask(engine) for _ in range(50)]
            spent = time.process_time() - before
        assert {one.exit for one in answers} == {4}
    assert spent < 50 * 0.1  # processor time, and a hundred times what it takes


def test_a_decision_that_is_not_recorded_takes_nothing_from_budgets(settings: Settings) -> None:
    own = grown(settings)
    with Engine(own, values=ceiling("all", 2), now=lambda: MOMENT) as engine:
        assert ask(engine).exit == 0
        before = used(own.state)
        with full(own.state):
            assert {ask(engine).exit for _ in range(5)} == {4}
            assert used(own.state) == before
        until(lambda: engine.status().record)
        assert [codes(ask(engine)) for _ in range(2)] == [[], ["budget_exhausted"]]  # the control: it counts


@pytest.mark.full
def test_a_decision_that_is_not_recorded_uses_no_approval_and_names_none(settings: Settings) -> None:
    with opened(grown(settings)) as engine, closing(open_store(settings.state)) as store:
        asked = there(ask(engine, REVIEWED).decision.approval)
        store.resolve(asked.id, "granted", "user:ana", None, int(MOMENT.timestamp()))
        with full(settings.state):
            refused = ask(engine, REVIEWED, approval=asked.id)
            assert (codes(refused), refused.decision.approval) == (["engine.record_unavailable"], None)
            assert [one.state for one in store.approvals(None, 10)] == ["granted"]
            unasked = engine.decide("license", REVIEWED, context=Context(caller=Caller(via=Via.PROCESS, principal="b")))
            assert (codes(unasked), unasked.decision.approval) == (["engine.record_unavailable"], None)
        until(lambda: engine.status().record)
        assert ask(engine, REVIEWED, approval=asked.id).decision.outcome == "allow"
        assert sorted(one.state for one in store.approvals(None, 10)) == ["requested", "used"]


@pytest.mark.full
def test_an_approval_request_also_reported_by_a_recorded_decision_is_kept(settings: Settings) -> None:
    with opened(grown(settings)) as engine, closing(open_store(settings.state)) as store:
        engine._now = lambda: MOMENT
        asked = there(ask(engine, REVIEWED).decision.approval)
        engine._now = lambda: MOMENT + timedelta(seconds=1)
        with full(settings.state):
            assert ask(engine, REVIEWED).exit == 4
        assert [one.id for one in store.approvals("requested", 10)] == [asked.id]


@pytest.mark.full
def test_an_idempotency_key_of_a_decision_that_is_not_recorded_is_free_again(settings: Settings) -> None:
    with opened(grown(settings)) as engine:
        assert ask(engine).exit == 0
        with full(settings.state):
            assert ask(engine, idempotency_key="k-1").exit == 4
        until(lambda: engine.status().record)
        assert ask(engine, idempotency_key="k-1").exit == 0


class Failing(Storage):
    """A disk whose sync of the record fails while `failing`, though all bytes can be read back."""

    failing: ClassVar[bool] = False
    failed: ClassVar[int] = 0

    def sync(self, path: str) -> None:
        if self.failing and path == DECISIONS:
            type(self).failed += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(path)


@pytest.mark.full
def test_lines_that_were_written_and_never_answered_are_cut_after_a_failed_sync(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.record.chains.Storage", Failing)
    with opened(settings) as engine:
        first = ask(engine)
        monkeypatch.setattr(Failing, "failing", True)
        refused = ask(engine)
        assert codes(refused) == ["engine.record_unavailable"]
        whole = (settings.state / DECISIONS).read_text(encoding="utf-8")
        assert refused.decision.decision_id in whole  # it stands there, and nobody was told so
        monkeypatch.setattr(Failing, "failed", 0)
        until(lambda: Failing.failed >= 2)  # the attempt failed, and the lock is kept
        monkeypatch.setattr(Failing, "failing", False)
        until(lambda: engine.status().record)
        last = ask(engine)
    assert verify(settings.state).ok
    there = [one["decision_id"] for one in decisions(settings.state)]
    assert there == [first.decision.decision_id, last.decision.decision_id]
    assert any((settings.state / RECORDS / "cut").iterdir())


# the state beside the record


@pytest.mark.full
def test_a_state_is_reopened_after_a_disk_failure_with_its_counts(settings: Settings) -> None:
    with Engine(settings, values=ceiling("all", 3), now=lambda: MOMENT) as engine:
        assert ask(engine).exit == 0
        with full(settings.state, "state.sqlite3-wal"):
            assert codes(ask(engine)) == ["engine.state_unavailable"]
        until(lambda: ask(engine, mode="check").exit == 0)
        assert [codes(ask(engine)) for _ in range(3)] == [[], [], ["budget_exhausted"]]


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ["state.sqlite3", "state.sqlite3-wal"])
def test_a_moved_state_denies_and_keeps_its_counts_when_restored(name: str, settings: Settings) -> None:
    with Engine(settings, values=ceiling("all", 2), now=lambda: MOMENT) as engine:
        assert ask(engine).exit == 0
        back = aside(settings.state / name)
        assert codes(ask(engine)) == ["engine.state_unavailable"]
        until(lambda: not engine.status().state)
        back()
        until(lambda: engine.status().state)
        assert [codes(ask(engine)) for _ in range(2)] == [[], ["budget_exhausted"]]


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(state: Path) -> Iterator[None]:
    """The state file locked by another process."""
    with python(HOLD, state / "state.sqlite3") as process:
        assert said(process) == "held"
        yield


@pytest.mark.full
def test_neither_health_nor_ready_nor_metrics_waits_for_a_locked_state(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as api, ThreadPoolExecutor(12) as pool:
        assert api.decide("license", ALLOWED).json["outcome"] == "allow"
        assert api.ask("GET", "/ready").status == 200
        with held(api.state):
            waiting = [pool.submit(api.decide, "license", ALLOWED, Idempotency_Key=f"k-{one}") for one in range(12)]
            until(lambda: api.metric("engine_decisions_in_flight") + api.metric("engine_decisions_waiting") == 12)
            until(lambda: api.ask("GET", "/ready").json["state"] is False)
            assert api.ask("GET", "/health", control=True).json["state"] is False
            assert api.metric("engine_state_up") == 0
            assert not all(one.done() for one in waiting)  # they wait for the state, and nothing waits for them
        until(lambda: api.ask("GET", "/ready").status == 200)
        assert {one.result().status for one in waiting} <= {200, 503}


# rolled back


def copied(state: Path, to: Path, *names: str) -> None:
    for name in names:
        if (state / name).is_dir():
            shutil.copytree(state / name, to / name, dirs_exist_ok=True)
        else:
            to.mkdir(exist_ok=True)
            shutil.copy(state / name, to / name)


def put_back(kept: Path, state: Path, *names: str) -> None:
    for name in names:
        if (state / name).is_dir():
            shutil.rmtree(state / name)
    copied(kept, state, *names)


@pytest.mark.full
def test_a_record_rolled_back_together_with_its_checkpoints_is_refused(settings: Settings, tmp_path: Path) -> None:
    files = (RECORDS, CHECKPOINTS)
    with opened(settings) as engine:
        ask(engine)
    copied(settings.state, tmp_path / "old", *files)
    with opened(settings) as engine:
        ask(engine)
    copied(settings.state, tmp_path / "new", *files)
    put_back(tmp_path / "old", settings.state, *files)
    assert verify(settings.state).ok  # by itself it is whole
    with opened(settings) as engine:
        refused = ask(engine)
    assert (refused.exit, codes(refused)) == (4, ["engine.record_rolled_back"])
    put_back(tmp_path / "new", settings.state, *files)
    with opened(settings) as engine:
        assert ask(engine).exit == 0


@pytest.mark.full
def test_a_record_that_was_removed_with_all_that_belongs_to_it_is_refused_until_the_state_is_moved_too(
    settings: Settings, tmp_path: Path
) -> None:
    with opened(settings) as engine:
        ask(engine)
    for name in (RECORDS, CHECKPOINTS, "keys"):
        shutil.rmtree(settings.state / name)
    (settings.state / INSTALLATION).unlink()
    with opened(settings) as engine:
        assert codes(ask(engine)) == ["engine.record_rolled_back"]
    settings.state.rename(tmp_path / "aside")
    with opened(settings) as engine:
        assert ask(engine).exit == 0


@pytest.mark.full
def test_lines_of_a_killed_engine_are_soon_covered_by_a_checkpoint(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as api:
        for _ in range(3):
            assert api.decide("license", ALLOWED).json["outcome"] == "allow"
        log = api.state / DECISIONS
        count = log.read_bytes().count(b"\n")
        until(lambda: json.loads((api.state / CHECKPOINT).read_bytes())["seq"] == count)
        api.process.kill()
        api.process.wait()
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 1])
    assert [one.kind.value for one in verify(api.state).breaks] == ["before_checkpoint"]
    log.write_bytes(whole)
    assert verify(api.state).ok


@pytest.mark.full
def test_the_command_compares_with_the_state_and_with_a_checkpoint_that_was_kept_elsewhere(
    tmp_path: Path, cache: Path
) -> None:
    command = Command.of(tmp_path, cache)
    assert command.check(BUNDLES / "offline_fixture").code == 0
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    shutil.copy(command.state / CHECKPOINT, first)
    shutil.copytree(command.state, tmp_path / "old")
    assert command.check(BUNDLES / "offline_fixture").code == 0
    shutil.copy(command.state / CHECKPOINT, second)
    for copy in (first, second):
        run = command("record", "verify", "--against", copy)
        assert (run.code, run.stdout.count("contains    line")) == (0, 2)
    state = command.state / "state.sqlite3"
    shutil.move(state, tmp_path / "state.sqlite3")
    put_back(tmp_path / "old", command.state, RECORDS, CHECKPOINTS, "state.sqlite3")
    assert command("record", "verify").code == 0  # with the state rolled back too, nothing here can tell
    assert command("record", "verify", "--against", first).code == 0
    run = command("record", "verify", "--against", second, "--format", "json")
    assert (run.code, [one["kind"] for one in run.json["breaks"]]) == (4, ["rolled_back"])
    shutil.move(tmp_path / "state.sqlite3", state)
    run = command("record", "verify", "--format", "json")
    assert (run.code, [one["kind"] for one in run.json["breaks"]]) == (4, ["rolled_back"])
    first.write_bytes(first.read_bytes().replace(b'"seq":1', b'"seq":2'))
    run = command("record", "verify", "--against", first)
    assert (run.code, "--against:1: bad_signature" in run.stdout) == (4, True)
    assert command("record", "verify", "--against", tmp_path / "nothing").code == 2
    assert "is not a checkpoint" in command("record", "verify", "--against", "README.md").stderr


class Forgetful(NoState):
    """A state that cannot be read at first, and then remembers what the test says."""

    def __init__(self) -> None:
        self.ends: dict[str, Position] | None = None

    def record_heads(self) -> dict[int, dict[str, Position]]:
        if self.ends is None:
            raise StateError("locked", remedy="wait")
        return {1: self.ends}

    def remember_head(self, chain: int, installation: str, end: Position) -> None:
        self.record_heads()[chain][installation] = end


@pytest.mark.full
@pytest.mark.parametrize("seq", [1, 9])
def test_a_state_that_could_not_be_read_is_compared_with_as_soon_as_it_can(seq: int, tmp_path: Path) -> None:
    heads = Forgetful()
    log = StandingLog(tmp_path / "state", lambda: heads, clock=clock)
    try:
        assert log.append(decision(1)) == 1
        whole = (tmp_path / "state" / DECISIONS).read_bytes()
        end = Position(1, seq, len(whole) * seq, seq, sha256(whole[:-1]).hexdigest())
        installation = json.loads((tmp_path / "state" / INSTALLATION).read_bytes())["id"]
        heads.ends = {installation: end}
        if seq == 1:
            log.append(decision(2))
            until(lambda: heads.record_heads()[1][installation].seq == 2)
            assert log.usable
        else:
            until(lambda: not log.usable)
            with pytest.raises(RecordError):
                log.append(decision(2))
    finally:
        with suppress(RecordError):
            log.close()

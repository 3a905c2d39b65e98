"""A record that outlives its faults, looked at one tick at a time: when it is opened again, cut, vouched for, told of.

tests/record/test_faults.py asks the same of whole engines, whose thread ticks by itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.errors import RecordError, StateError
from engine.record import chains, standing
from engine.record.chain import Position
from engine.record.layout import CHECKPOINT, DECISIONS, LOCK
from engine.record.retention import Retained, RetentionOrder
from engine.record.standing import StandingLog
from engine.record.storage import Storage
from engine.record.verify import verify
from tests.processes import in_child, until
from tests.record.samples import NoState, clock, decision, event, numbers, open_log


class Heads(NoState):
    """A state beside the record; raises `fault` while there is one."""

    def __init__(self) -> None:
        self.ends: dict[str, Position] = {}  # of chain 1
        self.told: list[int] = []
        self.fault: StateError | None = None

    def record_heads(self) -> Mapping[int, Mapping[str, Position]]:
        if self.fault is not None:
            raise self.fault
        return {1: dict(self.ends)}

    def remember_head(self, chain: int, installation: str, end: Position) -> None:
        if self.fault is not None:
            raise self.fault
        if chain == 1:
            self.ends[installation] = end
        self.told.append(end.seq)


class Disk(Storage):
    """A disk whose sync of the record fails with `error`."""

    error: OSError | None = None

    def sync(self, path: str) -> None:
        if path == DECISIONS and self.error is not None:
            raise self.error
        super().sync(path)


Events = list[tuple[str, Mapping[str, Any]]]
Opener = Callable[..., StandingLog]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Opens the record of this test, as often as wanted; it ticks when the test says so, without any rest."""
    monkeypatch.setattr(standing, "_TICK_SECONDS", 3600.0)
    monkeypatch.setattr(standing, "_REST", 0)
    monkeypatch.setattr(chains, "Storage", Disk)
    logs: list[StandingLog] = []

    def open_one(heads: Heads | None = None, events: Events | None = None) -> StandingLog:
        say, state = [] if events is None else events, heads or Heads()
        logs.append(
            StandingLog(
                tmp_path / "state",
                lambda: state,
                clock=clock,
                on_event=lambda name, fields: say.append((name, fields)),
            )
        )
        return logs[-1]

    yield open_one
    monkeypatch.setattr(Disk, "error", None)
    for log in logs:
        log.close()


def fails(monkeypatch: pytest.MonkeyPatch, number: int = errno.EIO) -> None:
    monkeypatch.setattr(Disk, "error", OSError(number, os.strerror(number)))


def works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disk, "error", None)


def test_a_record_with_all_chains_in_use_is_unusable_until_one_is_free(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "MOST_CHAINS", 1)
    events: Events = []
    first, second = opened(), opened(events=events)
    assert first.append(decision(1)) == 1
    second._tick()
    assert (second.usable, second.recovered) == (False, ())
    with pytest.raises(RecordError) as refused:
        second.append(decision(2))
    assert refused.value.code == "engine.record_locked"
    assert refused.value.message == "all 1 chains of this record are in use by engines"
    first.close()
    second._tick()
    assert second.usable
    assert second.append(decision(2)) == 2
    assert [name for name, _ in events] == ["record_failed", "record_recovered"]
    second.close()
    assert verify(tmp_path / "state").ok


def test_an_engine_that_never_had_a_chain_is_closed_like_any_other(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "MOST_CHAINS", 1)
    first, second = opened(), opened()
    second.close()
    with pytest.raises(RecordError, match="are in use by engines"):
        second.append(decision(1))
    assert first.append(decision(1)) == 1


def test_a_record_that_is_closed_says_so(tmp_path: Path, opened: Opener) -> None:
    log = opened()
    log.close()
    with pytest.raises(RecordError, match="the record is closed"):
        log.append(decision(1))
    open_log(tmp_path / "state", lock_seconds=0.0).close()  # and holds nothing


def test_the_torn_tail_cut_at_opening_is_reported(tmp_path: Path, opened: Opener) -> None:
    open_log(tmp_path / "state").close()
    (tmp_path / "state" / DECISIONS).write_bytes(b'{"half')
    assert [one.bytes for one in opened().recovered] == [6]


def test_a_failed_attempt_is_followed_by_a_pause(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_CHAINS", 1)
    first = opened()
    with monkeypatch.context() as patched:
        patched.setattr(standing, "_REST", 1e12)
        second = opened()
    first.close()
    second._tick()
    assert not second.usable


def test_new_lines_get_one_checkpoint_and_one_remembered_head(tmp_path: Path, opened: Opener) -> None:
    heads, events = Heads(), Events()
    log = opened(heads, events)
    own = log.usable_log()
    log._tick()
    assert heads.told == [0]
    log._tick()
    assert heads.told == [0]
    log.append(decision(1))
    log.append(decision(2))
    log._tick()
    log._tick()
    assert heads.told == [0, 2]
    assert b'"seq":2' in (tmp_path / "state" / CHECKPOINT).read_bytes()
    assert (log.usable_log(), events) == (own, [])
    log.append(decision(3))
    log.close()
    assert heads.told == [0, 2, 3]


def test_a_failing_state_is_retried_and_costs_no_decision(opened: Opener) -> None:
    heads = Heads()
    log = opened(heads)
    heads.fault = StateError("locked", remedy="wait")
    log.append(decision(1))
    log._tick()
    assert (log.usable, heads.told) == (True, [])
    heads.fault = None
    log._tick()
    assert (log.usable, heads.told) == (True, [1])


@pytest.mark.parametrize("known", ["nothing", "this record", "a later line", "another record"])
def test_a_state_that_could_not_be_read_when_the_record_was_opened_is_compared_later(
    known: str, opened: Opener
) -> None:
    heads = Heads()
    heads.fault = StateError("locked", remedy="wait")
    log = opened(heads)
    log.append(decision(1))
    log._tick()
    own = log.usable_log()
    end = own.opened.vouched
    later = Position(1, 9, end.size * 9, 9, end.hash)
    heads.ends = {
        "nothing": {},
        "this record": {own.opened.identity.installation: end},
        "a later line": {own.opened.identity.installation: later},
        "another record": {"f" * 32: end},
    }[known]
    heads.fault = None
    log._tick()
    assert log.usable is (known in {"nothing", "this record"})
    if not log.usable:
        with pytest.raises(RecordError):
            log.append(decision(2))
        log._tick()  # opening it again finds the same, and says what it is
        with pytest.raises(RecordError, match="cannot be reopened: the record was rolled back") as refused:
            log.append(decision(2))
        assert refused.value.code == "engine.record_unavailable"


def test_a_line_that_was_never_answered_is_cut_when_the_fault_has_passed(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened()
    assert log.append(decision(1), (event(1),)) == 1
    fails(monkeypatch)
    with pytest.raises(RecordError, match="input/output error"):
        log.append(decision(2), (event(2),))
    log._tick()
    with pytest.raises(RecordError, match="input/output error"):
        log.append(decision(2))
    works(monkeypatch)
    log._tick()
    assert [one.file for one in log.recovered] == ["decisions.000001.jsonl", "source_events.jsonl"]
    log.append(decision(3))
    log.close()
    assert numbers(tmp_path / "state") == [1, 3]
    assert verify(tmp_path / "state").ok


def test_lines_of_an_engine_that_took_over_the_record_are_never_cut(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, state = opened(), tmp_path / "state"
    assert log.append(decision(1)) == 1
    fails(monkeypatch)
    with pytest.raises(RecordError):
        log.append(decision(2))
    log._tick()  # the attempt failed, and the lock is kept
    assert not log.usable
    (state / LOCK).unlink()
    with open_log(state) as other:  # records first what the vain try has cut
        assert other.append(decision(3)) == 3
    works(monkeypatch)
    log._tick()
    assert log.append(decision(4)) == 4
    log.close()
    assert numbers(state) == [1, 3, 4]
    assert verify(state).ok


def test_each_fault_and_its_recovery_are_reported_once(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    events: Events = []
    log = opened(events=events)
    log.append(decision(1))
    fails(monkeypatch)
    with pytest.raises(RecordError):
        log.append(decision(2))
    for _ in range(3):
        log._tick()
    fails(monkeypatch, errno.ENOSPC)
    log._tick()
    works(monkeypatch)
    log._tick()
    log._tick()
    told = [(name, fields.get("code"), fields.get("detail", "").rpartition(": ")[2]) for name, fields in events]
    assert told == [
        ("record_failed", "engine.record_unavailable", "input/output error"),
        ("record_failed", "engine.record_unavailable", "no space left on device"),
        ("record_recovered", None, ""),
    ]
    assert not any("opened again" in fields.get("detail", "") for _, fields in events)  # it is the same fault


def test_a_forked_process_neither_writes_nor_lets_go_when_it_closes(tmp_path: Path, opened: Opener) -> None:
    heads = Heads()
    log = opened(heads)
    log.append(decision(1))

    def closed() -> bool:
        log.close()
        return log.usable and heads.told == []

    assert in_child(closed)
    with pytest.raises(RecordError, match="another engine uses this record"):
        open_log(tmp_path / "state", lock_seconds=0.0)
    assert log.append(decision(2)) == 2


def test_threads_tasks_and_batches_write_one_record_which_its_own_thread_vouches_for(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_TICK_SECONDS", 0.01)
    heads = Heads()
    log = opened(heads)
    assert log.append(decision(1)) == 1
    assert log.append_many([(decision(2), ()), (decision(3), (event(3),))]) == [2, 3]
    assert asyncio.run(log.append_async(decision(4))) == 4
    until(lambda: heads.told[-1:] == [4])
    log.close()
    assert verify(tmp_path / "state").records == 4


def test_an_unexpected_exception_is_a_recoverable_fault(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_TICK_SECONDS", 0.01)
    events, heads = Events(), Heads()

    def known(_: Heads) -> Mapping[str, Position]:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Heads, "record_heads", known)
        log = opened(heads, events)
        with pytest.raises(RecordError, match="a fault inside the engine"):
            log.append(decision(1))
    until(lambda: log.usable)
    assert log.append(decision(1)) == 1
    assert [name for name, _ in events] == ["crash", "record_failed", "record_recovered"]
    assert "test_standing.py" in events[0][1]["stack"]


def test_no_folder_is_made_in_the_place_of_a_record_that_was_removed(tmp_path: Path, opened: Opener) -> None:
    log, state = opened(), tmp_path / "state"
    log.append(decision(1))
    state.rename(tmp_path / "elsewhere")
    log._tick()
    log._tick()
    assert (log.usable, state.exists()) == (False, False)
    (tmp_path / "elsewhere").rename(state)
    log._tick()
    assert log.append(decision(2)) == 2


def test_an_order_is_carried_out_and_one_that_fails_is_tried_once(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: Events = []
    heads = Heads()
    log = opened(heads, events)
    log.append(decision(1))
    log.usable_log().between_batches(lambda writer: writer.rotate())
    good, bad = (
        RetentionOrder(name, 1, int(clock().timestamp()) + days * 86_400, None, None)
        for name, days in (("good", 3), ("bad", 4))
    )
    left, tried = [bad, good], list[str]()
    carry_out = RetentionOrder.carry_out

    def fails_for_one(order: RetentionOrder, *where: Any) -> Retained | None:
        tried.append(order.decision_id)
        if order is bad:
            raise OSError(errno.EACCES, "not permitted")
        return carry_out(order, *where)

    monkeypatch.setattr(RetentionOrder, "carry_out", fails_for_one)
    monkeypatch.setattr(heads, "orders", lambda _: tuple(left), raising=False)
    monkeypatch.setattr(heads, "carried_out", lambda _, id_, __: left.remove(good) if id_ == "good" else None)
    log._tick()
    log._tick()
    assert tried == ["bad", "good"]
    assert (verify(tmp_path / "state").removed, left) == (1, [bad])
    assert [name for name, _ in events] == ["retention_failed"]


def test_without_the_state_nothing_is_removed(opened: Opener, tmp_path: Path) -> None:
    heads = Heads()
    log = opened(heads)
    log.append(decision(1))
    log.usable_log().between_batches(lambda writer: writer.rotate())

    def lost() -> Heads:
        raise StateError("the disk is full", remedy="make room")

    kept = log._heads
    log._heads = lost
    order = RetentionOrder("retained", 1, int(clock().timestamp()) + 3 * 86_400, None, None)
    with pytest.raises(StateError):
        log.retain(order)
    assert verify(tmp_path / "state").removed == 0
    log._heads = kept
    assert log.retain(order)[1] is not None
    assert verify(tmp_path / "state").removed == 1

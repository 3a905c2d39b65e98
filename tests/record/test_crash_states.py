"""Every disk that a crash may leave, and every operation that may fail: nothing acknowledged is ever lost.

The planted bugs at the end are the positive control: the same enumeration finds each of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from engine.errors import RecordError
from engine.record.chain import parse
from engine.record.layout import CHECKPOINT, DECISIONS, EVENTS, KEY
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord
from engine.record.verify import verify_storage
from tests.record.disk import SimulatedDisk, Tree
from tests.record.samples import clock, decision, event

DECISIONS_MADE = 7


def opened(disk: SimulatedDisk) -> RecordLog:
    return RecordLog.open(disk, lock_seconds=1, clock=clock)


@dataclass
class Session:
    """Decisions made on one disk, and what callers were told."""

    disk: SimulatedDisk
    acknowledged: list[str] = field(default_factory=list)
    made: int = 0
    error: RecordError | None = None

    def run(self, count: int = DECISIONS_MADE, *, close: bool = True) -> Session:
        try:
            log = opened(self.disk)
            for _ in range(count):
                self.made += 1
                body = decision(self.made)
                log.append(body, (event(self.made),) * (self.made % 3))
                self.acknowledged.append(body.decision_id)
            if close:
                log.close()
        except RecordError as error:
            self.error = error
        return self


def fault(tree: Tree, acknowledged: list[str]) -> str | None:
    """What is wrong when an engine starts on this disk; None when everything acknowledged is there."""
    disk = SimulatedDisk(tree)
    try:
        opened(disk).close()
    except RecordError as error:
        return f"refused: {error}"
    found = verify_storage(disk)
    if not found.ok:
        return f"does not verify: {found.breaks}"
    lines = (disk.tree()[DECISIONS] or b"").splitlines()
    bodies = [parse(line).body for line in lines]
    there = {body.decision_id for body in bodies if isinstance(body, DecisionRecord)}
    if not set(acknowledged) <= there:
        return "an acknowledged decision is lost"
    claimed = sum(
        body.source_events.bytes for body in bodies if isinstance(body, DecisionRecord) and body.source_events
    )
    if claimed != disk.size(EVENTS):
        return "source events are lost or left over"
    before = disk.tree()
    opened(disk).close()
    return None if disk.tree() == before else "starting again changes the disk"


def state(tree: Tree, acknowledged: list[str]) -> object:
    """Equal for equal disks of which callers were told the same."""
    return (*sorted(tree.items()), *acknowledged)


def same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on ids and keys come in the same order as the last time, and each of them once."""
    monkeypatch.setattr(os, "urandom", random.Random(11).randbytes)  # noqa: S311 (keys of no real record)


def crashes(session: Session, run: Callable[[], object], stride: int = 97) -> Iterator[tuple[Tree, list[str]]]:
    """Every crash state before each step of `run`, and at its end, with what was acknowledged by then."""
    seen: set[object] = set()
    states: list[tuple[Tree, list[str]]] = []

    def collect(disk: SimulatedDisk) -> None:
        for tree in disk.crash_states(stride):
            key = state(tree, session.acknowledged)
            if key not in seen:
                seen.add(key)
                states.append((tree, list(session.acknowledged)))

    session.disk.step = collect
    run()
    collect(session.disk)
    session.disk.step = lambda _: None
    yield from states


def bad_states(session: Session, stride: int, count: int = DECISIONS_MADE) -> tuple[int, list[str]]:
    found = [(tree, fault(tree, told)) for tree, told in crashes(session, lambda: session.run(count), stride)]
    return len(found), [reason for _, reason in found if reason is not None]


def test_no_crash_loses_what_was_acknowledged() -> None:
    total, bad = bad_states(Session(SimulatedDisk()), stride=7)
    assert not bad
    assert total > 1000


@pytest.mark.full
def test_no_crash_loses_what_was_acknowledged_torn_at_every_byte() -> None:
    session = Session(SimulatedDisk())
    found = [fault(tree, told) for tree, told in crashes(session, lambda: session.run(2), stride=1)]
    assert not [reason for reason in found if reason is not None]
    assert len(found) > 2000


def test_no_crash_during_recovery_loses_anything() -> None:
    first = Session(SimulatedDisk())
    unfinished = [
        (tree, told)
        for tree, told in crashes(first, lambda: first.run(4), stride=400)
        if told and not verify_storage(SimulatedDisk(tree)).ok
    ]
    assert len(unfinished) > 5
    for tree, told in unfinished:
        second = Session(SimulatedDisk(tree), list(told), made=50)
        for again, told_again in crashes(second, lambda: second.run(1), stride=300):  # noqa: B023 (used at once)
            assert fault(again, told_again) is None


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_closes_the_log_and_a_restart_goes_on(share: float) -> None:
    steps = Session(SimulatedDisk()).run().disk.steps
    for number in range(1, steps + 1):
        session = Session(SimulatedDisk())
        session.disk.fail = (number, share)
        session.run()
        assert session.error is not None
        assert session.error.code == "engine.record_unavailable"
        session.disk.fail = None
        restarted = Session(session.disk, session.acknowledged, made=50)
        restarted.run(2)
        assert restarted.error is None
        assert fault(session.disk.tree(), restarted.acknowledged) is None


def test_after_a_failed_sync_and_a_restart_no_crash_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may show lines that it will never write; lines after them must not stand on them."""
    judged: set[object] = set()
    for number in range(1, Session(SimulatedDisk()).run(3).disk.steps + 1):
        same_chance(monkeypatch)
        session = Session(SimulatedDisk())
        session.disk.fail = (number, 0.5)
        session.run(3)
        session.disk.fail = None
        session.made = 50
        for tree, told in crashes(session, lambda: session.run(2), stride=500):  # noqa: B023 (used at once)
            assert state(tree, told) in judged or fault(tree, told) is None
            judged.add(state(tree, told))


@pytest.mark.full
def test_after_two_failures_and_two_restarts_no_crash_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: set[object] = set()
    for first in range(1, Session(SimulatedDisk()).run(2).disk.steps + 1, 2):
        for second in range(1, 24):
            same_chance(monkeypatch)
            session = Session(SimulatedDisk())
            session.disk.fail = (first, 0.5)
            session.run(2)
            session.disk.fail, session.made, session.error = (session.disk.steps + second, 0.5), 50, None
            if session.run(1).error is None:
                break  # the second session has fewer steps than that
            session.disk.fail, session.made = None, 90
            for tree, told in crashes(session, lambda: session.run(1), stride=100_000):  # noqa: B023 (used at once)
                assert state(tree, told) in judged or fault(tree, told) is None
                judged.add(state(tree, told))
    assert len(judged) > 1000


def test_after_a_failure_the_log_stays_closed() -> None:
    disk = SimulatedDisk()
    log = opened(disk)
    log.append(decision(1))
    disk.fail = (disk.steps + 2, 0.0)  # the sync of the next line
    with pytest.raises(RecordError, match="cannot be written"):
        log.append(decision(2))
    disk.fail = None
    steps = disk.steps
    with pytest.raises(RecordError, match="closed after a failure"):
        log.append(decision(3))
    log.close()
    assert disk.steps == steps  # not even a checkpoint


def again(session: Session, log: RecordLog) -> RecordLog:
    """Open the record again as a running engine does; callers were told what `session` says."""
    session.disk.fail = None
    return RecordLog.open(session.disk, lock_seconds=1, clock=clock, heads=dict, answered=log.leave())


def goes_on(session: Session, log: RecordLog, count: int) -> RecordLog:
    """Make decisions, and open the record again whenever one cannot be recorded."""
    for _ in range(count):
        session.made += 1
        body = decision(session.made)
        try:
            log.append(body, (event(session.made),) * (session.made % 3))
            session.acknowledged.append(body.decision_id)
        except RecordError:
            log = again(session, log)
    return log


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["nothing happens", "half happens", "all happens"])
def test_a_record_opened_again_by_its_process_has_exactly_what_was_answered(share: float) -> None:
    before = Session(SimulatedDisk()).run(0, close=False).disk.steps
    whole = Session(SimulatedDisk()).run(4, close=False).disk.steps
    for number in range(before + 1, whole + 1):
        session = Session(SimulatedDisk())
        log = opened(session.disk)
        session.disk.fail = (number, share)
        goes_on(session, log, 6).close()
        assert len(session.acknowledged) == 5
        bodies = [parse(line).body for line in (session.disk.tree()[DECISIONS] or b"").splitlines()]
        assert [body.decision_id for body in bodies if isinstance(body, DecisionRecord)] == session.acknowledged
        assert fault(session.disk.tree(), session.acknowledged) is None


def test_no_crash_while_a_process_opens_its_record_again_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: set[object] = set()
    before = Session(SimulatedDisk()).run(0, close=False).disk.steps
    for number in range(before + 1, Session(SimulatedDisk()).run(3, close=False).disk.steps + 1):
        same_chance(monkeypatch)
        session = Session(SimulatedDisk())
        log = opened(session.disk)
        session.disk.fail = (number, 0.5)
        for tree, told in crashes(session, lambda: goes_on(session, log, 4), stride=300):  # noqa: B023 (used at once)
            assert state(tree, told) in judged or fault(tree, told) is None
            judged.add(state(tree, told))
    assert len(judged) > 300


def test_what_was_answered_and_is_gone_is_never_begun_anew() -> None:
    session = Session(SimulatedDisk())
    log = goes_on(session, opened(session.disk), 3)
    old = SimulatedDisk(Session(SimulatedDisk()).run(1).disk.tree())
    for disk in (SimulatedDisk({"records": None}), old):
        before = disk.tree()
        with pytest.raises(RecordError) as refused:
            RecordLog.open(disk, lock_seconds=1, clock=clock, answered=log.leave())
        assert refused.value.code == "engine.record_rolled_back"
        assert disk.tree() == before


class NoSync(SimulatedDisk):
    """Acknowledges before anything is durable."""

    def sync(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class NoSyncOfEvents(SimulatedDisk):
    def sync(self, path: str) -> None:
        if path != EVENTS:
            super().sync(path)


class NoFolderSync(SimulatedDisk):
    def sync_folder(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class NoTailCut(SimulatedDisk):
    def truncate(self, path: str, size: int) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class CutsTooMuch(SimulatedDisk):
    def truncate(self, path: str, size: int) -> None:
        content = bytes(self._file(path).seen[:size])
        super().truncate(path, content[:-1].rfind(b"\n") + 1)


class RenamesUnsynced(SimulatedDisk):
    def sync(self, path: str) -> None:
        if not path.endswith(".new"):
            super().sync(path)


@pytest.mark.parametrize("kind", [NoSync, NoSyncOfEvents, NoFolderSync, RenamesUnsynced])
def test_planted_bug_of_the_writer_is_found(kind: type[SimulatedDisk]) -> None:
    assert bad_states(Session(kind()), stride=400, count=3)[1]


@pytest.mark.parametrize("kind", [NoTailCut, CutsTooMuch])
def test_planted_bug_of_the_recovery_is_found(kind: type[SimulatedDisk]) -> None:
    first = Session(SimulatedDisk())
    found = False
    for tree, told in crashes(first, lambda: first.run(4), stride=400):
        second = Session(kind(tree), list(told), made=50).run(1)
        found = found or second.error is not None or fault(second.disk.tree(), second.acknowledged) is not None
    assert found


class NoWritingAgain(SimulatedDisk):
    def rewrite(self, path: str, offset: int, data: bytes) -> None:  # noqa: ARG002 (does nothing)
        self._step()


def test_planted_bug_of_trusting_a_failed_sync_is_found() -> None:
    bad = []
    for number in range(1, Session(SimulatedDisk()).run(3).disk.steps + 1):
        session = Session(NoWritingAgain())
        session.disk.fail = (number, 0.5)
        session.run(3)
        session.disk.fail = None
        session.made = 50
        bad += [fault(tree, told) for tree, told in crashes(session, lambda: session.run(2), stride=500)]  # noqa: B023
    assert [reason for reason in bad if reason is not None]


def test_checkpoint_is_replaced_whole() -> None:
    disk = SimulatedDisk()
    session = Session(disk)
    for tree, _ in crashes(session, session.run):
        if CHECKPOINT in tree:
            assert (tree[CHECKPOINT] or b"").endswith(b"}")
            assert len(tree[KEY] or b"") == 32

"""Every disk that a crash may leave, and every operation that may fail: nothing acknowledged is ever lost.

The planted bugs at the end are the positive control: the same enumeration finds each of them.
"""

from __future__ import annotations

import os
import random

import pytest

from engine.errors import RecordError
from engine.record.layout import CHECKPOINT, KEY
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord
from engine.record.verify import verify_storage
from tests.expect import refused
from tests.record.crashing import Crash, NoFolderSync, NoSync, NoSyncOfEvents, Session, crashes, faults, read
from tests.record.disk import SimulatedDisk
from tests.record.samples import decision, event, open_log

DECISIONS_MADE = 7


class Single(Session):
    """One decision after the other, by one thread."""

    def run(self, count: int = DECISIONS_MADE, *, close: bool = True) -> Single:
        try:
            log = open_log(self.disk)
            for _ in range(count):
                self.made += 1
                body = decision(self.made)
                log.append(body, (event(self.made),) * (self.made % 3))
                self.acknowledged.append(body.decision_id)
            self.before_close = self.disk.steps
            if close:
                log.close()
        except RecordError as error:
            self.errors.append(error)
        return self


def fresh(found: list[Crash], judged: set[object]) -> list[Crash]:
    """Those that were not looked at before."""
    new = [crash for crash in found if crash.key not in judged]
    judged.update(crash.key for crash in new)
    return new


def same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on ids and keys come in the same order as the last time, and each of them once."""
    monkeypatch.setattr(os, "urandom", random.Random(11).randbytes)  # noqa: S311 (keys of no real record)


def test_no_crash_loses_acknowledged_lines() -> None:
    session = Single()
    found = crashes(session, session.run, stride=7)
    assert faults(found) == []
    assert len(found) > 1000


@pytest.mark.full
def test_no_crash_loses_acknowledged_lines_torn_at_every_byte() -> None:
    session = Single()
    found = crashes(session, lambda: session.run(2), stride=1)
    assert faults(found) == []
    assert len(found) > 2000


def test_no_crash_during_recovery_loses_anything() -> None:
    first = Single()
    found = crashes(first, lambda: first.run(4), stride=400)
    unfinished = [crash for crash in found if crash.told and not verify_storage(SimulatedDisk(crash.tree)).ok]
    assert len(unfinished) > 5
    for crash in unfinished:
        second = Single(SimulatedDisk(crash.tree), list(crash.told), made=50)
        assert faults(crashes(second, lambda: second.run(1), stride=300)) == []  # noqa: B023 (used at once)


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_closes_the_log_and_a_restart_goes_on(share: float) -> None:
    clean = Single().run()
    for number in range(1, clean.disk.steps + 1):
        session = Single()
        session.disk.fail = (number, share)
        session.run()
        told = ["engine.record_unavailable"] if number <= clean.before_close else []
        assert [error.code for error in session.errors] == told
        session.disk.fail = None
        restarted = Single(session.disk, session.acknowledged, made=50).run(2)
        assert restarted.errors == []
        assert restarted.crash().fault() is None


def test_after_a_failed_sync_and_a_restart_no_crash_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may show lines that it will never write; lines after them must not stand on them."""
    judged: set[object] = set()
    for number in range(1, Single().run(3).disk.steps + 1):
        same_chance(monkeypatch)
        session = Single()
        session.disk.fail = (number, 0.5)
        session.run(3)
        session.disk.fail = None
        session.made = 50
        found = crashes(session, lambda: session.run(2), stride=500)  # noqa: B023 (used at once)
        assert faults(fresh(found, judged)) == []


@pytest.mark.full
def test_after_two_failures_and_two_restarts_no_crash_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: set[object] = set()
    for first in range(1, Single().run(2).disk.steps + 1, 2):
        for second in range(1, 24):
            same_chance(monkeypatch)
            session = Single()
            session.disk.fail = (first, 0.5)
            session.run(2)
            session.disk.fail, session.made, session.errors = (session.disk.steps + second, 0.5), 50, []
            if not session.run(1).errors:
                break  # the second session has fewer steps than that
            session.disk.fail, session.made = None, 90
            found = crashes(session, lambda: session.run(1), stride=100_000)  # noqa: B023 (used at once)
            assert faults(fresh(found, judged)) == []
    assert len(judged) > 1000


def test_after_a_failure_the_log_stays_closed() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
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
    return open_log(session.disk, heads=dict, answered=log.leave())


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
def test_a_record_reopened_by_its_process_has_exactly_the_acknowledged_lines(share: float) -> None:
    before = Single().run(0, close=False).disk.steps
    whole = Single().run(4, close=False).disk.steps
    for number in range(before + 1, whole + 1):
        session = Single()
        log = open_log(session.disk)
        session.disk.fail = (number, share)
        goes_on(session, log, 6).close()
        assert len(session.acknowledged) == 5
        bodies = [entry.body for entry in read(session.disk)]
        assert [body.decision_id for body in bodies if isinstance(body, DecisionRecord)] == session.acknowledged
        assert session.crash().fault() is None


def test_no_crash_while_a_process_opens_its_record_again_loses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: set[object] = set()
    before = Single().run(0, close=False).disk.steps
    for number in range(before + 1, Single().run(3, close=False).disk.steps + 1):
        same_chance(monkeypatch)
        session = Single()
        log = open_log(session.disk)
        session.disk.fail = (number, 0.5)
        found = crashes(session, lambda: goes_on(session, log, 4), stride=300)  # noqa: B023 (used at once)
        assert faults(fresh(found, judged)) == []
    assert len(judged) > 300


def test_a_lost_acknowledged_record_is_not_restarted() -> None:
    session = Single()
    log = goes_on(session, open_log(session.disk), 3)
    old = SimulatedDisk(Single().run(1).disk.tree())
    for disk in (SimulatedDisk({"records": None}), old):
        before = disk.tree()
        with refused(RecordError, "engine.record_rolled_back"):
            open_log(disk, answered=log.leave())
        assert disk.tree() == before


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


@pytest.mark.full
@pytest.mark.parametrize("kind", [NoSync, NoSyncOfEvents, NoFolderSync, RenamesUnsynced])
def test_planted_bug_of_the_writer_is_found(kind: type[SimulatedDisk]) -> None:
    session = Single(kind())
    assert faults(crashes(session, lambda: session.run(3), stride=400))


@pytest.mark.parametrize("kind", [NoTailCut, CutsTooMuch])
def test_planted_bug_of_the_recovery_is_found(kind: type[SimulatedDisk]) -> None:
    first, found = Single(), False
    for crash in crashes(first, lambda: first.run(4), stride=400):
        second = Single(kind(crash.tree), list(crash.told), made=50).run(1)
        found = found or bool(second.errors) or second.crash().fault() is not None
    assert found


class NoWritingAgain(SimulatedDisk):
    def rewrite(self, path: str, offset: int, data: bytes) -> None:  # noqa: ARG002 (does nothing)
        self._step()


@pytest.mark.full
def test_planted_bug_of_trusting_a_failed_sync_is_found() -> None:
    bad: list[str] = []
    for number in range(1, Single().run(3).disk.steps + 1):
        session = Single(NoWritingAgain())
        session.disk.fail = (number, 0.5)
        session.run(3)
        session.disk.fail = None
        session.made = 50
        bad += faults(crashes(session, lambda: session.run(2), stride=500))  # noqa: B023 (used at once)
    assert bad


def test_checkpoint_is_replaced_whole() -> None:
    session = Single()
    for crash in crashes(session, session.run, stride=97):
        if CHECKPOINT in crash.tree:
            assert (crash.tree[CHECKPOINT] or b"").endswith(b"}")
            assert len(crash.tree[KEY] or b"") == 32

"""Every disk that a crash may leave while batches are written, segments begin, and retention removes old ones.

The crash states are those of disk.py: each prefix of the operations, torn writes, names without their folder's
sync. The planted bugs at the end are the positive control.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from engine.errors import RecordError
from engine.record import checkpoint as checkpoint_module
from engine.record import recovery, retention
from engine.record.checkpoint import read_anchor
from engine.record.layout import ANCHOR, segment_file
from engine.record.log import RecordLog
from engine.record.model import RetentionRecord
from engine.record.retention import retain
from engine.record.storage import Storage
from engine.record.verify import verify_storage
from engine.record.writer import Writer
from tests.processes import until
from tests.record.crashing import NoFolderSync, NoSync, NoSyncOfEvents, Session, crashes, faults, read
from tests.record.disk import SimulatedDisk
from tests.record.samples import decision, event, open_log, order

PATIENCE = 120.0  # seconds; every step of the disk makes all its crash states
SEGMENT = 2_500  # bytes; two or three batches
STRIDE = 400  # bytes between two torn writes
LATER = datetime(2027, 11, 21, tzinfo=UTC)  # the samples are from a year before


def opened(disk: SimulatedDisk) -> RecordLog:
    return open_log(disk, segment_bytes=SEGMENT)


class Batches(Session):
    """Batches of decisions, each from many threads, and retention."""

    now: datetime = LATER

    def batches(self, sizes: tuple[int, ...]) -> Batches:
        """Each batch from as many threads, all of which wait before it is formed."""
        try:
            log = opened(self.disk)
            for size in sizes:
                self._batch(log, size)
            self.before_close = self.disk.steps
            log.close()
        except RecordError as error:
            self.errors.append(error)
        return self

    def _batch(self, log: RecordLog, size: int) -> None:
        full = threading.Event()
        plug = threading.Thread(target=self._told, args=(lambda: log.between_batches(lambda _: assert_set(full)),))
        plug.start()
        until(lambda: log._commits._leader is not None or not plug.is_alive(), PATIENCE)
        threads = [threading.Thread(target=self._append, args=(log, self.made + step + 1)) for step in range(size)]
        self.made += size
        for thread in threads:
            thread.start()
        until(lambda: len(log._commits._queue) == size or not log.usable, PATIENCE)
        full.set()
        for thread in (plug, *threads):
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def _append(self, log: RecordLog, number: int) -> None:
        body = decision(number)

        def append() -> None:
            log.append(body, (event(number),) * (number % 3))
            self.acknowledged.append(body.decision_id)

        self._told(append)

    def _told(self, action: Callable[[], object]) -> None:
        try:
            action()
        except RecordError as error:
            self.errors.append(error)

    def retained(self) -> Batches:
        self.removing = True
        self.made += 100
        try:
            with opened(self.disk) as log:
                retain(log, order(200, self.now))
                body = decision(self.made)
                log.append(body)
                self.acknowledged.append(body.decision_id)
                self.before_close = self.disk.steps
        except RecordError as error:
            self.errors.append(error)
        return self


def assert_set(full: threading.Event) -> None:
    assert full.wait(PATIENCE)


def segmented(disk: SimulatedDisk | None = None) -> Batches:
    """Four segments, in three of which all is old."""
    return Batches(disk or SimulatedDisk()).batches((3, 4, 2, 4, 3))


def test_no_crash_between_batches_and_segments_loses_acknowledged_lines() -> None:
    session = Batches()
    found = crashes(session, lambda: session.batches((1, 4, 3, 5, 2)), stride=60)
    assert faults(found) == []
    assert len(found) > 300
    assert verify_storage(session.disk).segments > 2


def test_no_crash_of_retention_loses_retained_lines() -> None:
    session = segmented()
    before = verify_storage(session.disk)
    states = crashes(session, session.retained, STRIDE)
    assert faults(states) == []
    assert len(states) > 25
    found = verify_storage(session.disk)
    assert (found.ok, found.removed > 0, found.segments < before.segments) == (True, True, True)
    assert isinstance(
        next(entry.body for entry in read(session.disk) if entry.body.kind == "retention"), RetentionRecord
    )


def test_no_crash_of_a_second_retention_loses_retained_lines() -> None:
    session = segmented()
    session.retained()
    first = verify_storage(session.disk).removed
    session.made = 50
    session.batches((4, 4, 4))
    session.now = LATER.replace(year=2028)
    states = crashes(session, session.retained, STRIDE)
    assert faults(states) == []
    assert len(states) > 25
    assert verify_storage(session.disk).removed > first


@pytest.mark.full(after=1)
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_under_concurrent_appends_denies_and_a_restart_goes_on(share: float) -> None:
    clean = Batches().batches((2, 4, 3, 4))
    for number in range(1, clean.disk.steps + 1):
        session = Batches()
        session.disk.fail = (number, share)
        session.batches((2, 4, 3, 4))
        told = {"engine.record_unavailable"} if number <= clean.before_close else set()
        assert {error.code for error in session.errors} == told
        session.disk.fail, session.errors, session.made = None, [], 50
        session.batches((1, 2))
        assert not session.errors
        assert session.crash().fault() is None


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_of_retention_is_reported_and_a_restart_recovers(share: float) -> None:
    tree = segmented().disk.tree()
    clean = Batches(SimulatedDisk(tree)).retained()
    for number in range(1, clean.disk.steps + 1):
        session = Batches(SimulatedDisk(tree))
        session.disk.fail = (number, share)
        session.retained()
        assert bool(session.errors) == (number <= clean.before_close), number
        session.disk.fail, session.errors = None, []
        session.retained()
        assert not session.errors
        assert session.crash().fault() is None


class NoSyncOfNewSegments(SimulatedDisk):
    """The folder is synced at first use only, so the name of a later segment may vanish."""

    def sync_folder(self, path: str) -> None:
        if path == "records" and self.size(segment_file(2)) is not None:
            self._step()
        else:
            super().sync_folder(path)


@pytest.mark.full
@pytest.mark.parametrize("kind", [NoSync, NoFolderSync, NoSyncOfNewSegments, NoSyncOfEvents])
def test_planted_bug_of_writing_batches_is_found(kind: type[SimulatedDisk]) -> None:
    session = Batches(kind())
    assert faults(crashes(session, lambda: session.batches((1, 4, 4)), stride=100_000))


def test_planted_bug_of_rotating_without_a_checkpoint_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut end of a segment that is not the last would be taken for a gap, not mended."""
    rotate = Writer.rotate

    def forgetful(writer: Writer) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "checkpoint", lambda _: None)
            rotate(writer)

    monkeypatch.setattr(Writer, "rotate", forgetful)
    session = Batches()
    assert faults(crashes(session, lambda: session.batches((1, 4, 3, 5, 2)), STRIDE))


def test_planted_bug_of_removing_before_the_anchor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remove, write = recovery.remove_segments, checkpoint_module.write_anchor
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(retention, "write_anchor", lambda *given: later.append(lambda: write(*given)))

    def early(storage: Storage, numbers: list[int]) -> None:
        remove(storage, numbers)
        later.pop()()

    monkeypatch.setattr(retention, "remove_segments", early)
    session = segmented()
    assert faults(crashes(session, session.retained, STRIDE))


def test_planted_bug_of_an_anchor_that_is_not_durable_is_found() -> None:
    class Careless(SimulatedDisk):
        def sync_folder(self, path: str) -> None:
            if path != ANCHOR.rpartition("/")[0]:
                super().sync_folder(path)

    session = segmented(Careless())
    assert faults(crashes(session, session.retained, STRIDE))


def test_planted_bug_of_removing_without_a_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordLog, "append", lambda log, *_: log.seq)
    session = segmented_before_patching()
    with opened(session.disk) as log:
        retain(log, order(200, LATER))
    assert read_anchor(session.disk, None) is not None
    assert [broken.kind.value for broken in verify_storage(session.disk).breaks] == ["retention_mismatch"]


def segmented_before_patching() -> Batches:
    session = Batches()
    with opened(session.disk) as log:
        for number in range(1, 12):
            log._commits.commit(*log._encoded(decision(number), ()))
    return session

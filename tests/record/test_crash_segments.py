"""Every disk that a crash may leave while batches are written, segments begin, and retention removes old ones.

The crash states are those of disk.py: each prefix of the operations, torn writes, names without their folder's
sync. The planted bugs at the end are the positive control.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from engine.errors import RecordError
from engine.record import checkpoint as checkpoint_module
from engine.record import recovery, retention
from engine.record.chain import Entry, parse
from engine.record.checkpoint import read_anchor
from engine.record.layout import ANCHOR, EVENTS, segment_file, segment_numbers
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, RetentionRecord
from engine.record.retention import retain
from engine.record.storage import Storage
from engine.record.verify import verify_storage
from engine.record.writer import Writer
from tests.record.disk import SimulatedDisk, Tree
from tests.record.samples import clock, decision, event

PATIENCE = 120.0  # seconds; every step of the disk makes all its crash states
SEGMENT = 2_500  # bytes; two or three batches
LATER = datetime(2027, 11, 21, tzinfo=UTC)  # the samples are from a year before


def opened(disk: SimulatedDisk) -> RecordLog:
    return RecordLog.open(disk, lock_seconds=1, clock=clock, segment_bytes=SEGMENT)


def read(disk: SimulatedDisk) -> list[Entry]:
    tree = disk.tree()
    numbers = segment_numbers(path.rpartition("/")[2] for path in tree)
    return [parse(line) for number in numbers for line in (tree[segment_file(number)] or b"").splitlines()]


@dataclass
class Session:
    """Batches of decisions on one disk, what callers were told, and whether retention may have begun."""

    disk: SimulatedDisk
    acknowledged: list[str] = field(default_factory=list)
    errors: list[RecordError] = field(default_factory=list)
    made: int = 0
    removing: bool = False
    now: datetime = LATER

    def batches(self, sizes: tuple[int, ...]) -> Session:
        """Each batch from as many threads, all of which wait before it is formed."""
        try:
            log = opened(self.disk)
            for size in sizes:
                self._batch(log, size)
            log.close()
        except RecordError as error:
            self.errors.append(error)
        return self

    def _batch(self, log: RecordLog, size: int) -> None:
        full = threading.Event()
        plug = threading.Thread(target=self._told, args=(lambda: log.between_batches(lambda _: assert_set(full)),))
        plug.start()
        wait_until(lambda: log._commits._leader is not None or not plug.is_alive())
        threads = [threading.Thread(target=self._append, args=(log, self.made + step + 1)) for step in range(size)]
        self.made += size
        for thread in threads:
            thread.start()
        wait_until(lambda: len(log._commits._queue) == size or not log.usable)
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

    def retained(self) -> Session:
        self.removing = True
        self.made += 100
        try:
            with opened(self.disk) as log:
                retain(log, 200, "d-1", self.now, "user:lee", "disk full")
                body = decision(self.made)
                log.append(body)
                self.acknowledged.append(body.decision_id)
        except RecordError as error:
            self.errors.append(error)
        return self


def assert_set(full: threading.Event) -> None:
    assert full.wait(PATIENCE)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline


def fault(  # noqa: PLR0911 (one for each thing that may be wrong)
    tree: Tree, acknowledged: list[str], *, removing: bool
) -> str | None:
    """What is wrong when an engine starts on this disk; None when everything acknowledged is there or told of."""
    disk = SimulatedDisk(tree)
    before = verify_storage(disk)
    if not before.ok and not before.repairable:
        return f"a crash looks like tampering: {before.breaks}"
    try:
        opened(disk).close()
    except RecordError as error:
        return f"refused: {error}"
    found = verify_storage(disk)
    if not found.ok:
        return f"does not verify: {found.breaks}"
    if found.removed and not removing:
        return "something was removed"
    entries = read(disk)
    if [entry.seq for entry in entries] != list(range(found.removed + 1, found.removed + len(entries) + 1)):
        return "lines are missing"
    told = max((entry.body.last_seq for entry in entries if isinstance(entry.body, RetentionRecord)), default=0)
    if found.removed > told:
        return "lines were removed and the record does not tell"
    bodies = [entry.body for entry in entries]
    there = [body.decision_id for body in bodies if isinstance(body, DecisionRecord)]
    gone = [name for name in acknowledged if name not in there]
    if len(gone) > found.removed or len(there) != len(set(there)):
        return "an acknowledged decision is lost or doubled"
    claimed = sum(
        body.source_events.bytes for body in bodies if isinstance(body, DecisionRecord) and body.source_events
    )
    before_anchor = 0 if found.anchor is None else found.anchor.source_events.size
    if claimed + before_anchor != disk.size(EVENTS):
        return "source events are lost or left over"
    same = disk.tree()
    opened(disk).close()
    return None if disk.tree() == same else "starting again changes the disk"


def crashes(session: Session, run: Callable[[], object], stride: int) -> Iterator[tuple[Tree, list[str], bool]]:
    """Every crash state before each step of `run`, and at its end, with what was acknowledged by then."""
    seen: set[str] = set()
    states: list[tuple[Tree, list[str], bool]] = []

    def collect(disk: SimulatedDisk) -> None:
        told = list(session.acknowledged)
        for tree in disk.crash_states(stride):
            key = sha256(repr((sorted(tree.items()), told)).encode()).hexdigest()
            if key not in seen:
                seen.add(key)
                states.append((tree, told, session.removing))

    session.disk.step = collect
    run()
    collect(session.disk)
    session.disk.step = lambda _: None
    yield from states


def bad_states(session: Session, run: Callable[[], object], stride: int = 400) -> tuple[int, list[str]]:
    found = [fault(tree, told, removing=removing) for tree, told, removing in crashes(session, run, stride)]
    return len(found), [reason for reason in found if reason is not None]


def segmented(disk: SimulatedDisk | None = None) -> Session:
    """Four segments, in three of which all is old."""
    return Session(disk or SimulatedDisk()).batches((3, 4, 2, 4, 3))


def test_no_crash_between_batches_and_segments_loses_what_was_acknowledged() -> None:
    session = Session(SimulatedDisk())
    total, bad = bad_states(session, lambda: session.batches((1, 4, 3, 5, 2)), stride=60)
    assert not bad
    assert total > 300
    assert verify_storage(session.disk).segments > 2


def test_no_crash_of_retention_loses_what_is_to_be_kept() -> None:
    session = segmented()
    before = verify_storage(session.disk)
    total, bad = bad_states(session, session.retained)
    assert not bad
    assert total > 25
    found = verify_storage(session.disk)
    assert (found.ok, found.removed > 0, found.segments < before.segments) == (True, True, True)
    assert isinstance(
        next(entry.body for entry in read(session.disk) if entry.body.kind == "retention"), RetentionRecord
    )


def test_no_crash_of_a_second_retention_loses_what_is_to_be_kept() -> None:
    session = segmented()
    session.retained()
    first = verify_storage(session.disk).removed
    session.made = 50
    session.batches((4, 4, 4))
    session.now = LATER.replace(year=2028)
    total, bad = bad_states(session, session.retained)
    assert not bad
    assert total > 25
    assert verify_storage(session.disk).removed > first


@pytest.mark.full(after=1)
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_under_concurrent_appends_denies_and_a_restart_goes_on(share: float) -> None:
    steps = Session(SimulatedDisk()).batches((2, 4, 3, 4)).disk.steps
    for number in range(1, steps + 1):
        session = Session(SimulatedDisk())
        session.disk.fail = (number, share)
        session.batches((2, 4, 3, 4))
        assert session.errors
        assert {error.code for error in session.errors} == {"engine.record_unavailable"}
        session.disk.fail, session.errors, session.made = None, [], 50
        session.batches((1, 2))
        assert not session.errors
        assert fault(session.disk.tree(), session.acknowledged, removing=False) is None


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["nothing of it happens", "half of it happens"])
def test_every_failing_operation_of_retention_is_told_and_a_restart_goes_on(share: float) -> None:
    tree = segmented().disk.tree()
    steps = Session(SimulatedDisk(tree)).retained().disk.steps
    for number in range(1, steps + 1):
        session = Session(SimulatedDisk(tree))
        session.disk.fail = (number, share)
        session.retained()
        assert session.errors, number
        session.disk.fail, session.errors = None, []
        session.retained()
        assert not session.errors
        assert fault(session.disk.tree(), session.acknowledged, removing=True) is None


class NoSync(SimulatedDisk):
    def sync(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class NoFolderSync(SimulatedDisk):
    def sync_folder(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class NoSyncOfNewSegments(SimulatedDisk):
    """The folder is synced at first use only, so the name of a later segment may vanish."""

    def sync_folder(self, path: str) -> None:
        if path == "records" and self.size(segment_file(2)) is not None:
            self._step()
        else:
            super().sync_folder(path)


class NoSyncOfEvents(SimulatedDisk):
    def sync(self, path: str) -> None:
        if path != EVENTS:
            super().sync(path)


@pytest.mark.full
@pytest.mark.parametrize("kind", [NoSync, NoFolderSync, NoSyncOfNewSegments, NoSyncOfEvents])
def test_planted_bug_of_writing_batches_is_found(kind: type[SimulatedDisk]) -> None:
    session = Session(kind())
    assert bad_states(session, lambda: session.batches((1, 4, 4)), stride=100_000)[1]


def test_planted_bug_of_rotating_without_a_checkpoint_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut end of a segment that is not the last would be taken for a gap, not mended."""
    rotate = Writer.rotate

    def forgetful(writer: Writer) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "checkpoint", lambda _: None)
            rotate(writer)

    monkeypatch.setattr(Writer, "rotate", forgetful)
    session = Session(SimulatedDisk())
    assert bad_states(session, lambda: session.batches((1, 4, 3, 5, 2)))[1]


def test_planted_bug_of_removing_before_the_anchor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remove, write = recovery.remove_segments, checkpoint_module.write_anchor
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(retention, "write_anchor", lambda *given: later.append(lambda: write(*given)))

    def early(storage: Storage, numbers: list[int]) -> None:
        remove(storage, numbers)
        later.pop()()

    monkeypatch.setattr(retention, "remove_segments", early)
    session = segmented()
    assert bad_states(session, session.retained)[1]


def test_planted_bug_of_an_anchor_that_is_not_durable_is_found() -> None:
    class Careless(SimulatedDisk):
        def sync_folder(self, path: str) -> None:
            if path != ANCHOR.rpartition("/")[0]:
                super().sync_folder(path)

    session = segmented(Careless())
    assert bad_states(session, session.retained)[1]


def test_planted_bug_of_removing_without_a_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordLog, "append", lambda log, *_: log.seq)
    session = segmented_before_patching()
    with opened(session.disk) as log:
        retain(log, 200, "d-1", LATER, "user:lee", "disk full")
    assert read_anchor(session.disk, None) is not None
    assert [broken.kind.value for broken in verify_storage(session.disk).breaks] == ["retention_mismatch"]


def segmented_before_patching() -> Session:
    session = Session(SimulatedDisk())
    with opened(session.disk) as log:
        for number in range(1, 12):
            log._commits.commit(*log._encoded(decision(number), ()))
    return session

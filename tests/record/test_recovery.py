"""What an opening mends and what it refuses, one interrupted step after the other.

test_crash_states.py and test_crash_segments.py try every step and every disk; these are the ones that matter, by name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from engine.errors import RecordError
from engine.record.chain import Position, encode, parse
from engine.record.layout import CHECKPOINT, CUT, DECISIONS, EVENTS, INSTALLATION, LOCK, RECORDS, segment_file
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, RecoveryRecord
from engine.record.recovery import Answered
from engine.record.verify import verify_storage
from tests.expect import refused
from tests.record.disk import SimulatedDisk, Tree
from tests.record.samples import decision, event, open_log

SEGMENT = 1_500
"""Bytes: the third line opens the next segment."""


class Interrupted(SimulatedDisk):
    """A disk on which one operation fails once, before it does anything."""

    def __init__(self, tree: Tree | None = None) -> None:
        super().__init__(tree)
        self.breaks: Callable[[str, str], bool] = lambda *_: False

    def _may(self, name: str, path: str) -> None:
        if self.breaks(name, path):
            self.breaks = lambda *_: False
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def sync(self, path: str) -> None:
        if self.breaks("sync", path):
            self._file(path).dirty.clear()  # shown, and never written
        self._may("sync", path)
        super().sync(path)

    def sync_folder(self, path: str) -> None:
        self._may("sync_folder", path)
        super().sync_folder(path)

    def truncate(self, path: str, size: int) -> None:
        self._may("truncate", path)
        super().truncate(path, size)

    def rename(self, old: str, new: str) -> None:
        self._may("rename", new)
        super().rename(old, new)

    def create(self, path: str) -> None:
        self._may("create", path)
        super().create(path)


def opened(disk: SimulatedDisk, answered: Answered | None = None, segment_bytes: int = SEGMENT) -> RecordLog:
    return open_log(disk, segment_bytes=segment_bytes, answered=answered)


def written(count: int, first: int = 1, tree: Tree | None = None) -> Interrupted:
    """A record of so many decisions with an event each, closed."""
    disk = Interrupted(tree)
    with opened(disk, segment_bytes=1 << 20) as log:
        for number in range(first, first + count):
            log.append(decision(number), (event(number),))
    return disk


def with_tail(disk: SimulatedDisk, **tails: bytes) -> Interrupted:
    """The same disk with unfinished writes."""
    tree = disk.tree()
    for name, tail in tails.items():
        path = {"decisions": DECISIONS, "events": EVENTS}[name]
        tree[path] = (tree[path] or b"") + tail
    return Interrupted(tree)


def kept(disk: SimulatedDisk) -> list[bytes]:
    tree = disk.tree()
    assert not [path for path in tree if path.endswith(".pending")]
    return [tree[path] or b"" for path in sorted(tree) if path.startswith(f"{CUT}/")]


def told(disk: SimulatedDisk) -> list[int]:
    """The bytes of each cut that the record tells of."""
    bodies = [parse(line).body for line in (disk.tree()[DECISIONS] or b"").splitlines()]
    return [body.bytes for body in bodies if isinstance(body, RecoveryRecord)]


def there(disk: SimulatedDisk) -> list[int]:
    tree = disk.tree()
    files = sorted(path for path in tree if path.startswith("records/decisions."))
    bodies = [parse(line).body for path in files for line in (tree[path] or b"").splitlines()]
    return [int(body.decision_id, 16) for body in bodies if isinstance(body, DecisionRecord)]


def survives(disk: SimulatedDisk, numbers: list[int]) -> None:
    """After any further crash, these decisions are found again and the record is intact."""
    states = list(disk.crash_states(100_000))
    assert states
    for tree in states:
        after = SimulatedDisk(tree)
        opened(after).close()
        assert verify_storage(after).ok
        assert set(numbers) <= set(there(after))


def test_an_interrupted_first_use_is_made_durable_by_the_next_start() -> None:
    disk = Interrupted()
    disk.breaks = lambda name, path: name == "sync_folder" and path == "" and INSTALLATION in disk.view
    with pytest.raises(RecordError):
        opened(disk)
    assert INSTALLATION not in disk.durable
    with opened(disk) as log:
        log.append(decision(1))
        survives(disk, [1])


def test_a_first_use_that_failed_between_its_files_goes_on() -> None:
    for broken in (DECISIONS, EVENTS):
        disk = Interrupted()
        disk.breaks = lambda name, path: name == "create" and path == broken  # noqa: B023 (used at once)
        with pytest.raises(RecordError):
            opened(disk)
        with opened(disk) as log:
            log.append(decision(1))
            survives(disk, [1])


def test_a_segment_name_that_is_not_durable_becomes_so_at_the_next_start() -> None:
    disk, second = Interrupted(), segment_file(2)
    log = opened(disk)
    for number in (1, 2):
        log.append(decision(number))
    disk.breaks = lambda name, path: name == "sync_folder" and path == RECORDS and second in disk.view
    with pytest.raises(RecordError):
        log.append(decision(3))
    assert (second in disk.view, second in disk.durable) == (True, False)
    again = opened(disk)
    again.append(decision(4))
    assert disk.size(second)
    survives(disk, [1, 2, 4])


@pytest.mark.parametrize("lines", [1, 2, 3, 4])
@pytest.mark.parametrize("path", ["decisions", EVENTS])
def test_bytes_of_a_failed_sync_are_rewritten_before_further_lines(path: str, lines: int) -> None:
    """In the first segment and in the next one, which no checkpoint vouches for."""
    disk = Interrupted()
    log = opened(disk)
    for number in range(1, lines):
        log.append(decision(number), (event(number),))
    disk.breaks = lambda name, where: name == "sync" and (where == path or path in where)
    with pytest.raises(RecordError):
        log.append(decision(lines), (event(lines),))
    again = opened(disk)
    again.append(decision(50), (event(50),))
    survives(disk, [*range(1, lines), 50])


@pytest.mark.parametrize("tails", [(b"{", b""), (b"", b"{"), (b"{", b"{"), (b'{"a":', b"{"), (b"{" * (3 << 20), b"")])
@pytest.mark.parametrize("lines", [0, 2])
def test_each_torn_tail_is_kept_and_reported_once(tails: tuple[bytes, bytes], lines: int) -> None:
    """Also where both ends have the same bytes at the same place."""
    disk = with_tail(written(lines), decisions=tails[0], events=tails[1])
    with opened(disk) as log:
        recovered = [one.bytes for one in log.opened.recovered]
    expected = [len(tail) for tail in tails if tail]
    assert sorted(recovered) == sorted(told(disk)) == sorted(expected)
    assert sorted(kept(disk)) == sorted(tail for tail in tails if tail)
    assert verify_storage(disk).ok
    with opened(disk) as log:
        assert log.opened.recovered == ()


@pytest.mark.parametrize(
    "step",
    [
        ("rename", ".pending"),
        ("sync_folder", CUT),
        ("truncate", DECISIONS),
        ("sync", DECISIONS),
        ("rename", ".jsonl"),
        ("truncate", EVENTS),
    ],
    ids=" ".join,
)
def test_an_interrupted_recovery_is_finished_by_the_next_start(step: tuple[str, str]) -> None:
    disk = with_tail(written(2), decisions=b"abc", events=b"defgh")
    disk.breaks = lambda name, path: name == step[0] and path.endswith(step[1])
    with pytest.raises(RecordError):
        opened(disk)
    opened(disk).close()
    assert (sorted(told(disk)), sorted(kept(disk))) == ([3, 5], [b"abc", b"defgh"])
    assert verify_storage(disk).ok
    survives(disk, [1, 2])


def test_a_kept_tail_of_another_place_or_content_is_not_reused() -> None:
    """Another content, another place, another file."""
    disk = with_tail(written(2), decisions=b"abc")
    size = (disk.size(DECISIONS) or 0) - 3
    for name, content in (
        (f"{size}-decisions.000001.jsonl", b"xyz"),
        (f"{size - 1}-decisions.000001.jsonl", b"abc"),
        (f"{size}-source_events.jsonl", b"abc"),
    ):
        tried = Interrupted(disk.tree() | {CUT: None, f"{CUT}/000000000003-{name}.pending": content})
        opened(tried).close()
        assert sorted(kept(tried)) == sorted([b"abc", content])
        assert told(tried) == [3, 3]
        assert verify_storage(tried).ok
    same = Interrupted(disk.tree() | {CUT: None, f"{CUT}/000000000003-{size}-decisions.000001.jsonl.pending": b"abc"})
    opened(same).close()
    assert (kept(same), told(same)) == ([b"abc"], [3])


@dataclass(frozen=True)
class Refused:
    """A change of one file, and the word for what is wrong then."""

    path: str
    change: Callable[[bytes], bytes]
    kind: str


REFUSED = [
    Refused(DECISIONS, lambda data: data[:-1], "before_checkpoint"),
    Refused(DECISIONS, lambda data: data[: data.rfind(b"\n", 0, -1) + 1], "before_checkpoint"),
    Refused(DECISIONS, lambda _: b"", "before_checkpoint"),
    Refused(DECISIONS, lambda data: data[:-2] + b"]\n", "checkpoint_mismatch"),
    Refused(EVENTS, lambda data: data[:-1], "before_checkpoint"),
    Refused(EVENTS, lambda _: b"", "before_checkpoint"),
    Refused(EVENTS, lambda data: data[:-2] + b"]\n", "checkpoint_mismatch"),
    Refused(CHECKPOINT, lambda data: data.replace(b'"lines":', b'"lines":1'), "bad_signature"),
]


@pytest.mark.parametrize("refused", REFUSED, ids=range(len(REFUSED)))
def test_a_record_that_contradicts_its_checkpoint_is_not_opened(refused: Refused) -> None:
    tree = written(3).tree()
    opened(SimulatedDisk(tree)).close()  # the control
    changed = tree | {refused.path: refused.change(tree[refused.path] or b"")}
    with pytest.raises(RecordError, match=f"the record is broken: {refused.kind} at byte"):
        opened(SimulatedDisk(changed))


def test_lines_that_were_added_to_a_segment_before_the_last_one_are_not_opened() -> None:
    """A checkpoint comes before every new segment, so that no line follows it there."""
    disk = written(2)
    found = verify_storage(disk)
    line = encode(3, found.head or "", decision(3)) + b"\n"
    tree = with_tail(disk, decisions=line).tree()
    opened(SimulatedDisk(tree)).close()  # the control: as the last line of the last segment it may be there
    with pytest.raises(RecordError, match="checkpoint_mismatch"):
        opened(SimulatedDisk(tree | {segment_file(2): b""}))
    left = SimulatedDisk(disk.tree() | {segment_file(2): b""})
    assert verify_storage(left).ok  # the control: a crash may leave this
    opened(left).close()


def answered(disk: SimulatedDisk, log: RecordLog, *, alone: bool) -> Answered:
    end: Position = log.opened.end
    assert disk.size(end.file) == end.size
    return Answered(log.opened.identity.installation, end, alone)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_unacknowledged_lines_are_cut_only_by_the_sole_writer(more: int, *, alone: bool) -> None:
    disk = written(2)
    log = opened(disk, segment_bytes=1 << 20)
    end = answered(disk, log, alone=alone)
    size = disk.size(DECISIONS) or 0
    for number in range(10, 10 + more):
        log.append(decision(number))
    longer = (disk.size(DECISIONS) or 0) - size
    again = opened(disk, end)
    again.append(decision(20))
    again.close()
    assert there(disk) == [1, 2, *([] if alone else range(10, 10 + more)), 20]
    assert told(disk) == ([longer] if alone and more else [])
    assert verify_storage(disk).ok


@pytest.mark.parametrize("alone", [True, False])
def test_a_record_that_lost_acknowledged_lines_is_neither_opened_nor_replaced(*, alone: bool) -> None:
    older = written(1).tree()
    disk = written(1, first=2, tree=older)
    log = opened(disk)
    end = answered(disk, log, alone=alone)
    trees: list[Tree] = [{RECORDS: None}, {}, older, written(3).tree()]
    for tree in trees:
        changed = SimulatedDisk(tree)
        with refused(RecordError, "engine.record_rolled_back"):
            opened(changed, end)
        assert {path for path in changed.tree() if path not in {RECORDS, LOCK}} == set(tree) - {RECORDS, LOCK}
    with opened(disk, end) as again:  # the control
        assert again.seq == 2


def test_a_segment_that_was_cut_before_an_empty_one_is_found() -> None:
    """As a crash may leave an empty segment, nothing that follows in it vouches for the one before."""
    tree = written(3).tree() | {segment_file(2): b""}
    data = tree[DECISIONS] or b""
    assert verify_storage(SimulatedDisk(tree)).ok  # the control
    for size in (0, data.rfind(b"\n", 0, -1) + 1, len(data) - 10, len(data) - 1):
        changed = SimulatedDisk(tree | {DECISIONS: data[:size]})
        assert [one.kind for one in verify_storage(changed).breaks] == ["before_checkpoint"]
        with pytest.raises(RecordError, match="before_checkpoint"):
            opened(changed)
    longer = SimulatedDisk(tree | {DECISIONS: data + b"{"})
    assert [one.kind for one in verify_storage(longer).breaks] == ["checkpoint_mismatch"]
    without = SimulatedDisk(tree | {DECISIONS: data[:-1] + b" "})
    assert [(one.kind, one.line) for one in verify_storage(without).breaks] == [("bad_json", 3)]


def test_a_line_behind_the_checkpoint_is_read_strictly_also_in_the_next_segment() -> None:
    disk = written(3)
    last = verify_storage(disk).head or ""
    good = encode(4, last, decision(4))
    other = good.replace(b'"approval"', b'"also":1,"approval"')
    for path, before in ((DECISIONS, disk.tree()[DECISIONS] or b""), (segment_file(2), b"")):
        assert verify_storage(SimulatedDisk(disk.tree() | {path: before + good + b"\n"})).ok  # the control
        changed = SimulatedDisk(disk.tree() | {path: before + other + b"\n"})
        assert [(one.file, one.kind) for one in verify_storage(changed).breaks] == [(path, "bad_keys")]
        with pytest.raises(RecordError, match="bad_keys"):
            opened(changed)

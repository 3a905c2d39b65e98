"""Verifies one chain: lines, segments, checkpoint, anchor, source events. Read-only, streaming, without a lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.record.chain import Entry, Position
from engine.record.checkpoint import (
    Anchor,
    Checkpoint,
    Identity,
    parse_checkpoint,
    read_anchor,
    read_checkpoint,
    read_identity,
)
from engine.record.layout import (
    ANCHOR,
    CHECKPOINT,
    EVENTS,
    INSTALLATION,
    LOCK,
    RECORDS,
    Break,
    BreakKind,
    BrokenError,
    broken_file,
    segment_file,
    segment_numbers,
)
from engine.record.lines import last_line, measured
from engine.record.model import RetentionRecord
from engine.record.storage import Storage, read_file, readable
from engine.record.walk import EventsWalk, SegmentEnd, walk


@dataclass(slots=True)
class Verification:
    """The result of verifying a whole record; at most one break per file, the first of each.

    `records`, `source_events` and `size` count the intact part before the first break, `removed` the lines that
    retention has removed before them; `head` is the SHA-256 of the last line, null if there is none or
    something before it is broken. `contained` are the seqs of ends known from elsewhere that the record has.
    `ends` are of all segments but the last. `writing` means that an engine is writing, so a torn tail
    is no break.
    """

    breaks: tuple[Break, ...] = ()
    records: int = 0
    source_events: int = 0
    size: int = 0
    head: str | None = None
    checkpoint: Checkpoint | None = None
    anchor: Anchor | None = None
    segments: int = 0
    ends: tuple[SegmentEnd, ...] = ()
    writing: bool = False
    contained: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the record is intact."""
        return not self.breaks

    @property
    def removed(self) -> int:
        """The number of lines that retention has removed."""
        return 0 if self.anchor is None else self.anchor.seq

    @property
    def passing(self) -> bool:
        """Whether an engine that has ended meanwhile may have been writing what looks broken."""
        return self.repairable or any(broken.kind is BreakKind.INSTALLATION_MISSING for broken in self.breaks)

    @property
    def repairable(self) -> bool:
        """Whether the only break is a torn tail after a crash, which the next start cuts."""
        return not self.ok and all(broken.repairable for broken in self.breaks)


def verify(state: Path, heads: Heads | None = None, against: bytes | None = None) -> Verification:
    """Verify the chain below this folder. Raises RecordError if it cannot be read at all.

    The chain has to contain the `heads` that the state remembers, by installation, and the checkpoint
    `against`, the content of an exported copy.
    """
    storage = Storage(state)
    before: tuple[Break, ...] = ()
    with readable(state):
        while True:
            anchor = read_file(storage, ANCHOR)
            try:
                found = verify_storage(storage, heads, against)
            except OSError:
                if read_file(storage, ANCHOR) == anchor:
                    raise
                continue  # old segments were removed meanwhile
            if found.ok or (read_file(storage, ANCHOR) == anchor and (found.breaks == before or not found.passing)):
                return found
            before = found.breaks


def verify_storage(
    storage: Storage, heads: Heads | None = None, against: bytes | None = None, owner: Identity | None = None
) -> Verification:
    """`verify` on any storage. May raise OSError. `owner` is known where the storage has no key."""
    found = Verification()
    try:
        identity, ends = _expected(storage, heads or {}, against, owner)
        if identity is None:
            return found
        found.anchor = read_anchor(storage, identity)  # else it is not known where the record starts
    except BrokenError as problem:
        return Verification((problem.broken,))
    try:
        found.checkpoint = require_checkpoint(storage, identity, found.anchor)
    except BrokenError as problem:
        found.breaks += (problem.broken,)
    try:
        last, unremoved = find_segments(storage, found.anchor, found.checkpoint)
        left = [broken_file(segment_file(n), BreakKind.LEFT_SEGMENT, "no such file", "a file") for n in unremoved]
        found.breaks += tuple(problem.broken for problem in left)
        _walk(storage, identity, last, found)
        for end in ends:
            require_contained(storage, identity, found.anchor, end)
            found.contained += (end.seq,)
    except BrokenError as problem:
        found.breaks += (problem.broken,)
    found.writing = storage.locked(LOCK)
    if found.writing and found.repairable:
        found.breaks = ()  # a write is in progress; its end is the writer's business
    return found


def _expected(
    storage: Storage, heads: Heads, against: bytes | None, owner: Identity | None
) -> tuple[Identity | None, list[Position]]:
    """The owner of the record, None if there is none, and the ends that it must contain. Raises BrokenError."""
    identity = owner or read_identity(storage)
    require_known(heads, identity)
    if identity is None:
        require_unused(storage)
        if against is not None:
            raise broken_file(INSTALLATION, BreakKind.ROLLED_BACK, "a record", "none")
        return None, []
    ends = [heads[identity.installation]] if heads else []
    return identity, ends if against is None else [*ends, parse_checkpoint(against, identity).position]


Heads = Mapping[str, Position]
"""Ends of records that are remembered outside of them, by installation."""


def require_known(heads: Heads, identity: Identity | None) -> None:
    """Raise BrokenError if record heads are remembered, but none of this installation."""
    if heads and (identity is None or identity.installation not in heads):
        expected, found = " or ".join(sorted(heads)), "none" if identity is None else identity.installation
        raise broken_file(INSTALLATION, BreakKind.ROLLED_BACK, expected, found)


def require_unused(storage: Storage) -> None:
    """Raise BrokenError unless this state folder was never used, or its first use did not finish."""
    checkpoint = read_checkpoint(storage, None)
    segments = [segment_file(number) for number in segment_numbers(storage.names(RECORDS))]
    written = any(storage.size(path) for path in (*segments, EVENTS)) or storage.size(ANCHOR) is not None
    if written or (checkpoint is not None and checkpoint.seq > 0):
        raise broken_file(INSTALLATION, BreakKind.INSTALLATION_MISSING, "the id of this record", "none")


def require_checkpoint(storage: Storage, identity: Identity, anchor: Anchor | None) -> Checkpoint:
    """The signed checkpoint. Raises BrokenError if it is missing: it is written before the first line.

    It is not older than the retention that the anchor records.
    """
    checkpoint = read_checkpoint(storage, identity)
    if checkpoint is None:
        raise broken_file(CHECKPOINT, BreakKind.CHECKPOINT_MISSING, "a checkpoint", "none")
    if anchor is not None and checkpoint.seq < anchor.retained_by:
        expected, there = f"line {anchor.retained_by} or later", f"line {checkpoint.seq}"
        raise broken_file(CHECKPOINT, BreakKind.CHECKPOINT_MISMATCH, expected, there)
    return checkpoint


def require_contained(storage: Storage, identity: Identity, anchor: Anchor | None, position: Position) -> None:
    """Raise BrokenError unless the record contains `position`, or retention removed it."""
    if anchor is not None and position.seq <= anchor.seq:
        return
    path, end = position.file, position.size
    if end == 0 and position.segment > 1:  # it is still empty: the previous line ends another segment
        path = segment_file(position.segment - 1)
        end = storage.size(path) or 0
    size = storage.size(path)
    if size is None or size < end:
        expected, found = f"line {position.seq} and {end} bytes", "no file" if size is None else f"{size} bytes"
    else:
        with storage.open(path) as file:
            expected, found = position.hash, last_line(file, end, identity.genesis)[1]
    if expected != found:
        line, offset = max(position.lines, 1), min(end, size or 0)
        raise BrokenError(Break(path, line, offset, position.seq, BreakKind.ROLLED_BACK, expected, found))


class _Watch(EventsWalk):
    """Compares the walked lines with the events, the checkpoint and the anchor."""

    def __init__(self, file: BinaryIO, identity: Identity, found: Verification) -> None:
        anchor = found.anchor
        super().__init__(file, identity.no_events if anchor is None else anchor.source_events)
        self._genesis = identity.genesis
        self._found = found
        self.line_to_see = None if anchor is None else anchor.retained_by
        self.recorded_retention = anchor is None
        self.broken = None if anchor is None else _changed_before(file, anchor)
        file.seek(self.size)

    def events(self, size: int, count: int, sha: str, seq: int) -> None:
        """Compare a decision's events, up to the first break: after it all offsets are wrong."""
        if self.broken is None:
            try:
                super().events(size, count, sha, seq)
            except BrokenError as problem:
                self.broken = problem.broken

    def vouched(self) -> None:
        """Compare the end of the events with the checkpoint."""
        if self._found.checkpoint is None or self.broken is not None:
            return
        end, vouched = self.end(self._genesis), self._found.checkpoint.source_events
        self._file.seek(self.size)
        if end != vouched:
            kind, line = BreakKind.CHECKPOINT_MISMATCH, max(end.lines, 1)
            self.broken = Break(EVENTS, line, end.size, None, kind, vouched.hash, end.hash)

    def line(self, entry: Entry) -> None:
        """Compare the line about the last removal with the anchor."""
        anchor, body = self._found.anchor, entry.body
        if anchor is not None and isinstance(body, RetentionRecord):
            removed = body.last_segment + 1, body.last_seq, body.last_hash
            self.recorded_retention = removed == (anchor.segment, anchor.seq, anchor.hash)


def _walk(storage: Storage, identity: Identity, last: int, found: Verification) -> None:
    checkpoint, anchor = found.checkpoint, found.anchor
    start = identity.start if anchor is None else anchor.position
    found.segments = last - start.segment + 1
    with storage.open(EVENTS) as events:
        watch = _Watch(events, identity, found)
        vouched = None if checkpoint is None else checkpoint.position
        try:
            end, rest = walk(open_segments(storage, start, last), start, vouched, watch)
        except BrokenError as problem:
            seq = problem.broken.seq or 0
            if watch.broken is not None and (watch.broken.seq or seq) >= seq:
                watch.broken = None  # what a changed line states about its events proves nothing
            found.records = max(seq - 1 - start.seq, 0)
            found.size = _size(storage, start.segment, problem.broken.file) + problem.broken.offset
            raise
        finally:
            found.source_events, found.ends = watch.lines, tuple(watch.ends)
            if watch.broken is not None:
                found.breaks += (watch.broken,)
        found.records, found.head = end.seq - start.seq, end.hash
        found.size = _size(storage, start.segment, end.file) + end.size
        if not watch.recorded_retention:
            kind, expected = BreakKind.RETENTION_MISMATCH, f"line {watch.line_to_see} to record it"
            found.breaks += (Break(ANCHOR, 1, 0, watch.line_to_see, kind, expected, "another line or none"),)
        found.breaks += tuple(unfinished(storage, end, rest, None if watch.broken else watch))


def _size(storage: Storage, first: int, until: str) -> int:
    """Bytes of the segments before this one."""
    total, number = 0, first
    while (path := segment_file(number)) != until:
        total += storage.size(path) or 0
        number += 1
    return total


def _changed_before(file: BinaryIO, anchor: Anchor) -> Break | None:
    """Whether the events of removed lines are unchanged."""
    file.seek(0)
    found = measured(file, anchor.source_events.size)[-1]
    if found == anchor.events_sha256:
        return None
    return Break(EVENTS, 1, 0, anchor.seq, BreakKind.EVENTS_MISMATCH, anchor.events_sha256, found)


def unfinished(storage: Storage, end: Position, rest: int, claims: EventsWalk | None) -> list[Break]:
    """The bytes after the last whole record and after the last claimed events, left by a crash."""
    breaks: list[Break] = []
    if rest:
        seq = end.seq + 1
        breaks.append(
            Break(end.file, end.lines + 1, end.size, seq, BreakKind.TORN_TAIL, "a whole line", f"{rest} bytes")
        )
    if claims is not None and (surplus := (storage.size(EVENTS) or 0) - claims.size) > 0:
        line, expected = claims.lines + 1, "events of a decision"
        breaks.append(Break(EVENTS, line, claims.size, None, BreakKind.ORPHAN_EVENTS, expected, f"{surplus} bytes"))
    return breaks


def find_segments(storage: Storage, anchor: Anchor | None, checkpoint: Checkpoint | None) -> tuple[int, list[int]]:
    """The last segment, and those that retention was about to remove.

    Raises BrokenError unless exactly the files of this record are present.
    From the anchor to the checkpoint, every segment must exist; after the checkpoint there may be one more,
    because a checkpoint is written before every new segment.
    """
    names = storage.names(RECORDS)
    numbers = segment_numbers(names)
    first = 1 if anchor is None else anchor.segment
    there = {number for number in numbers if number >= first}
    needed = max(there, default=first) if checkpoint is None else checkpoint.segment
    for number in range(first, needed + 1):
        if number not in there:
            raise broken_file(segment_file(number), BreakKind.MISSING_SEGMENT, "a file", "none")
    if EVENTS.rpartition("/")[2] not in names:
        raise broken_file(EVENTS, BreakKind.MISSING_SEGMENT, "a file", "none")
    expected_files = {EVENTS, *(segment_file(number) for number in numbers if number <= needed + 1)}
    for name in names:
        if name.endswith(".jsonl") and f"{RECORDS}/{name}" not in expected_files:
            raise broken_file(f"{RECORDS}/{name}", BreakKind.UNKNOWN_SEGMENT, "no such file", "a file")
    return max(there), [number for number in numbers if number < first]


def open_segments(storage: Storage, start: Position, last: int) -> Iterator[tuple[int, BinaryIO]]:
    """Each segment by its number from that of `start`, the first one standing at `start`."""
    for number in range(start.segment, last + 1):
        with storage.open(segment_file(number)) as file:
            if number == start.segment:
                file.seek(start.size)
            yield number, file

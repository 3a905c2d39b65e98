"""Checks a whole record: chain, segments, checkpoint, anchor, source events. Reads only; streams; needs no lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from engine.errors import Location, RecordError
from engine.record.chain import Entry, Position
from engine.record.checkpoint import (
    Anchor,
    Checkpoint,
    Events,
    Identity,
    parse_checkpoint,
    read_anchor,
    read_checkpoint,
    read_identity,
)
from engine.record.events_file import EventsWalk, last_line
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
    segment_file,
    segment_numbers,
)
from engine.record.model import RetentionRecord
from engine.record.segments import Segments, find_segments, left_break, open_segments
from engine.record.storage import DiskStorage, Storage
from engine.record.walk import walk

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """Where a segment that another one follows ends, and the bytes and lines of source events up to there."""

    end: Position
    events_size: int
    events_lines: int


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole record found; at most one break a file, the first of each.

    `records`, `source_events` and `size` count what holds before the first break, `removed` the lines that
    retention has removed before them; `head` is the SHA-256 of the last line, null where there is none or
    something before it is broken. `contained` are the seqs of ends known from elsewhere that the record has.
    `ends` are of all segments but the last. `writing` says that an engine holds the lock, so an unfinished end
    is no break.
    """

    breaks: tuple[Break, ...]
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
        """Whether everything holds."""
        return not self.breaks

    @property
    def removed(self) -> int:
        """How many lines retention has removed from the beginning."""
        return 0 if self.anchor is None else self.anchor.seq

    @property
    def repairable(self) -> bool:
        """Whether all there is to say is that a crash left an unfinished end, which the next start cuts."""
        return not self.ok and all(broken.repairable for broken in self.breaks)


def verify(state: Path, heads: Heads | None = None, against: bytes | None = None) -> Verification:
    """Check the record below the state folder. Raises RecordError where it cannot be read at all.

    The record has to contain the `heads` that the state remembers, by installation, and the checkpoint
    `against`: the content of a copy that was kept elsewhere.
    """
    storage = DiskStorage(state)
    try:
        while True:
            anchor = _anchor(storage)
            try:
                found = verify_storage(storage, heads or {}, against)
            except OSError:
                found = None
                if _anchor(storage) == anchor:
                    raise
            if found is not None and (found.ok or _anchor(storage) == anchor):
                return found  # else old segments were removed meanwhile
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise RecordError(
            f"the record cannot be read: {reason}",
            remedy="check the state folder and its permissions",
            where=Location(str(error.filename or state)),
        ) from error


def _anchor(storage: Storage) -> bytes | None:
    if storage.size(ANCHOR) is None:
        return None
    with storage.open(ANCHOR) as file:
        return file.read()


def verify_storage(storage: Storage, heads: Heads | None = None, against: bytes | None = None) -> Verification:
    """`verify` behind the storage interface. May raise OSError."""
    known = heads or {}
    try:
        identity = read_identity(storage)
        require_known(known, identity)
        if identity is None:
            require_unused(storage)
            none = Break(INSTALLATION, 1, 0, None, BreakKind.ROLLED_BACK, "a record", "none")
            return Verification(() if against is None else (none,))
        ends = [known[identity.installation]] if known else []
        if against is not None:
            ends.append(parse_checkpoint(against, identity).position)
    except BrokenError as problem:
        return Verification((problem.broken,))
    found = _Found()
    try:
        found.anchor = read_anchor(storage, identity)
    except BrokenError as problem:  # where the record starts is not known
        return Verification((problem.broken,))
    try:
        found.checkpoint = require_checkpoint(storage, identity, found.anchor)
    except BrokenError as problem:
        found.breaks.append(problem.broken)
    try:
        segments = find_segments(storage, found.anchor, found.checkpoint)
        found.breaks += [left_break(number) for number in segments.left]
        _walk(storage, identity, segments, found)
        for end in ends:
            require_contained(storage, identity, found.anchor, end)
            found.contained.append(end.seq)
    except BrokenError as problem:
        found.breaks.append(problem.broken)
    return _concluded(storage, found)


Heads = Mapping[str, Position]
"""Ends of records that are remembered outside of them, by installation."""


def require_known(heads: Heads, identity: Identity | None) -> None:
    """Raise BrokenError where ends of records are remembered, and none is of this installation."""
    if heads and (identity is None or identity.installation not in heads):
        expected, found = " or ".join(sorted(heads)), "none" if identity is None else identity.installation
        raise BrokenError(Break(INSTALLATION, 1, 0, None, BreakKind.ROLLED_BACK, expected, found))


def require_unused(storage: Storage) -> None:
    """Raise BrokenError unless this state folder was never used, or its first use did not finish."""
    checkpoint = read_checkpoint(storage, None)
    segments = [segment_file(number) for number in segment_numbers(storage.names(RECORDS))]
    written = any(storage.size(path) for path in (*segments, EVENTS)) or storage.size(ANCHOR) is not None
    if written or (checkpoint is not None and checkpoint.seq > 0):
        raise BrokenError(
            Break(INSTALLATION, 1, 0, None, BreakKind.INSTALLATION_MISSING, "the id of this record", "none")
        )


def require_checkpoint(storage: Storage, identity: Identity, anchor: Anchor | None) -> Checkpoint:
    """The signed checkpoint. Raises BrokenError: where there is a record there is one, from before its first line.

    It is not older than the retention that the anchor tells of.
    """
    checkpoint = read_checkpoint(storage, identity)
    if checkpoint is None:
        raise BrokenError(Break(CHECKPOINT, 1, 0, None, BreakKind.CHECKPOINT_MISSING, "a checkpoint", "none"))
    if anchor is not None and checkpoint.seq < anchor.retained_by:
        wanted, there = f"line {anchor.retained_by} or later", f"line {checkpoint.seq}"
        raise BrokenError(Break(CHECKPOINT, 1, 0, None, BreakKind.CHECKPOINT_MISMATCH, wanted, there))
    return checkpoint


def require_contained(storage: Storage, identity: Identity, anchor: Anchor | None, position: Position) -> None:
    """Raise BrokenError unless the record has the line that ended at `position`, or retention removed it."""
    if anchor is not None and position.seq <= anchor.seq:
        return
    path, end = position.file, position.size
    if end == 0 and position.segment > 1:  # nothing stands in it yet: the line before ends another segment
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


@dataclass(slots=True)
class _Found:
    breaks: list[Break] = field(default_factory=list)
    records: int = 0
    size: int = 0
    head: str | None = None
    events: int = 0
    segments: int = 0
    ends: list[SegmentEnd] = field(default_factory=list)
    contained: list[int] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    anchor: Anchor | None = None


class _Watch:
    """Compares what a walk comes past with the events, the checkpoint and the anchor."""

    def __init__(self, file: BinaryIO, genesis: str, found: _Found) -> None:
        anchor = found.anchor
        self._file = file
        self._genesis = genesis
        self._found = found
        self.wanted = None if anchor is None else anchor.retained_by
        self.told = anchor is None
        self.claims = EventsWalk(
            file, Events(size=0, lines=0, hash=genesis) if anchor is None else anchor.source_events
        )
        self.broken = None if anchor is None else _changed_before(file, anchor)
        file.seek(self.claims.size)

    def events(self, size: int, count: int, sha: str, seq: int) -> None:
        """Compare a decision's events, up to the first break: after it nothing lies where it should."""
        if self.broken is None:
            try:
                self.claims.claim(size, count, sha, seq)
            except BrokenError as problem:
                self.broken = problem.broken

    def vouched(self) -> None:
        """Compare the end of the events with what the checkpoint vouches for."""
        if self._found.checkpoint is None or self.broken is not None:
            return
        end, vouched = self.claims.end(self._genesis), self._found.checkpoint.source_events
        self._file.seek(self.claims.size)
        if end != vouched:
            kind, line = BreakKind.CHECKPOINT_MISMATCH, max(end.lines, 1)
            self.broken = Break(EVENTS, line, end.size, None, kind, vouched.hash, end.hash)

    def segment(self, end: Position) -> None:
        """Remember where it ends, and its events."""
        self._found.ends.append(SegmentEnd(end, self.claims.size, self.claims.lines))

    def line(self, entry: Entry) -> None:
        """Compare the line that tells of the last removal with the anchor."""
        anchor, body = self._found.anchor, entry.body
        if anchor is not None and isinstance(body, RetentionRecord):
            self.told = (body.last_segment + 1, body.last_seq, body.last_hash) == (
                anchor.segment,
                anchor.seq,
                anchor.hash,
            )


def _walk(storage: Storage, identity: Identity, segments: Segments, found: _Found) -> None:
    checkpoint, anchor = found.checkpoint, found.anchor
    start = identity.start if anchor is None else anchor.position
    found.segments = segments.last - segments.first + 1
    with storage.open(EVENTS) as events:
        watch = _Watch(events, identity.genesis, found)
        vouched = None if checkpoint is None else checkpoint.position
        try:
            walked = walk(open_segments(storage, start, segments.last), start, vouched, watch)
        except BrokenError as problem:
            seq = problem.broken.seq or 0
            if watch.broken is not None and (watch.broken.seq or seq) >= seq:
                watch.broken = None  # what a changed line says of its events is no news about them
            found.records = max(seq - 1 - start.seq, 0)
            found.size = _size(storage, segments.first, problem.broken.file) + problem.broken.offset
            raise
        finally:
            found.events = watch.claims.lines
            if watch.broken is not None:
                found.breaks.append(watch.broken)
        end = walked.end
        found.records, found.head = end.seq - start.seq, end.hash
        found.size = _size(storage, segments.first, end.file) + end.size
        if not watch.told:
            kind, wanted = BreakKind.RETENTION_MISMATCH, f"line {watch.wanted} to tell of it"
            found.breaks.append(Break(ANCHOR, 1, 0, watch.wanted, kind, wanted, "another line or none"))
        found.breaks += unfinished(storage, end, len(walked.rest), None if watch.broken else watch.claims)


def _size(storage: Storage, first: int, until: str) -> int:
    """Bytes of the segments before this one."""
    total, number = 0, first
    while (path := segment_file(number)) != until:
        total += storage.size(path) or 0
        number += 1
    return total


def _changed_before(file: BinaryIO, anchor: Anchor) -> Break | None:
    """Whether the events of removed lines are still those that they vouched for."""
    digest, left = sha256(), anchor.source_events.size
    file.seek(0)
    while left and (chunk := file.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    found = digest.hexdigest()
    if found == anchor.events_sha256:
        return None
    return Break(EVENTS, 1, 0, anchor.seq, BreakKind.EVENTS_MISMATCH, anchor.events_sha256, found)


def unfinished(storage: Storage, end: Position, rest: int, claims: EventsWalk | None) -> list[Break]:
    """What a crash left behind the last whole record and behind the last events that a decision claims."""
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


def _concluded(storage: Storage, found: _Found) -> Verification:
    breaks = tuple(found.breaks)
    writing = storage.locked(LOCK)
    if writing and all(broken.repairable for broken in breaks):
        breaks = ()  # a write is under way; its end is the writer's business
    return Verification(
        breaks,
        records=found.records,
        source_events=found.events,
        size=found.size,
        head=found.head,
        checkpoint=found.checkpoint,
        anchor=found.anchor,
        segments=found.segments,
        ends=tuple(found.ends),
        writing=writing,
        contained=tuple(found.contained),
    )

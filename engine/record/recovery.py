"""Brings the files of a record into a state that can be appended to: first use, and what a crash left behind.

Only two things are ever cut: an unfinished line at the very end of the record, and source events behind the
last decision, because nobody was answered on their account. Everything else that is broken raises BrokenError.
A process that opens its record again after a fault knows what it answered: whatever follows is cut as well.

A cut is done in steps that can each be the last before a crash, and repeated without harm:
keep the bytes aside as `cut/<seq>-<offset>-<file>.pending`, cut them off, append a recovery record with
that seq, drop the `.pending`. A pending file whose seq is already in the record needs only its new name.

Segments that retention was about to remove, before the signed anchor, are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from engine.record.chain import Entry, Position, encode
from engine.record.checkpoint import (
    Anchor,
    Checkpoint,
    Events,
    Identity,
    new_identity,
    read_anchor,
    read_identity,
    write_checkpoint,
    write_installation,
)
from engine.record.events_file import EventsWalk, last_line
from engine.record.layout import (
    CHECKPOINTS,
    CUT,
    DECISIONS,
    EVENTS,
    KEYS,
    RECORDS,
    Break,
    BreakKind,
    BrokenError,
    segment_file,
)
from engine.record.model import RecoveryRecord
from engine.record.segments import find_segments, open_segments
from engine.record.storage import Storage
from engine.record.verify import (
    Heads,
    require_checkpoint,
    require_contained,
    require_known,
    require_unused,
    unfinished,
)
from engine.record.walk import walk

_CHUNK = 1 << 20
_PENDING = re.compile(r"([0-9]{12})-([0-9]{1,18})-([a-z_0-9.]{1,64}\.jsonl)\.pending")


@dataclass(slots=True)
class Opened:
    """Where writing goes on; changes with every line written."""

    identity: Identity
    end: Position
    events: Events
    vouched: Position
    anchor: Anchor | None
    recovered: tuple[RecoveryRecord, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """How far this process has answered from the record of an installation.

    `alone` says that it has held the lock ever since, so that all lines after `end` are its own.
    """

    installation: str
    end: Position
    alone: bool


def recover(storage: Storage, clock: Callable[[], str], heads: Heads, answered: Answered | None = None) -> Opened:
    """Make the record ready for the one writer, which holds the lock. Raises BrokenError, OSError.

    Reads no more than what follows the last checkpoint. The record has to contain every end that is remembered.
    """
    known = heads
    if answered is not None and not heads:
        known = {answered.installation: answered.end}
    identity = read_identity(storage)
    require_known(known, identity)
    if identity is None:
        identity = _first_use(storage, clock)
    anchor = read_anchor(storage, identity)
    checkpoint = require_checkpoint(storage, identity, anchor)
    if checkpoint.seq == 0:
        storage.sync_folder("")  # the first use may have failed at its very last step
    segments = find_segments(storage, anchor, checkpoint)
    if answered is not None and answered.alone:
        require_contained(storage, identity, anchor, answered.end)
        _cut_unanswered(storage, answered.end)
    if segments.last > checkpoint.segment:
        storage.sync_folder(RECORDS)  # opening the segment may have failed at its last step
    opened, cuts = _read_tail(storage, identity, anchor, checkpoint, segments.last)
    for end in (*([known[identity.installation]] if known else ()), *([answered.end] if answered else ())):
        require_contained(storage, identity, anchor, end)
    _write_again(storage, opened.end.file, _begin(opened.end, checkpoint), opened.end.size)
    _write_again(storage, EVENTS, checkpoint.source_events.size, opened.events.size)
    for cut in cuts:
        _cut(storage, opened.end, cut)
    opened.recovered = tuple(_finish_cuts(storage, opened, clock))
    remove_segments(storage, segments.left)
    return opened


def _cut_unanswered(storage: Storage, end: Position) -> None:
    surplus = (storage.size(end.file) or 0) - end.size
    if surplus > 0:
        kind, found = BreakKind.TORN_TAIL, f"{surplus} bytes"
        _cut(
            storage, end, Break(end.file, end.lines + 1, end.size, end.seq + 1, kind, "lines that were answered", found)
        )


def remove_segments(storage: Storage, numbers: Iterable[int]) -> None:
    """Remove segments that the anchor says are gone, for good."""
    gone = [segment_file(number) for number in numbers]
    for path in gone:
        storage.remove(path)
    if gone:
        storage.sync_folder(RECORDS)


def _first_use(storage: Storage, clock: Callable[[], str]) -> Identity:
    """The installation file comes last: while it is missing, nothing was ever recorded and all may be made again."""
    require_unused(storage)
    storage.make_folder(KEYS)
    storage.make_folder(CHECKPOINTS)
    storage.sync_folder("")
    identity = new_identity(storage)
    for path in (DECISIONS, EVENTS):
        if storage.size(path) is None:
            storage.create(path)
    storage.sync_folder(RECORDS)
    nothing = Events(size=0, lines=0, hash=identity.genesis)
    write_checkpoint(storage, identity, identity.start, nothing, clock())
    write_installation(storage, identity)
    return identity


class _Claims:
    """Follows the events that the tail's decisions claim."""

    wanted: int | None = None

    def __init__(self, claims: EventsWalk) -> None:
        self.events = claims.claim

    def vouched(self) -> None:
        """The tail starts where the checkpoint ends."""

    def line(self, entry: Entry) -> None:
        """No line is wanted."""

    def segment(self, end: Position) -> None:
        """Nothing is to be known of it."""


def _read_tail(
    storage: Storage, identity: Identity, anchor: Anchor | None, checkpoint: Checkpoint, last: int
) -> tuple[Opened, list[Break]]:
    start, genesis, claimed = checkpoint.position, identity.genesis, checkpoint.source_events
    with storage.open(start.file) as segment:
        _require_end(segment, start, storage.size(start.file) or 0, genesis)
    if last > start.segment and storage.size(start.file) != start.size:
        wanted, found = f"{start.size} bytes and another segment", f"{storage.size(start.file)} bytes"
        kind = BreakKind.CHECKPOINT_MISMATCH
        raise BrokenError(Break(start.file, start.lines + 1, start.size, start.seq + 1, kind, wanted, found))
    with storage.open(EVENTS) as events:
        end = Position(0, claimed.lines, claimed.size, claimed.lines, claimed.hash)
        _require_end(events, end, storage.size(EVENTS) or 0, genesis)
        claims = EventsWalk(events, claimed)
        walked = walk(open_segments(storage, start, last), start, None, _Claims(claims))
        cuts = unfinished(storage, walked.end, len(walked.rest), claims)
        return Opened(identity, walked.end, claims.end(genesis), start, anchor, ()), cuts


def _require_end(file: BinaryIO, vouched: Position, size: int, genesis: str) -> None:
    path = vouched.file if vouched.segment else EVENTS
    if size < vouched.size:
        wanted, found = f"{vouched.size} bytes", f"{size} bytes"
        raise BrokenError(Break(path, vouched.lines, size, None, BreakKind.BEFORE_CHECKPOINT, wanted, found))
    offset, digest = last_line(file, vouched.size, genesis)
    if digest != vouched.hash:
        kind = BreakKind.CHECKPOINT_MISMATCH
        raise BrokenError(Break(path, vouched.lines, offset, None, kind, vouched.hash, digest))


def _begin(end: Position, checkpoint: Checkpoint) -> int:
    return checkpoint.size if end.segment == checkpoint.segment else 0


def _write_again(storage: Storage, path: str, begin: int, end: int) -> None:
    """Write the same bytes over what no checkpoint vouches for, then sync.

    After a failed sync the kernel may show bytes that it will never write (fsync(2)); whoever was to be
    answered on their account was not, but the next lines would stand on them.
    """
    if begin == end:
        return
    with storage.open(path) as file:
        file.seek(begin)
        while begin < end:
            chunk = file.read(min(_CHUNK, end - begin))
            storage.rewrite(path, begin, chunk)
            begin += len(chunk)
    storage.sync(path)


def _cut(storage: Storage, end: Position, cut: Break) -> None:
    storage.make_folder(CUT)
    storage.sync_folder(RECORDS)
    _keep(storage, end, cut)
    storage.truncate(cut.file, cut.offset)
    storage.sync(cut.file)


def _keep(storage: Storage, end: Position, cut: Break) -> None:
    pending = _pending(storage)
    digest = _digest(storage, cut.file, cut.offset)[1]
    name = cut.file.rpartition("/")[2]
    for path, (_, offset, file) in pending.items():
        if (offset, file) == (cut.offset, name) and _digest(storage, path, 0)[1] == digest:
            storage.sync_folder(CUT)
            return  # kept by a start that got no further
    seq = max([end.seq, *(taken for taken, _, _ in pending.values())]) + 1
    kept = f"{CUT}/{seq:012d}-{cut.offset}-{name}.pending"
    temporary = f"{CUT}/new"
    storage.remove(temporary)
    storage.create(temporary)
    with storage.open(cut.file) as source:
        source.seek(cut.offset)
        while chunk := source.read(_CHUNK):
            storage.append(temporary, chunk)
    storage.sync(temporary)
    storage.rename(temporary, kept)
    storage.sync_folder(CUT)


def _finish_cuts(storage: Storage, opened: Opened, clock: Callable[[], str]) -> list[RecoveryRecord]:
    recovered = []
    for path, (seq, offset, file) in _pending(storage).items():
        final = path.removesuffix(".pending")
        if seq > opened.end.seq:
            size, digest = _digest(storage, path, 0)
            kept = final.removeprefix(f"{RECORDS}/")
            record = RecoveryRecord(time=clock(), file=file, offset=offset, bytes=size, sha256=digest, kept=kept)
            line = encode(opened.end.seq + 1, opened.end.hash, record)
            storage.append(opened.end.file, line + b"\n")
            storage.sync(opened.end.file)
            opened.end = opened.end.after(lines=1, size=len(line) + 1, hash=sha256(line).hexdigest())
            recovered.append(record)
        storage.rename(path, final)
        storage.sync_folder(CUT)
    return recovered


def _pending(storage: Storage) -> dict[str, tuple[int, int, str]]:
    matches = (_PENDING.fullmatch(name) for name in storage.names(CUT))
    return {f"{CUT}/{match[0]}": (int(match[1]), int(match[2]), match[3]) for match in matches if match}


def _digest(storage: Storage, path: str, offset: int) -> tuple[int, str]:
    digest, size = sha256(), 0
    with storage.open(path) as file:
        file.seek(offset)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()

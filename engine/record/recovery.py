"""Prepares the files of a record for appending: first use, and recovery after a crash.

Only two things are ever cut: an unfinished line at the very end of the record, and source events after the
last decision, because no caller has received an answer for them. Everything else that is broken raises BrokenError.
A process that reopens its record after a fault knows what it answered: everything after that is cut as well.

A cut is done in steps that can each be the last before a crash, and repeated without harm:
save the bytes as `cut/<seq>-<offset>-<file>.pending`, cut them off, append a recovery record with
that seq, drop the `.pending`. A pending file whose seq is already in the record needs only its new name.

Segments that retention was about to remove, before the signed anchor, are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256

from engine.record.chain import Position, encode
from engine.record.checkpoint import (
    Checkpoint,
    Events,
    Identity,
    new_identity,
    read_anchor,
    read_identity,
    write_checkpoint,
    write_installation,
)
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
from engine.record.lines import last_line, measured
from engine.record.model import RecoveryRecord
from engine.record.storage import Storage
from engine.record.verify import (
    Heads,
    find_segments,
    open_segments,
    require_checkpoint,
    require_contained,
    require_known,
    require_unused,
    unfinished,
)
from engine.record.walk import EventsWalk, walk

_CHUNK = 1 << 20
_PENDING = re.compile(r"([0-9]{12})-([0-9]{1,18})-([a-z_0-9.]{1,64}\.jsonl)\.pending")


@dataclass(slots=True)
class Opened:
    """The end of an open record; changes with every written line."""

    identity: Identity
    end: Position
    events: Events
    vouched: Position
    recovered: tuple[RecoveryRecord, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The last position of an installation's record that this process has answered from.

    `alone` means that it has kept the lock since then, so that all lines after `end` are its own.
    """

    installation: str
    end: Position
    alone: bool


def recover(storage: Storage, clock: Callable[[], str], heads: Heads, answered: Answered | None) -> Opened:
    """Prepare the record for its only writer, which has the lock. Raises BrokenError, OSError.

    Reads only the lines after the last checkpoint. The record must contain every remembered head.
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
    last, left = find_segments(storage, anchor, checkpoint)
    if answered is not None and answered.alone:
        require_contained(storage, identity, anchor, answered.end)
        _cut_unanswered(storage, answered.end)
    if last > checkpoint.segment:
        storage.sync_folder(RECORDS)  # opening the segment may have failed at its last step
    opened, cuts = _read_tail(storage, identity, checkpoint, last)
    for end in (*([known[identity.installation]] if known else ()), *([answered.end] if answered else ())):
        require_contained(storage, identity, anchor, end)
    begin = checkpoint.size if opened.end.segment == checkpoint.segment else 0
    _write_again(storage, opened.end.file, begin, opened.end.size)
    _write_again(storage, EVENTS, checkpoint.source_events.size, opened.events.size)
    for cut in cuts:
        _cut(storage, opened.end, cut)
    opened.recovered = tuple(_finish_cuts(storage, opened, clock))
    remove_segments(storage, left)
    return opened


def require_ends(storage: Storage) -> None:
    """Raise BrokenError if `recover` would, but for the lines after the checkpoint. May raise OSError."""
    identity = read_identity(storage)
    if identity is None:
        require_unused(storage)
        return
    checkpoint = require_checkpoint(storage, identity, read_anchor(storage, identity))
    _require_end(storage, checkpoint.position.file, checkpoint.position, identity.genesis)
    _require_end(storage, EVENTS, checkpoint.source_events, identity.genesis)


def _cut_unanswered(storage: Storage, end: Position) -> None:
    surplus = (storage.size(end.file) or 0) - end.size
    if surplus > 0:
        kind, found = BreakKind.TORN_TAIL, f"{surplus} bytes"
        _cut(
            storage, end, Break(end.file, end.lines + 1, end.size, end.seq + 1, kind, "lines that were answered", found)
        )


def remove_segments(storage: Storage, numbers: Iterable[int]) -> None:
    """Remove segments that the anchor lists as removed."""
    obsolete = [segment_file(number) for number in numbers]
    for path in obsolete:
        storage.remove(path)
    if obsolete:
        storage.sync_folder(RECORDS)


def _first_use(storage: Storage, clock: Callable[[], str]) -> Identity:
    """The installation file is written last: without it nothing was recorded, and all files may be recreated."""
    require_unused(storage)
    storage.make_folder(KEYS)
    storage.make_folder(CHECKPOINTS)
    storage.sync_folder("")
    identity = new_identity(storage)
    for path in (DECISIONS, EVENTS):
        if storage.size(path) is None:
            storage.create(path)
    storage.sync_folder(RECORDS)
    write_checkpoint(storage, identity, identity.start, identity.no_events, clock())
    write_installation(storage, identity)
    return identity


def _read_tail(storage: Storage, identity: Identity, checkpoint: Checkpoint, last: int) -> tuple[Opened, list[Break]]:
    start, genesis, claimed = checkpoint.position, identity.genesis, checkpoint.source_events
    _require_end(storage, start.file, start, genesis)
    size = storage.size(start.file)
    if last > start.segment and size != start.size:
        expected, found = f"{start.size} bytes and another segment", f"{size} bytes"
        kind = BreakKind.CHECKPOINT_MISMATCH
        raise BrokenError(Break(start.file, start.lines + 1, start.size, start.seq + 1, kind, expected, found))
    _require_end(storage, EVENTS, claimed, genesis)
    with storage.open(EVENTS) as events:
        claims = EventsWalk(events, claimed)
        end, rest = walk(open_segments(storage, start, last), start, None, claims)
        return Opened(identity, end, claims.end(genesis), start, ()), unfinished(storage, end, rest, claims)


def _require_end(storage: Storage, path: str, known: Position | Events, genesis: str) -> None:
    """Raise BrokenError unless the line with the known digest ends at the position in the checkpoint."""
    with storage.open(path) as file:
        size = storage.size(path) or 0
        offset, digest = last_line(file, known.size, genesis)
    if size < known.size:
        expected, found = f"{known.size} bytes", f"{size} bytes"
        raise BrokenError(Break(path, known.lines, size, None, BreakKind.BEFORE_CHECKPOINT, expected, found))
    if digest != known.hash:
        kind = BreakKind.CHECKPOINT_MISMATCH
        raise BrokenError(Break(path, known.lines, offset, None, kind, known.hash, digest))


def _write_again(storage: Storage, path: str, begin: int, end: int) -> None:
    """Rewrite the bytes after the checkpoint unchanged, then sync.

    After a failed sync, the kernel may show bytes that it will never write (fsync(2)). No caller was answered
    because of them, but the next lines would depend on them.
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
    digest = _measured(storage, cut.file, cut.offset)[-1]
    name = cut.file.rpartition("/")[2]
    for path, (_, offset, file) in pending.items():
        if (offset, file) == (cut.offset, name) and _measured(storage, path)[-1] == digest:
            storage.sync_folder(CUT)
            return  # left by a start that failed later
    seq = max([end.seq, *(used for used, _, _ in pending.values())]) + 1
    pending_file = f"{CUT}/{seq:012d}-{cut.offset}-{name}.pending"
    temporary = f"{CUT}/new"
    storage.remove(temporary)
    storage.create(temporary)
    with storage.open(cut.file) as source:
        source.seek(cut.offset)
        while chunk := source.read(_CHUNK):
            storage.append(temporary, chunk)
    storage.sync(temporary)
    storage.rename(temporary, pending_file)
    storage.sync_folder(CUT)


def _finish_cuts(storage: Storage, opened: Opened, clock: Callable[[], str]) -> list[RecoveryRecord]:
    recovered = []
    for path, (seq, offset, file) in _pending(storage).items():
        final = path.removesuffix(".pending")
        if seq > opened.end.seq:
            size, _, digest = _measured(storage, path)
            pending_name = final.removeprefix(f"{RECORDS}/")
            record = RecoveryRecord(
                time=clock(), file=file, offset=offset, bytes=size, sha256=digest, kept=pending_name
            )
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


def _measured(storage: Storage, path: str, offset: int = 0) -> tuple[int, int, str]:
    with storage.open(path) as file:
        file.seek(offset)
        return measured(file)

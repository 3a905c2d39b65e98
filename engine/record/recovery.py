"""Brings the files of a record into a state that can be appended to: first use, and what a crash left behind.

Only two things are ever cut: an unfinished line at the very end of the record, and source events behind the
last decision, because nobody was answered on their account. Everything else that is broken raises BrokenError.

A cut is done in steps that can each be the last before a crash, and repeated without harm:
keep the bytes aside as `cut/<seq>-<offset>-<file>.pending`, cut them off, append a recovery record with
that seq, drop the `.pending`. A pending file whose seq is already in the record needs only its new name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from engine.record.chain import Position, encode, walk
from engine.record.checkpoint import (
    Checkpoint,
    Events,
    Identity,
    new_identity,
    read_identity,
    write_checkpoint,
    write_installation,
)
from engine.record.events_file import EventsWalk, last_line
from engine.record.layout import CHECKPOINTS, CUT, DECISIONS, EVENTS, KEYS, RECORDS, Break, BreakKind, BrokenError
from engine.record.model import RecoveryRecord
from engine.record.storage import Storage
from engine.record.verify import require_checkpoint, require_files, require_unused, unfinished

_CHUNK = 1 << 20
_PENDING = re.compile(r"([0-9]{12})-([0-9]{1,18})-([a-z_0-9.]{1,64}\.jsonl)\.pending")


@dataclass(slots=True)
class Opened:
    """Where writing goes on; changes with every line written."""

    identity: Identity
    end: Position
    events: Events
    vouched: Position
    recovered: tuple[RecoveryRecord, ...]


def recover(storage: Storage, clock: Callable[[], str]) -> Opened:
    """Make the record ready for the one writer, which holds the lock. Raises BrokenError, OSError.

    Reads no more than what follows the last checkpoint.
    """
    identity = read_identity(storage)
    if identity is None:
        identity = _first_use(storage, clock)
    checkpoint = require_checkpoint(storage, identity)
    if checkpoint.seq == 0:
        storage.sync_folder("")  # the first use may have failed at its very last step
    require_files(storage)
    opened, cuts = _read_tail(storage, identity, checkpoint)
    _write_again(storage, DECISIONS, checkpoint.size, opened.end.size)
    _write_again(storage, EVENTS, checkpoint.source_events.size, opened.events.size)
    for cut in cuts:
        _cut(storage, opened.end, cut)
    opened.recovered = tuple(_finish_cuts(storage, opened, clock))
    return opened


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
    write_checkpoint(storage, identity, Position(0, 0, identity.genesis), nothing, clock())
    write_installation(storage, identity)
    return identity


def _read_tail(storage: Storage, identity: Identity, checkpoint: Checkpoint) -> tuple[Opened, list[Break]]:
    start, genesis = checkpoint.position, identity.genesis
    with storage.open(DECISIONS) as decisions, storage.open(EVENTS) as events:
        claimed = checkpoint.source_events
        _require_end(storage, DECISIONS, decisions, start, genesis)
        _require_end(storage, EVENTS, events, Position(claimed.size, claimed.lines, claimed.hash), genesis)
        decisions.seek(start.size)
        claims = EventsWalk(events, claimed)
        walked = walk(decisions, start, None, claims.claim, lambda: None)
        cuts = unfinished(storage, walked.end, len(walked.rest), claims)
        return Opened(identity, walked.end, claims.end(genesis), start, ()), cuts


def _require_end(storage: Storage, path: str, file: BinaryIO, vouched: Position, genesis: str) -> None:
    size = storage.size(path) or 0
    if size < vouched.size:
        wanted, found = f"{vouched.size} bytes", f"{size} bytes"
        raise BrokenError(Break(path, vouched.seq, size, None, BreakKind.BEFORE_CHECKPOINT, wanted, found))
    offset, digest = last_line(file, vouched.size, genesis)
    if digest != vouched.hash:
        kind = BreakKind.CHECKPOINT_MISMATCH
        raise BrokenError(Break(path, vouched.seq, offset, None, kind, vouched.hash, digest))


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
            storage.append(DECISIONS, line + b"\n")
            storage.sync(DECISIONS)
            opened.end = Position(opened.end.size + len(line) + 1, opened.end.seq + 1, sha256(line).hexdigest())
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

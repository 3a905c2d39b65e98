"""Checks a whole record from its first line: chain, checkpoint, source events. Reads only; streams; needs no lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import Location, RecordError
from engine.record.chain import Position, walk
from engine.record.checkpoint import Checkpoint, Events, Identity, read_checkpoint, read_identity
from engine.record.events_file import EventsWalk
from engine.record.layout import (
    CHECKPOINT,
    DECISIONS,
    EVENTS,
    INSTALLATION,
    LOCK,
    RECORDS,
    Break,
    BreakKind,
    BrokenError,
)
from engine.record.storage import DiskStorage, Storage


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole record found; at most one break a file, the first of each.

    `records`, `source_events` and `size` count what holds before the first break; `head` is the SHA-256
    of the last line, null where there is none or something before it is broken.
    `writing` says that an engine holds the lock, so an unfinished end is no break.
    """

    breaks: tuple[Break, ...]
    records: int = 0
    source_events: int = 0
    size: int = 0
    head: str | None = None
    checkpoint: Checkpoint | None = None
    writing: bool = False

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return not self.breaks

    @property
    def repairable(self) -> bool:
        """Whether all there is to say is that a crash left an unfinished end, which the next start cuts."""
        return not self.ok and all(broken.repairable for broken in self.breaks)


def verify(state: Path) -> Verification:
    """Check the record below the state folder. Raises RecordError where it cannot be read at all."""
    try:
        return verify_storage(DiskStorage(state))
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise RecordError(
            f"the record cannot be read: {reason}",
            remedy="check the state folder and its permissions",
            where=Location(str(error.filename or state)),
        ) from error


def verify_storage(storage: Storage) -> Verification:
    """`verify` behind the storage interface. May raise OSError."""
    try:
        identity = read_identity(storage)
        if identity is None:
            require_unused(storage)
            return Verification(())
    except BrokenError as problem:
        return Verification((problem.broken,))
    found = _Found()
    checkpoint = None
    try:
        checkpoint = require_checkpoint(storage, identity)
    except BrokenError as problem:
        found.breaks.append(problem.broken)
    try:
        require_files(storage)
        _walk(storage, identity, checkpoint, found)
    except BrokenError as problem:
        found.breaks.append(problem.broken)
    return _concluded(storage, checkpoint, found)


def require_unused(storage: Storage) -> None:
    """Raise BrokenError unless this state folder was never used, or its first use did not finish."""
    checkpoint = read_checkpoint(storage, None)
    if storage.size(DECISIONS) or storage.size(EVENTS) or (checkpoint is not None and checkpoint.seq > 0):
        raise BrokenError(
            Break(INSTALLATION, 1, 0, None, BreakKind.INSTALLATION_MISSING, "the id of this record", "none")
        )


def require_checkpoint(storage: Storage, identity: Identity) -> Checkpoint:
    """The signed checkpoint. Raises BrokenError: where there is a record there is one, from before its first line."""
    checkpoint = read_checkpoint(storage, identity)
    if checkpoint is None:
        raise BrokenError(Break(CHECKPOINT, 1, 0, None, BreakKind.CHECKPOINT_MISSING, "a checkpoint", "none"))
    return checkpoint


def require_files(storage: Storage) -> None:
    """Raise BrokenError unless exactly the files of this record are there."""
    for path in (DECISIONS, EVENTS):
        if storage.size(path) is None:
            raise BrokenError(Break(path, 1, 0, None, BreakKind.MISSING_SEGMENT, "a file", "none"))
    for name in storage.names(RECORDS):
        path = f"{RECORDS}/{name}"
        if name.endswith(".jsonl") and path not in {DECISIONS, EVENTS}:
            raise BrokenError(Break(path, 1, 0, None, BreakKind.UNKNOWN_SEGMENT, "no such file", "a file"))


@dataclass(slots=True)
class _Found:
    breaks: list[Break] = field(default_factory=list)
    records: int = 0
    size: int = 0
    head: str | None = None
    events: int = 0


def _walk(storage: Storage, identity: Identity, checkpoint: Checkpoint | None, found: _Found) -> None:
    genesis = identity.genesis
    nothing = Events(size=0, lines=0, hash=genesis)
    with storage.open(DECISIONS) as decisions, storage.open(EVENTS) as events:
        claims = EventsWalk(events, nothing)
        events_break: Break | None = None

        def claim(size: int, count: int, sha: str, seq: int) -> None:
            nonlocal events_break
            if events_break is None:  # after the first break nothing lies where it should
                try:
                    claims.claim(size, count, sha, seq)
                except BrokenError as problem:
                    events_break = problem.broken

        def compare() -> None:
            nonlocal events_break
            if checkpoint is None or events_break is not None:
                return
            end, vouched = claims.end(genesis), checkpoint.source_events
            events.seek(claims.size)
            if end != vouched:
                kind, line = BreakKind.CHECKPOINT_MISMATCH, max(end.lines, 1)
                events_break = Break(EVENTS, line, end.size, None, kind, vouched.hash, end.hash)

        vouched = None if checkpoint is None else checkpoint.position
        try:
            walked = walk(decisions, Position(0, 0, genesis), vouched, claim, compare)
        except BrokenError as problem:
            line = problem.broken.line
            if events_break is not None and (events_break.seq or line) >= line:
                events_break = None  # what a changed line says of its events is no news about them
            found.records, found.size = line - 1, problem.broken.offset
            raise
        finally:
            found.events = claims.lines
            if events_break is not None:
                found.breaks.append(events_break)
        found.records, found.size, found.head = walked.end.seq, walked.end.size, walked.end.hash
        found.breaks += unfinished(storage, walked.end, len(walked.rest), None if events_break else claims)


def unfinished(storage: Storage, end: Position, rest: int, claims: EventsWalk | None) -> list[Break]:
    """What a crash left behind the last whole record and behind the last events that a decision claims."""
    breaks: list[Break] = []
    if rest:
        line = end.seq + 1
        breaks.append(Break(DECISIONS, line, end.size, line, BreakKind.TORN_TAIL, "a whole line", f"{rest} bytes"))
    surplus = 0 if claims is None else (storage.size(EVENTS) or 0) - claims.size
    if claims is not None and surplus > 0:
        line, expected = claims.lines + 1, "events of a decision"
        breaks.append(Break(EVENTS, line, claims.size, None, BreakKind.ORPHAN_EVENTS, expected, f"{surplus} bytes"))
    return breaks


def _concluded(storage: Storage, checkpoint: Checkpoint | None, found: _Found) -> Verification:
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
        checkpoint=checkpoint,
        writing=writing,
    )

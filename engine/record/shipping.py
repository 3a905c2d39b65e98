"""Ships the chains of a state folder to an object store, and keeps what is not shipped yet from retention.

For each chain, in order, each step durable before the next: closed segments with their source events, a receipt
beside the chain, the open segment up to the last checkpoint, and the signed statement of what is there. Whatever
is sent is read back. A shipment that ended at any moment is continued by the next one: only objects that no
receipt and no statement covers are written again, and only if they are the beginning of what they should be.

A receipt is `checkpoints/shipped.json`; `shipping.json` in the state folder names the store.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import Field, ValidationError

from engine.documents.canonical import canonical
from engine.documents.files import printable
from engine.errors import EngineError, GatherError, Location, RecordError
from engine.model import Count, Model, Sha256
from engine.record.chain import Position
from engine.record.chains import chain_folders
from engine.record.checkpoint import (
    Anchor,
    Checkpoint,
    Events,
    Identity,
    Signed,
    parsed,
    read_anchor,
    read_identity,
    signed_statement,
)
from engine.record.layout import CHECKPOINTS, EVENTS, RECORDS, Break, BreakKind, BrokenError, broken_file, segment_file
from engine.record.lines import measured
from engine.record.log import broken_error, unavailable
from engine.record.model import utc_now
from engine.record.objects import ObjectStore, Part
from engine.record.storage import LockHeldError, Storage, read_file, readable, write_file
from engine.record.stored import (
    OPEN,
    STATEMENT,
    Statement,
    Trust,
    chain_place,
    events_among,
    events_object,
    open_object,
    read_statement,
    segment_object,
)
from engine.record.verify import open_segments, require_checkpoint, require_contained
from engine.record.walk import EventsWalk, SegmentEnd, walk
from engine.times import timestamp

SHIPPING = "shipping.json"
RECEIPT = f"{CHECKPOINTS}/shipped.json"
_LOCK = f"{CHECKPOINTS}/shipping.lock"


class Destination(Model):
    """Content of shipping.json: where the record is shipped to."""

    url: str


class Receipt(Signed):
    """Everything before segment `segment` is at the store `url`: `seq` lines, `hash` is of the last of them."""

    url: str
    segment: Annotated[int, Field(ge=1)]
    seq: Count
    hash: Sha256
    source_events: Events

    @property
    def position(self) -> Position:
        """The start of what may not be at the store."""
        return Position(self.segment, 0, 0, self.seq, self.hash)


@dataclass(frozen=True, slots=True)
class Shipped:
    """What one shipment sent of a chain: closed segments and bytes; the store now has it up to line `seq`."""

    segments: int
    size: int
    seq: int


def destination(state: Path) -> str | None:
    """The store to which the record below this folder is shipped; None if it is not. Raises RecordError."""
    try:
        written = read_file(Storage(state), SHIPPING)
        return None if written is None else Destination.model_validate_json(written).url
    except (OSError, ValidationError) as error:
        remedy = "restore the file; remove it to stop shipping"
        raise RecordError(
            f"`{SHIPPING}` cannot be read", remedy=remedy, where=Location(f"{state}/{SHIPPING}")
        ) from error


def read_receipt(storage: Storage, identity: Identity, url: str) -> Receipt | None:
    """The receipt of a chain for this store; None if nothing of it is known to be there. Raises RecordError."""
    try:
        written = read_file(storage, RECEIPT)
        receipt = None if written is None else parsed(written, RECEIPT, Receipt, identity)
    except BrokenError as problem:
        raise broken_error(problem, storage.place) from None
    return receipt if receipt is not None and receipt.url == url else None


def first_unshipped(state: Path, storage: Storage, identity: Identity) -> int | None:
    """The first segment of a chain that may not be at the store; None if the record is not shipped."""
    url = destination(state)
    if url is None:
        return None
    receipt = read_receipt(storage, identity, url)
    return 1 if receipt is None else receipt.segment


def trust(state: Path, url: str, keys: Sequence[bytes], against: bytes | None) -> Trust:
    """These keys, and the keys and receipts of a state folder; nothing of it if there is none. Raises RecordError."""
    known: dict[tuple[str, int], tuple[str, Position]] = {}
    owners = [Identity("", key) for key in keys]
    engine = ""
    with readable(state):
        for number, folder in chain_folders(state).items():
            storage = Storage(folder)
            try:
                identity = read_identity(storage)
            except BrokenError as problem:
                raise broken_error(problem, str(folder)) from None
            if identity is None:
                continue
            owners.append(identity)
            engine = engine or identity.installation
            if (receipt := read_receipt(storage, identity, url)) is not None:
                known[engine, number] = identity.installation, receipt.position
    return Trust({owner.key_id: owner.key for owner in owners}, known, against)


def ship(state: Path, url: str) -> dict[int, Shipped]:
    """Ship every chain below a state folder; returns what was sent of each, empty if nothing was ever recorded.

    Raises EngineError for the first chain that failed, after every other one was tried, but for those after one that
    another process ships.
    """
    store, known = ObjectStore(url), destination(state)
    _demand_apart(store, state)
    if known not in (None, store.url):
        raise RecordError(
            f"this record is shipped to `{known}`",
            remedy=f"name that store; to change it, remove {SHIPPING} from the state folder and ship everything again",
            where=Location(f"{state}/{SHIPPING}"),
        )
    done, failed, engine = dict[int, Shipped](), list[EngineError](), ""
    for number, folder in chain_folders(state).items():
        try:
            with closing(Storage(folder)) as storage:
                identity = read_identity(storage)
                if identity is None:
                    continue
                storage.lock(_LOCK, 0.0)
                engine = engine or identity.installation
                done[number] = _Shipment(storage, identity, store, engine, number).run(state)
        except EngineError as error:
            failed.append(error)
        except LockHeldError:
            failed.append(
                RecordError(
                    "another process ships this chain",
                    remedy="wait until it has ended",
                    where=Location(str(folder)),
                    code="engine.record_locked",
                )
            )
            break  # it ships the next ones too; both would refuse each other
        except BrokenError as problem:
            failed.append(broken_error(problem, str(folder)))
        except OSError as error:
            failed.append(unavailable(error, str(folder)))
    if failed:
        raise failed[0]
    return done


def _demand_apart(store: ObjectStore, state: Path) -> None:
    """Raise GatherError for a store inside the state folder or around it: whatever removes one removes both."""
    if store.folder is None:
        return
    own, place = [state, *(folder / RECORDS for folder in chain_folders(state).values())], store.folder.resolve()
    inside = any(place.is_relative_to(one.resolve()) for one in own)
    if inside or any(one.resolve().is_relative_to(place) for one in own):
        raise GatherError(
            f"the store `{printable(store.url)}` {'is inside' if inside else 'contains'} the state folder",
            remedy="name a bucket, or a folder on another disk",
            where=Location(str(state)),
        )


class _LinesWalk(EventsWalk):
    """Leaves source events alone."""

    def events(self, size: int, count: int, sha: str, seq: int) -> None:
        pass


class _Shipment:
    """One chain on its way to the store. Raises RecordError, BrokenError, OSError."""

    def __init__(
        self,
        storage: Storage,
        identity: Identity,
        store: ObjectStore,
        engine: str,
        number: int,
    ) -> None:
        self._storage, self._identity, self._store = storage, identity, store
        self._engine, self._number = engine, number
        self._place = chain_place(engine, number)
        self._there: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        """Bytes of closed segments at the store, each stated before or verified now."""
        self._sent = 0

    def run(self, state: Path) -> Shipped:
        """Send what is missing at the store, up to the last checkpoint; again if retention removed lines meanwhile."""
        while True:
            anchor = read_anchor(self._storage, self._identity)
            try:
                return self._run(state, anchor)
            except (EngineError, BrokenError, OSError):
                if read_anchor(self._storage, self._identity) == anchor:
                    raise

    def _run(self, state: Path, anchor: Anchor | None) -> Shipped:
        storage, identity = self._storage, self._identity
        listed = self._store.sizes(self._place)
        self._there = {name.removeprefix(self._place): size for name, size in listed.items()}
        checkpoint = require_checkpoint(storage, identity, anchor)
        statement = self._continued(anchor)
        self._sizes = dict(enumerate(() if statement is None else statement.segments, 1))
        receipt = read_receipt(storage, identity, self._store.url)
        self._demand_kept(anchor, receipt)
        if anchor is not None:
            self._measure_removed(anchor, receipt)
        start, events = self._start(anchor, receipt)
        ends = self._ends(start, events, checkpoint)
        at = self._send_earlier_events(events.size)
        for end in ends:
            at = self._send_events(at, end.events_size)
            self._send(segment_object(end.end.segment), end.end.file, 0, end.end.size)
            self._sizes[end.end.segment] = end.end.size
            self._write_receipt(end)
            self._bind(state)
        self._send_open(checkpoint, at)
        self._bind(state)
        self._state(statement, checkpoint, anchor)
        return Shipped(len(ends), self._sent, checkpoint.seq)

    def _bind(self, state: Path) -> None:
        """From now on, retention keeps what the store does not have."""
        if destination(state) is None:
            write_file(Storage(state), SHIPPING, canonical({"url": self._store.url}))

    def _continued(self, anchor: Anchor | None) -> Statement | None:
        """The statement at the store, None if there is none; what it covers must be in this chain."""
        if STATEMENT not in self._there:
            return None
        try:
            found = read_statement(self._store, self._place, self._identity)
            if found.installation != self._identity.installation:
                raise self._refused(STATEMENT, "is of another chain")
            require_contained(self._storage, self._identity, anchor, found.checkpoint.position)
        except BrokenError as problem:
            kind = problem.broken.kind
            what = "is not signed by this chain" if kind is BreakKind.BAD_SIGNATURE else "has lines that are not here"
            raise self._refused(STATEMENT, what) from None
        return found

    def _refused(self, name: str, what: str) -> RecordError:
        return RecordError(
            f"`{self._place}{name}` at the store {what}; nothing there is overwritten",
            remedy="find out whether this state folder is an older copy, whether another engine goes on with the same"
            " chain, or who changed the store; `engine record verify URL` shows what is there",
            where=Location(self._store.url),
            code="engine.record_rolled_back",
        )

    def _demand_kept(self, anchor: Anchor | None, receipt: Receipt | None) -> None:
        """Raise RecordError unless the store still has what was shipped and is still here."""
        if receipt is None:
            return
        for number in range(1 if anchor is None else anchor.segment, receipt.segment):
            name, size = segment_object(number), self._storage.size(segment_file(number))
            if size is None:
                raise broken_file(segment_file(number), BreakKind.MISSING_SEGMENT, "a file", "none")
            if self._there.get(name) != size:
                there = f"{self._there[name]:,} bytes" if name in self._there else "no such object"
                raise self._lost(f"`{self._place}{name}` had {size:,} bytes, found {there}")
            self._sizes[number] = size
        at = 0
        for start, until, name in events_among(self._there):
            if start == at and self._there[name] == until - start:
                at = until
        if at < receipt.source_events.size:
            raise self._lost(f"source events of `{self._place}` from byte {at:,} on")

    def _measure_removed(self, anchor: Anchor, receipt: Receipt | None) -> None:
        """Take the sizes that no statement has of segments that retention removed here from the store.

        Only if every line there leads to the anchor. Raises RecordError if they do not although a receipt is for them.
        """
        numbers = range(1, anchor.segment)
        unstated = [number for number in numbers if number not in self._sizes]
        if not unstated or any(segment_object(number) not in self._there for number in numbers):
            return
        watcher, expected = _LinesWalk(io.BytesIO(), self._identity.no_events), anchor.position
        try:
            at, _ = walk(self._removed(expected.segment), self._identity.start, expected, watcher)
            if at != expected:
                file = segment_file(numbers[-1])
                raise broken_file(file, BreakKind.CHECKPOINT_MISMATCH, expected.hash, at.hash)
        except BrokenError as problem:
            if receipt is None or unstated[0] >= receipt.segment:
                return
            name = problem.broken.file.removeprefix(f"{RECORDS}/")
            raise self._lost(f"`{self._place}{name}` is broken: {problem.broken.kind}") from None
        self._sizes |= {number: self._there[segment_object(number)] for number in unstated}

    def _removed(self, end: int) -> Iterator[tuple[int, BinaryIO]]:
        """The segments at the store before segment `end`, then an empty one."""
        for number in range(1, end):
            name = segment_object(number)
            with self._store.open([Part(self._place + name, self._there[name])]) as file:
                yield number, file
        yield end, io.BytesIO()

    def _lost(self, what: str) -> RecordError:
        return RecordError(
            f"the store lost what was shipped: {what}",
            remedy=f"find out why; remove {RECEIPT} of this chain to send again what is still here",
            where=Location(self._store.url),
        )

    def _start(self, anchor: Anchor | None, receipt: Receipt | None) -> tuple[Position, Events]:
        if receipt is not None and (anchor is None or receipt.segment >= anchor.segment):
            return receipt.position, receipt.source_events
        if anchor is not None:
            return anchor.position, anchor.source_events
        return self._identity.start, self._identity.no_events

    def _ends(self, start: Position, events: Events, checkpoint: Checkpoint) -> list[SegmentEnd]:
        """Verify what is to be sent; returns the ends of its closed segments."""
        with self._storage.open(EVENTS) as file:
            watcher = EventsWalk(file, events)
            walk(open_segments(self._storage, start, checkpoint.segment), start, checkpoint.position, watcher)
        return watcher.ends

    def _send_earlier_events(self, end: int) -> int:
        """Send what the store does not have of the source events before byte `end`: only what its objects leave out."""
        at = 0
        for start, until, name in events_among(self._there):
            if until <= end:
                self._send_events(at, start)
                if self._there[name] != until - start:
                    self._send_events(start, until)
                at = until
        return self._send_events(at, end)

    def _send_events(self, start: int, end: int) -> int:
        if start < end:
            self._send(events_object(start, end), EVENTS, start, end - start)
        return end

    def _send_open(self, end: Checkpoint, events: int) -> None:
        if end.size:
            self._send(open_object(end.seq, "decisions.jsonl"), end.position.file, 0, end.size)
        if events < end.source_events.size:
            name = open_object(end.seq, events_object(events, end.source_events.size))
            self._send(name, EVENTS, events, end.source_events.size - events)

    def _send(self, name: str, path: str, offset: int, size: int) -> None:
        """Send bytes of a file and read them back; an object that is there already must have them too."""
        place = self._place + name
        with self._storage.open(path) as file:
            file.seek(offset)
            length, _, digest = measured(file, size)
            if length != size:
                raise BrokenError(
                    Break(path, 1, offset, None, BreakKind.BEFORE_CHECKPOINT, f"{size} bytes", f"{length} bytes")
                )
            if name in self._there:
                found = self._store.digest(place)
                if found == digest:
                    return
                file.seek(offset)
                if self._there[name] >= size or measured(file, self._there[name])[-1] != found:
                    raise self._refused(name, "has another content than here")
            file.seek(offset)
            self._store.put(place, file, size)
        if self._store.digest(place) != digest:
            raise RecordError(
                f"`{place}` was not read back as it was written",
                remedy="ship again; if it happens again, check the store",
                where=Location(self._store.url),
            )
        self._sent += size

    def _write_receipt(self, end: SegmentEnd) -> None:
        after, storage = end.end.next_segment(), self._storage
        with storage.open(EVENTS) as file:
            events = end.events(file, self._identity.genesis)
        fields = {"url": self._store.url, "segment": after.segment, "seq": after.seq, "hash": after.hash}
        fields["source_events"] = events.model_dump(mode="json")
        write_file(storage, RECEIPT, signed_statement(fields, self._identity, timestamp(utc_now())))

    def _state(self, before: Statement | None, checkpoint: Checkpoint, anchor: Anchor | None) -> None:
        """Replace the statement, then remove what only the one before needed."""
        if before is None or (before.checkpoint, before.anchor) != (checkpoint, anchor):
            fields: dict[str, Any] = {"format": 1, "engine": self._engine, "chain": self._number}
            fields["installation"] = self._identity.installation
            fields["checkpoint"] = checkpoint.model_dump(mode="json")
            fields["segments"] = [self._sizes.get(number, 0) for number in range(1, checkpoint.segment)]
            fields["anchor"] = None if anchor is None else anchor.model_dump(mode="json")
            written = signed_statement(fields, self._identity, timestamp(utc_now()))
            self._store.replace(self._place + STATEMENT, written)
            read_statement(self._store, self._place, self._identity)
        for name in self._there:
            if name.startswith(f"{OPEN}") and not name.startswith(f"{OPEN}{checkpoint.seq}."):
                self._store.remove(self._place + name)

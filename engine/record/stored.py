"""Chains at an object store: the names of their objects, and their verification there.

URL/
└── 3f1c…/                        an engine, by the installation id of its chain 1
    └── 001/                      a chain
        ├── chain.json            signed: whose chain it is, its checkpoint and its anchor; replaced last
        ├── decisions.000001.jsonl         a closed segment; never replaced
        ├── source_events.0-512.jsonl      source events from one byte up to another; never replaced
        └── open/
            ├── 40.decisions.jsonl            the open segment as of line 40
            └── 40.source_events.512-700.jsonl    its source events

What is verified is what `chain.json` covers: objects beyond it belong to a shipment that did not end. Removal by
retention counts as such only where the signed anchor in `chain.json` covers it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from pydantic import Field

from engine.documents.canonical import canonical
from engine.errors import RecordError
from engine.model import Count
from engine.record.chain import Position
from engine.record.checkpoint import Anchor, Checkpoint, Identity, Signed, key_of, parsed
from engine.record.layout import (
    ANCHOR,
    CHECKPOINT,
    EVENTS,
    RECORDS,
    Break,
    BreakKind,
    BrokenError,
    broken_file,
    segment_file,
)
from engine.record.objects import UNFINISHED, ObjectStore, Part
from engine.record.storage import Storage
from engine.record.verify import Verification, verify_storage

STATEMENT = "chain.json"
_STATEMENT_BYTES = 4 << 20
"""The longest statement: some 400,000 segments."""
OPEN = "open/"
_CHAIN = re.compile(r"([0-9a-f]{32})/([0-9]{3})/(.+)")
_OURS = re.compile(
    r"chain\.json(\.new)?|decisions\.[0-9]{6,12}\.jsonl|source_events\.[0-9]+-[0-9]+\.jsonl"
    r"|open/[0-9]+\.(decisions|source_events\.[0-9]+-[0-9]+)\.jsonl"
)
_EVENTS = re.compile(r"(?:open/[0-9]+\.)?source_events\.([0-9]+)-([0-9]+)\.jsonl")


class Statement(Signed):
    """What is at the store: chain number `chain` of the engine whose chain 1 has the id `engine`.

    `segments` are the bytes of its closed segments from the first on; 0 for one that nothing vouches for.
    """

    format: Literal[1]
    engine: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    chain: Annotated[int, Field(ge=1)]
    installation: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    checkpoint: Checkpoint
    anchor: Anchor | None
    segments: tuple[Count, ...]


def segment_object(number: int) -> str:
    """The name of a closed segment, below its chain."""
    return segment_file(number).removeprefix(f"{RECORDS}/")


def events_object(start: int, end: int) -> str:
    """The name of the source events from byte `start` up to `end`."""
    return f"source_events.{start}-{end}.jsonl"


def open_object(seq: int, name: str) -> str:
    """The name of the open segment as of line `seq`, or of its source events; `name` is that once it is closed."""
    return f"{OPEN}{seq}.{name}"


def events_among(names: Iterable[str], seq: int | None = None) -> list[tuple[int, int, str]]:
    """The objects of source events, with their first byte and the one after their last: closed ones, or as of `seq`."""
    folder = "" if seq is None else open_object(seq, "")
    found = [(match, name) for name in names if (match := _EVENTS.fullmatch(name))]
    ours = [(int(match[1]), int(match[2]), name) for match, name in found if name.rpartition("source")[0] == folder]
    return sorted(ours)


def chain_place(engine: str, chain: int) -> str:
    """What precedes the names of a chain."""
    return f"{engine}/{chain:03d}/"


def read_statement(store: ObjectStore, place: str, identity: Identity | None) -> Statement:
    """The statement of a chain. Raises BrokenError unless it is signed by `identity`; None checks no signature."""
    return parsed(store.read(place + STATEMENT, _STATEMENT_BYTES), place + STATEMENT, Statement, identity)


class StoredChain(Storage):
    """A chain at the store as the files of its engine, up to the checkpoint of its statement; read only."""

    def __init__(self, store: ObjectStore, place: str, sizes: Mapping[str, int], statement: Statement) -> None:
        super().__init__(Path(place))
        self._store, self._place, self._sizes = store, place, sizes
        self._end, self._closed = statement.checkpoint, statement.segments
        self._small = {CHECKPOINT: canonical(self._end.model_dump(mode="json"))}
        self._first, anchor = 1, statement.anchor
        """Where verification begins: the engine may have removed what is still here."""
        if anchor is not None and not all(map(self._stated, range(1, anchor.segment))):
            self._first = anchor.segment
            self._small[ANCHOR] = canonical(anchor.model_dump(mode="json"))

    def _stated(self, number: int) -> bool:
        return segment_object(number) in self._sizes and self._closed[number - 1 : number] not in ((), (0,))

    @property
    def unverified(self) -> int:
        """Segments before the anchor that are still here but not read."""
        return sum(segment_object(number) in self._sizes for number in range(1, self._first))

    def wrong_sizes(self) -> list[Break]:
        """Closed segments that are missing or of another size than the statement says."""
        wrong = []
        for number in range(self._first, self._end.segment):
            expected = self._closed[number - 1] if number <= len(self._closed) else 0
            found = self._sizes.get(segment_object(number))
            if found != expected:
                kind = BreakKind.MISSING_SEGMENT if found is None else BreakKind.CHECKPOINT_MISMATCH
                there = "none" if found is None else f"{found} bytes"
                wrong.append(broken_file(self._place + segment_object(number), kind, f"{expected} bytes", there).broken)
        return wrong

    def locked(self, path: str) -> bool:  # noqa: ARG002  (of any path)
        """Nobody writes lines here."""
        return False

    def names(self, folder: str) -> list[str]:
        """The files of the record, if it is asked for that folder."""
        numbers = range(self._first, self._end.segment + 1)
        there = [number for number in numbers if self._segment(number) is not None]
        return sorted(Path(path).name for path in (*map(segment_file, there), EVENTS)) if folder == RECORDS else []

    def size(self, path: str) -> int | None:
        """Bytes up to the checkpoint; None if there is no such object."""
        if path in self._small:
            return len(self._small[path])
        parts = self._parts(path)
        return None if parts is None else sum(min(part.size, self._sizes[part.name]) for part in parts)

    def open(self, path: str) -> BinaryIO:
        """Open what the checkpoint covers for reading. Raises BrokenError if source events are missing."""
        if path in self._small:
            return io.BytesIO(self._small[path])
        parts = [replace(part, name=self._place + part.name) for part in self._parts(path) or ()]
        return self._store.open(parts)

    def object_at(self, broken: Break) -> Break:
        """A break, with the name of the object in place of the file."""
        if broken.file.startswith(self._place):
            return broken
        name = STATEMENT
        if broken.file == EVENTS:
            name = self._events_at(broken.offset)
        elif broken.file.startswith(RECORDS):
            name = broken.file.removeprefix(f"{RECORDS}/")
            if name == segment_object(self._end.segment):
                part = self._segment(self._end.segment)
                name = open_object(self._end.seq, "decisions.jsonl") if part is None else part.name
        return replace(broken, file=self._place + name)

    def _parts(self, path: str) -> list[Part] | None:
        if path == EVENTS:
            return list(self._events())
        for number in range(self._first, self._end.segment + 1):
            if path == segment_file(number):
                part = self._segment(number)
                return None if part is None else [part] if part.size else []
        return None

    def _segment(self, number: int) -> Part | None:
        closed, last = segment_object(number), number == self._end.segment
        name = open_object(self._end.seq, "decisions.jsonl") if last else closed
        name = name if name in self._sizes else closed
        if last and (self._end.size == 0 or name in self._sizes):
            return Part(name, self._end.size)
        return Part(name, self._sizes[name]) if name in self._sizes else None

    def _events(self) -> Iterator[Part]:
        """Closed source events, one after another, then those of the open segment. Raises BrokenError at a gap."""
        at, end = 0, self._end.source_events.size
        closed = events_among(self._sizes)
        newest = events_among(self._sizes, self._end.seq) or [one for one in closed if one[1] > end]
        for start, until, name in [*(one for one in closed if one[1] <= end), *newest[:1]]:
            if start > at:
                raise self._missing(events_object(at, start), start - at)
            if self._sizes[name] != until - start:
                raise self._missing(name, until - start)
            if at < end:
                yield Part(name, min(until, end) - start)
            at = until
        if at < end:
            raise self._missing(open_object(self._end.seq, events_object(at, end)), end - at)

    def _events_at(self, offset: int) -> str:
        start, name = 0, STATEMENT
        with suppress(BrokenError):
            for part in self._events():
                start, name = start + part.size, part.name
                if offset < start:
                    break
        return name

    def _missing(self, name: str, expected: int) -> BrokenError:
        there = f"{self._sizes[name]} bytes" if name in self._sizes else "none"
        return broken_file(self._place + name, BreakKind.MISSING_SEGMENT, f"{expected} bytes", there)


@dataclass(frozen=True, slots=True)
class StoredVerification:
    """The result of verifying one chain at the store.

    `signed` says whether its key was known, so that signatures were checked; `key` names it. `unverified` counts
    segments before the anchor that are still here while others are not, or are of no stated size.
    """

    engine: str
    chain: int
    found: Verification
    key: str = ""
    signed: bool = False
    unverified: int = 0


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known apart from the store.

    `keys` sign checkpoints; `known` is what engines have shipped, by engine and chain: the installation, and a
    position that the store has to contain. `against` is a copied checkpoint.
    """

    keys: Mapping[str, bytes]
    known: Mapping[tuple[str, int], tuple[str, Position]]
    against: bytes | None = None


def verify_store(store: ObjectStore, trust: Trust) -> tuple[list[StoredVerification], list[Break]]:
    """Verify every chain at a store, in the order of engines; also returns objects that belong to no chain.

    Raises RecordError if the store cannot be read, or has no chain at all.
    """
    chains, strange = _listed(store)
    every = {*chains, *trust.known}
    if not every:
        raise RecordError(f"there is no record at `{store.url}`", remedy="ship one: `engine record ship URL`")
    last = {engine: max(chain for one, chain in every if one == engine) for engine, _ in every}
    listed = [(engine, chain) for engine in sorted(last) for chain in range(1, last[engine] + 1)]
    found = [_verified(store, engine, chain, chains.get((engine, chain), {}), trust) for engine, chain in listed]
    if trust.against is not None and not any(one.key == key_of(trust.against) for one in found):
        expected = "a chain with the key of this checkpoint"
        strange.append(broken_file("--against", BreakKind.ROLLED_BACK, expected, "none").broken)
    return found, strange


def _listed(store: ObjectStore) -> tuple[dict[tuple[str, int], dict[str, int]], list[Break]]:
    chains: dict[tuple[str, int], dict[str, int]] = {}
    strange = []
    for name, size in store.sizes().items():
        match = _CHAIN.fullmatch(name)
        if match is None or _OURS.fullmatch(match[3]) is None:
            strange.append(broken_file(name, BreakKind.UNKNOWN_SEGMENT, "no such object", "an object").broken)
        elif not name.endswith(UNFINISHED):
            chains.setdefault((match[1], int(match[2])), {})[match[3]] = size
    return chains, strange


def _verified(
    store: ObjectStore, engine: str, chain: int, sizes: Mapping[str, int], trust: Trust
) -> StoredVerification:
    place, before = chain_place(engine, chain), b""
    while STATEMENT in sizes:
        written = store.read(place + STATEMENT, _STATEMENT_BYTES)
        found = _against_statement(store, (engine, chain), sizes, trust, written)
        if found.found.ok or written == before:
            return found
        before = written  # a shipment may have replaced objects meanwhile
        sizes = {name.removeprefix(place): size for name, size in store.sizes(place).items()}
    kind, expected = (BreakKind.CHECKPOINT_MISSING, "a checkpoint") if sizes else (BreakKind.ROLLED_BACK, "a chain")
    broken = broken_file(place + STATEMENT, kind, expected, "none").broken
    return StoredVerification(engine, chain, Verification((broken,)))


def _against_statement(
    store: ObjectStore, at: tuple[str, int], sizes: Mapping[str, int], trust: Trust, written: bytes
) -> StoredVerification:
    place, key, signed, unverified = chain_place(*at), "", False, 0
    try:
        statement = parsed(written, place + STATEMENT, Statement, None)
        key, signed = statement.key, statement.key in trust.keys
        identity = Identity(statement.installation, trust.keys.get(key, b""))
        parsed(written, place + STATEMENT, Statement, identity)
        there = statement.engine, statement.chain
        if there != at or (statement.chain == 1 and statement.installation != statement.engine):
            raise broken_file(place + STATEMENT, BreakKind.CHECKPOINT_MISMATCH, place, chain_place(*there))
        chain = StoredChain(store, place, sizes, statement)
        heads = dict([trust.known[at]]) if at in trust.known else {}
        against = trust.against if trust.against is not None and key == key_of(trust.against) else None
        found, unverified = verify_storage(chain, heads, against, identity), chain.unverified
        found.breaks = tuple(chain.wrong_sizes() or map(chain.object_at, found.breaks))
    except BrokenError as problem:
        found = Verification((problem.broken,))
    return StoredVerification(*at, found, key, signed, unverified)

"""Signed statements about the record: the checkpoint up to which it is verified, and the anchor where it starts.

A chain alone detects neither a missing tail nor a full rewrite. The checkpoint does, unless the attacker also
has this key; copy checkpoint files to another host to detect that too. The anchor is written when
retention removes segments: the rest is verified from there, and only what it names may be missing.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from engine.documents.canonical import canonical
from engine.model import Count, Model, Sha256
from engine.record.chain import Position
from engine.record.layout import ANCHOR, CHECKPOINT, INSTALLATION, KEY, BreakKind, BrokenError, broken_file
from engine.record.model import Time
from engine.record.storage import SMALL_BYTES, Storage, read_file, write_file

FORMAT = 1
"""Version of the whole layout; part of the genesis digest."""

_KEY_BYTES = 32


class Installation(Model):
    """Content of installation.json: the format of this record, and a random id."""

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Events(Model):
    """The end of source_events.jsonl: its bytes, its lines, and the SHA-256 of the last one without newline."""

    size: Count
    lines: Count
    hash: Sha256


class Signed(Model):
    """`key` names the key; `mac` is HMAC-SHA256 over the canonical JSON of all other fields."""

    time: Time
    key: str
    mac: Sha256


class Checkpoint(Signed):
    """The end of the record, as in Position, and of the source events."""

    segment: Annotated[int, Field(ge=1)]
    lines: Count
    size: Count
    seq: Count
    hash: Sha256
    source_events: Events

    @property
    def position(self) -> Position:
        """The end of the record that this checkpoint covers."""
        return Position(self.segment, self.lines, self.size, self.seq, self.hash)


class Anchor(Signed):
    """What retention has removed: everything before segment `segment`, `seq` lines; `hash` is of the last of them.

    `source_events` and `events_sha256` (of all these bytes) are of the events that the removed lines covered,
    which stay. `retained_by` is the seq of the line that records the removal.
    """

    segment: Annotated[int, Field(ge=2)]
    seq: Annotated[int, Field(ge=1)]
    hash: Sha256
    source_events: Events
    events_sha256: Sha256
    retained_by: Annotated[int, Field(ge=2)]

    @property
    def position(self) -> Position:
        """The start of the remaining lines."""
        return Position(self.segment, 0, 0, self.seq, self.hash)


@dataclass(frozen=True, slots=True)
class Identity:
    """The writer of this record: the installation's id and the key that signs its checkpoints.

    Without the key (empty), signatures are not checked; only a copy of a record elsewhere is verified so.
    """

    installation: str
    key: bytes = field(repr=False)

    @property
    def genesis(self) -> str:
        """`prev` of the first line: unique to the installation."""
        return sha256(f"admission-engine record {FORMAT}\n{self.installation}".encode()).hexdigest()

    @property
    def start(self) -> Position:
        """The start of a record."""
        return Position(1, 0, 0, 0, self.genesis)

    @property
    def no_events(self) -> Events:
        """The end of source events where there are none."""
        return Events(size=0, lines=0, hash=self.genesis)

    @property
    def key_id(self) -> str:
        """Names the key without revealing it."""
        return sha256(self.key).hexdigest()[:16]

    def sign(self, fields: dict[str, Any]) -> str:
        """HMAC-SHA256 over the canonical JSON of these fields."""
        return hmac.new(self.key, canonical(fields), sha256).hexdigest()


def read_identity(storage: Storage) -> Identity | None:
    """None before first use has finished. Raises BrokenError if one of the two files is invalid."""
    written = read_file(storage, INSTALLATION)
    if written is None:
        return None
    try:
        installation = Installation.model_validate_json(written)
    except ValidationError:
        raise broken_file(INSTALLATION, BreakKind.INSTALLATION_MISSING, f"format {FORMAT}", "another content") from None
    key = read_file(storage, KEY)
    if key is None or len(key) != _KEY_BYTES:
        found = "none" if key is None else f"{len(key)} bytes"
        raise broken_file(KEY, BreakKind.BAD_SIGNATURE, f"{_KEY_BYTES} bytes", found)
    return Identity(installation.id, key)


def new_identity(storage: Storage) -> Identity:
    """A fresh id and key. Files of an unfinished first use may not be durable and are not reused."""
    key = os.urandom(_KEY_BYTES)
    write_file(storage, KEY, key)
    return Identity(os.urandom(16).hex(), key)


def write_installation(storage: Storage, identity: Identity) -> None:
    """Mark this record as in use, permanently."""
    write_file(storage, INSTALLATION, canonical({"format": FORMAT, "id": identity.installation}))


def read_checkpoint(storage: Storage, identity: Identity | None) -> Checkpoint | None:
    """The last checkpoint, or None. Raises BrokenError unless it is signed by `identity`; None checks no signature."""
    return _read(storage, CHECKPOINT, Checkpoint, identity)


def parse_checkpoint(written: bytes, identity: Identity | None) -> Checkpoint:
    """An exported checkpoint. Raises BrokenError unless it is signed by `identity`; None checks no signature."""
    return parsed(written[:SMALL_BYTES], "--against", Checkpoint, identity)


def key_of(written: bytes) -> str | None:
    """The key that an exported checkpoint names; None if it is no checkpoint."""
    try:
        return parse_checkpoint(written, None).key
    except BrokenError:
        return None


def read_anchor(storage: Storage, identity: Identity | None) -> Anchor | None:
    """The anchor; None if nothing was ever removed. Raises BrokenError unless it is signed by `identity`."""
    return _read(storage, ANCHOR, Anchor, identity)


def write_checkpoint(storage: Storage, identity: Identity, position: Position, events: Events, time: str) -> None:
    """Replace the checkpoint atomically, also in a crash."""
    _write(storage, CHECKPOINT, asdict(position), events, identity, time)


def write_anchor(
    storage: Storage,
    identity: Identity,
    position: Position,
    events: Events,
    events_sha256: str,
    retained_by: int,
    time: str,
) -> None:
    """Replace the anchor atomically, also in a crash."""
    fields = {
        "segment": position.segment,
        "seq": position.seq,
        "hash": position.hash,
        "events_sha256": events_sha256,
        "retained_by": retained_by,
    }
    _write(storage, ANCHOR, fields, events, identity, time)


SignedT = TypeVar("SignedT", bound=Signed)


def _read(storage: Storage, path: str, model: type[SignedT], identity: Identity | None) -> SignedT | None:
    written = read_file(storage, path)
    return None if written is None else parsed(written, path, model, identity)


def parsed(written: bytes, path: str, model: type[SignedT], identity: Identity | None) -> SignedT:
    """A signed statement. Raises BrokenError unless it is signed by `identity`; None checks no signature."""
    try:
        signed = model.model_validate_json(written)
        fields = signed.model_dump(mode="json", exclude={"mac"})
        same_bytes = canonical({**fields, "mac": signed.mac}) == written
    except (ValidationError, ValueError):
        raise broken_file(path, BreakKind.BAD_SIGNATURE, "a signed statement", "another content") from None
    if identity is None or not identity.key:
        return signed
    if not (same_bytes and hmac.compare_digest(identity.sign(fields), signed.mac)):
        raise broken_file(path, BreakKind.BAD_SIGNATURE, f"key {identity.key_id}", "another signature")
    return signed


def _write(storage: Storage, path: str, fields: dict[str, Any], events: Events, identity: Identity, time: str) -> None:
    write_file(
        storage, path, signed_statement({**fields, "source_events": events.model_dump(mode="json")}, identity, time)
    )


def signed_statement(fields: dict[str, Any], identity: Identity, time: str) -> bytes:
    """A statement with these fields, as it is written."""
    fields = {**fields, "time": time, "key": identity.key_id}
    return canonical({**fields, "mac": identity.sign(fields)})

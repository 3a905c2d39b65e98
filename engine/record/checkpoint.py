"""Signed statements outside the record: how far it is vouched for, and behind what it starts.

A chain alone finds no missing tail and no full rewrite. The checkpoint does, as long as whoever changed the
record has not this key; copy checkpoint files to another host to find more than that. The anchor is written when
retention removes segments: what remains is checked from there, and only what it names may be gone.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from engine.canonical import canonical
from engine.model import Model, Sha256
from engine.record.chain import Position
from engine.record.layout import ANCHOR, CHECKPOINT, INSTALLATION, KEY, Break, BreakKind, BrokenError, segment_file
from engine.record.model import Count, Time
from engine.record.storage import Storage, read_file, write_file

FORMAT = 1
"""Version of the whole layout; part of the genesis digest."""

_SMALL = 1 << 16  # bytes; none of these files has more than a few hundred
_KEY_BYTES = 32


class Installation(Model):
    """Content of installation.json: the format this record is written in, and a random id."""

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Events(Model):
    """The end of source_events.jsonl: its bytes, its lines, and the SHA-256 of the last one without newline."""

    size: Count
    lines: Count
    hash: Sha256


class _Signed(Model):
    """`key` names the key; `mac` is HMAC-SHA256 over the canonical JSON of all other fields."""

    time: Time
    key: str
    mac: Sha256


class Checkpoint(_Signed):
    """The end of the record: `seq` lines, of which the last `lines`, with `size` bytes, stand in segment `segment`.

    `hash` is of the last line.
    """

    segment: Annotated[int, Field(ge=1)]
    lines: Count
    size: Count
    seq: Count
    hash: Sha256
    source_events: Events

    @property
    def position(self) -> Position:
        """The end of the record that this vouches for."""
        return Position(self.segment, self.lines, self.size, self.seq, self.hash)

    @property
    def file(self) -> str:
        """The path of the segment."""
        return segment_file(self.segment)


class Anchor(_Signed):
    """What retention has removed: everything before segment `segment`, `seq` lines; `hash` is of the last of them.

    `source_events` and `events_sha256` (of all these bytes) are of the events that the removed lines covered,
    which stay. `retained_by` is the seq of the line that tells of the removal.
    """

    segment: Annotated[int, Field(ge=2)]
    seq: Annotated[int, Field(ge=1)]
    hash: Sha256
    source_events: Events
    events_sha256: Sha256
    retained_by: Annotated[int, Field(ge=2)]

    @property
    def position(self) -> Position:
        """Where what remains begins."""
        return Position(self.segment, 0, 0, self.seq, self.hash)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes this record: the installation's id and the key that signs its checkpoints."""

    installation: str
    key: bytes

    @property
    def genesis(self) -> str:
        """What the first line has for `prev`: no two installations share it."""
        return sha256(f"admission-engine record {FORMAT}\n{self.installation}".encode()).hexdigest()

    @property
    def start(self) -> Position:
        """Where a record begins."""
        return Position(1, 0, 0, 0, self.genesis)

    @property
    def key_id(self) -> str:
        """Names the key without giving it away."""
        return sha256(self.key).hexdigest()[:16]

    def sign(self, fields: dict[str, Any]) -> str:
        """HMAC-SHA256 over the canonical JSON of these fields."""
        return hmac.new(self.key, canonical(fields), sha256).hexdigest()


def read_identity(storage: Storage) -> Identity | None:
    """None before first use has finished. Raises BrokenError when one of the two files does not hold."""
    written = read_file(storage, INSTALLATION, _SMALL)
    if written is None:
        return None
    try:
        installation = Installation.model_validate_json(written)
    except ValidationError:
        raise _broken(INSTALLATION, BreakKind.INSTALLATION_MISSING, f"format {FORMAT}", "another content") from None
    key = read_file(storage, KEY, _SMALL)
    if key is None or len(key) != _KEY_BYTES:
        found = "none" if key is None else f"{len(key)} bytes"
        raise _broken(KEY, BreakKind.BAD_SIGNATURE, f"{_KEY_BYTES} bytes", found)
    return Identity(installation.id, key)


def new_identity(storage: Storage) -> Identity:
    """A fresh id and key. What an unfinished first use left behind may not be durable, so nothing of it is kept."""
    key = os.urandom(_KEY_BYTES)
    write_file(storage, KEY, key)
    return Identity(os.urandom(16).hex(), key)


def write_installation(storage: Storage, identity: Identity) -> None:
    """Say for good that this record is in use."""
    write_file(storage, INSTALLATION, canonical({"format": FORMAT, "id": identity.installation}))


def read_checkpoint(storage: Storage, identity: Identity | None) -> Checkpoint | None:
    """The last checkpoint; None where there is none. Raises BrokenError unless it is signed by `identity`.

    Without an identity the signature is not looked at.
    """
    return _read(storage, CHECKPOINT, Checkpoint, identity)


def parse_checkpoint(written: bytes, identity: Identity) -> Checkpoint:
    """A checkpoint that was kept elsewhere. Raises BrokenError unless it is signed by `identity`."""
    return _parsed(written[:_SMALL], "--against", Checkpoint, identity)


def read_anchor(storage: Storage, identity: Identity | None) -> Anchor | None:
    """The anchor; None where nothing was ever removed. Raises BrokenError unless it is signed by `identity`."""
    return _read(storage, ANCHOR, Anchor, identity)


def write_checkpoint(storage: Storage, identity: Identity, position: Position, events: Events, time: str) -> None:
    """Replace the checkpoint; after a crash either the old or the new one is there."""
    fields = {
        "segment": position.segment,
        "lines": position.lines,
        "size": position.size,
        "seq": position.seq,
        "hash": position.hash,
        "source_events": events.model_dump(mode="json"),
    }
    _write(storage, CHECKPOINT, fields, identity, time)


def write_anchor(
    storage: Storage,
    identity: Identity,
    position: Position,
    events: Events,
    events_sha256: str,
    retained_by: int,
    time: str,
) -> None:
    """Replace the anchor; after a crash either the old or the new one is there."""
    fields = {
        "segment": position.segment,
        "seq": position.seq,
        "hash": position.hash,
        "source_events": events.model_dump(mode="json"),
        "events_sha256": events_sha256,
        "retained_by": retained_by,
    }
    _write(storage, ANCHOR, fields, identity, time)


_SignedT = TypeVar("_SignedT", bound=_Signed)


def _read(storage: Storage, path: str, model: type[_SignedT], identity: Identity | None) -> _SignedT | None:
    written = read_file(storage, path, _SMALL)
    return None if written is None else _parsed(written, path, model, identity)


def _parsed(written: bytes, path: str, model: type[_SignedT], identity: Identity | None) -> _SignedT:
    try:
        signed = model.model_validate_json(written)
        fields = signed.model_dump(mode="json", exclude={"mac"})
        same_bytes = canonical({**fields, "mac": signed.mac}) == written
    except (ValidationError, ValueError):
        raise _broken(path, BreakKind.BAD_SIGNATURE, "a signed statement", "another content") from None
    if identity is not None and not (same_bytes and hmac.compare_digest(identity.sign(fields), signed.mac)):
        raise _broken(path, BreakKind.BAD_SIGNATURE, f"key {identity.key_id}", "another signature")
    return signed


def _write(storage: Storage, path: str, fields: dict[str, Any], identity: Identity, time: str) -> None:
    fields = fields | {"time": time, "key": identity.key_id}
    write_file(storage, path, canonical({**fields, "mac": identity.sign(fields)}))


def _broken(file: str, kind: BreakKind, expected: str, found: str) -> BrokenError:
    return BrokenError(Break(file, 1, 0, None, kind, expected, found))

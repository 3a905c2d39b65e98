"""How far the record is vouched for: a signed statement outside the record, so that a cut or rewrite shows.

A chain alone finds no missing tail and no full rewrite. The checkpoint does, as long as whoever changed the
record has not this key; copy checkpoint files to another host to find more than that.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from engine.canonical import canonical
from engine.model import Model, Sha256
from engine.record.chain import Position
from engine.record.layout import CHECKPOINT, DECISIONS, INSTALLATION, KEY, Break, BreakKind, BrokenError
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


class Checkpoint(Model):
    """`hash` is of the last of `seq` lines; `mac` is HMAC-SHA256 over the canonical JSON of all other fields."""

    file: str
    size: Count
    seq: Count
    hash: Sha256
    source_events: Events
    time: Time
    key: str
    mac: Sha256

    @property
    def position(self) -> Position:
        """The end of the record that this vouches for."""
        return Position(self.size, self.seq, self.hash)


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
    written = read_file(storage, CHECKPOINT, _SMALL)
    if written is None:
        return None
    try:
        checkpoint = Checkpoint.model_validate_json(written)
        fields = checkpoint.model_dump(mode="json", exclude={"mac"})
        same_bytes = canonical({**fields, "mac": checkpoint.mac}) == written
    except (ValidationError, ValueError):
        raise _broken(CHECKPOINT, BreakKind.BAD_SIGNATURE, "a checkpoint", "another content") from None
    if identity is not None and not (same_bytes and hmac.compare_digest(identity.sign(fields), checkpoint.mac)):
        raise _broken(CHECKPOINT, BreakKind.BAD_SIGNATURE, f"key {identity.key_id}", "another signature")
    return checkpoint


def write_checkpoint(storage: Storage, identity: Identity, position: Position, events: Events, time: str) -> None:
    """Replace the checkpoint; after a crash either the old or the new one is there."""
    fields = {
        "file": DECISIONS.rpartition("/")[2],
        "size": position.size,
        "seq": position.seq,
        "hash": position.hash,
        "source_events": events.model_dump(mode="json"),
        "time": time,
        "key": identity.key_id,
    }
    write_file(storage, CHECKPOINT, canonical({**fields, "mac": identity.sign(fields)}))


def _broken(file: str, kind: BreakKind, expected: str, found: str) -> BrokenError:
    return BrokenError(Break(file, 1, 0, None, kind, expected, found))

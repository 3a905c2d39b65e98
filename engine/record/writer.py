"""Puts batches of lines on disk in the order that a crash at any moment allows for. One thread at a time.

Order of a batch: a checkpoint if one is due, a new segment if the last one is full, the source events of all
its decisions and their sync, then its lines and their sync.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from engine.record.checkpoint import Events, write_checkpoint
from engine.record.layout import EVENTS, RECORDS
from engine.record.recovery import Opened
from engine.record.storage import Storage

CHECKPOINT_RECORDS = 4_096
"""Lines between two checkpoints: what a start after a crash reads again, a third of a second; and what somebody
could cut off unseen until the next one. At a quarter of that, checkpoints cost a tenth of all writing."""

CHECKPOINT_BYTES = 16 << 20
"""Bytes between two checkpoints: lines of a large source bundle have several MiB."""


class Writer:
    """The end of an open record. Every method may raise OSError; nothing may be written after that."""

    def __init__(self, storage: Storage, opened: Opened, segment_bytes: int, clock: Callable[[], str]) -> None:
        self.storage = storage
        self.opened = opened
        self._segment_bytes = segment_bytes
        self._clock = clock

    def write(self, lines: bytes, count: int, last: str, events: bytes) -> None:
        """Make `count` whole lines durable, the last one having the digest `last`, and the events they claim."""
        if self._checkpoint_due():
            self.checkpoint()
        if self.opened.end.size >= self._segment_bytes:
            self.rotate()
        if events:
            self.storage.append(EVENTS, events)
            self.storage.sync(EVENTS)
        file = self.opened.end.file
        self.storage.append(file, lines)
        self.storage.sync(file)
        self.opened.end = self.opened.end.after(lines=count, size=len(lines), hash=last)
        if events:
            self.opened.events = _longer(self.opened.events, events)

    def rotate(self) -> None:
        """Open the next segment; the one before is vouched for to its end first, and never written to again."""
        self.checkpoint()
        before, after = self.opened.end, self.opened.end.next_segment()
        self.storage.create(after.file)
        self.storage.sync_folder(RECORDS)
        self.storage.release(before.file)
        self.opened.end = after

    def checkpoint(self) -> None:
        """Vouch for every line so far, unless that is done."""
        opened = self.opened
        if opened.vouched.seq == opened.end.seq:
            return
        write_checkpoint(self.storage, opened.identity, opened.end, opened.events, self._clock())
        opened.vouched = opened.end

    def _checkpoint_due(self) -> bool:
        end, vouched = self.opened.end, self.opened.vouched
        size = end.size - (vouched.size if end.segment == vouched.segment else 0)
        return end.seq - vouched.seq >= CHECKPOINT_RECORDS or size >= CHECKPOINT_BYTES


def _longer(known: Events, events: bytes) -> Events:
    last = events[events.rfind(b"\n", 0, -1) + 1 : -1]
    return Events(size=known.size + len(events), lines=known.lines + events.count(b"\n"), hash=sha256(last).hexdigest())

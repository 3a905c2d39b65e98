"""Writes batches of lines in an order that survives a crash at any moment. One thread at a time.

Order of a batch: a checkpoint if one is due, a new segment if the last one is full, the source events of all
its decisions and their sync, then its lines and their sync. Last, every file must still have its name: lines
synced to a file that was removed are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from engine.record.checkpoint import Events, write_checkpoint
from engine.record.layout import (
    ANCHOR,
    CHECKPOINT,
    EVENTS,
    INSTALLATION,
    KEY,
    LOCK,
    RECORDS,
    segment_file,
    segment_numbers,
)
from engine.record.recovery import Opened
from engine.record.storage import Storage

CHECKPOINT_RECORDS = 4_096
"""Lines between two checkpoints at most: what a start after a crash reads again, a third of a second. A running
engine also writes one every second; at a quarter of these lines, checkpoints cost a tenth of all writing."""

CHECKPOINT_BYTES = 16 << 20
"""Bytes between two checkpoints: lines of a large source bundle have several MiB."""

_FIXED = (LOCK, INSTALLATION, KEY, CHECKPOINT)
"""Without these, the next start could not distinguish the record from another one; only the writer changes them."""


class Writer:
    """Writes at the end of an open record. Every method may raise OSError; nothing may be written after that."""

    def __init__(self, storage: Storage, opened: Opened, segment_bytes: int, clock: Callable[[], str]) -> None:
        self.storage = storage
        self.opened = opened
        self._segment_bytes = segment_bytes
        self._clock = clock
        self._closed_segments: list[str] = []
        self.watch()

    def write(self, lines: bytes, count: int, last: str, events: bytes) -> None:
        """Make `count` whole lines and their events durable; `last` is the digest of the last line."""
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
        end = self.opened.end.after(lines=count, size=len(lines), hash=last)
        claimed = _longer(self.opened.events, events) if events else self.opened.events
        self._demand_in_place(end.size, claimed.size)
        self.opened.end, self.opened.events = end, claimed

    def vouch(self) -> None:
        """Check that every file is in its place, and write a checkpoint for the lines so far."""
        self._demand_in_place(self.opened.end.size, self.opened.events.size)
        self.checkpoint()

    def watch(self) -> None:
        """Remember the present state of all files, after adding or removing some."""
        storage, last = self.storage, self.opened.end.segment
        numbers = segment_numbers(storage.names(RECORDS))
        self._closed_segments = [segment_file(number) for number in numbers if number < last]
        if storage.size(ANCHOR) is not None:
            self._closed_segments.append(ANCHOR)
        for path in (*_FIXED, *self._closed_segments, self.opened.end.file, EVENTS):
            storage.watch(path)

    def _demand_in_place(self, size: int, events: int) -> None:
        storage = self.storage
        for path in _FIXED:
            storage.unchanged(path)
        storage.unchanged(self.opened.end.file, size)
        storage.unchanged(EVENTS, events)

    def rotate(self) -> None:
        """Write a checkpoint at the end of the segment, close it for good and open the next one."""
        self.checkpoint()
        before, after = self.opened.end, self.opened.end.next_segment()
        self.storage.create(after.file)
        self.storage.sync_folder(RECORDS)
        self.storage.release(before.file)
        self.opened.end = after
        self._closed_segments.append(before.file)
        self.storage.watch(before.file)
        self.storage.watch(after.file)

    def checkpoint(self) -> None:
        """Write a checkpoint for the lines so far, unless there is one."""
        opened = self.opened
        if opened.vouched.seq == opened.end.seq:
            return
        for path in self._closed_segments:
            self.storage.unchanged(path)
        write_checkpoint(self.storage, opened.identity, opened.end, opened.events, self._clock())
        opened.vouched = opened.end
        self.storage.watch(CHECKPOINT)

    def _checkpoint_due(self) -> bool:
        end, vouched = self.opened.end, self.opened.vouched
        size = end.size - (vouched.size if end.segment == vouched.segment else 0)
        return end.seq - vouched.seq >= CHECKPOINT_RECORDS or size >= CHECKPOINT_BYTES


def _longer(known: Events, events: bytes) -> Events:
    last = events[events.rfind(b"\n", 0, -1) + 1 : -1]
    return Events(size=known.size + len(events), lines=known.lines + events.count(b"\n"), hash=sha256(last).hexdigest())

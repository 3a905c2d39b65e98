"""The one writer of the record: nothing is answered before its line is on disk.

Order of a decision: its source events are written and synced, then its line is written and synced, then
`append` returns. Any failure on the way closes the log for ever; only a new start may try again (a retried
sync can report success for data that is lost, fsync(2)).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.errors import Location, RecordError
from engine.record.chain import Position, encode
from engine.record.checkpoint import Events, write_checkpoint
from engine.record.layout import DECISIONS, EVENTS, LINE_BYTES, LOCK, RECORDS, BrokenError
from engine.record.model import Body, DecisionRecord, RecoveryRecord, timestamp, utc_now
from engine.record.recovery import Opened, recover
from engine.record.source_events import SourceEvent, block
from engine.record.storage import DiskStorage, LockHeldError, Storage

CHECKPOINT_RECORDS = 256
"""Lines between two checkpoints: what a start after a crash reads again, a few milliseconds."""

CHECKPOINT_BYTES = 16 << 20
"""Bytes between two checkpoints: lines of a large source bundle have several MiB."""


class RecordLog:
    """An open record. Made by `open`; threads may share it; use it as a context manager or call `close`."""

    def __init__(self, storage: Storage, opened: Opened, clock: Callable[[], datetime], place: str) -> None:
        self._storage = storage
        self._opened = opened
        self._clock = clock
        self._place = place
        self._usable = True
        self._owner = os.getpid()
        self._guard = threading.Lock()

    @classmethod
    def open(cls, folder: Path, *, lock_seconds: float, clock: Callable[[], datetime] = utc_now) -> RecordLog:
        """Open the record in `folder`, the `records` folder of a state folder, creating it at first use.

        Waits up to `lock_seconds` for another writer. `clock` gives aware times, for checkpoints and
        recoveries only. What a crash left unfinished is cut, kept aside and recorded. Raises RecordError
        `engine.record_locked`, `engine.record_broken` or `engine.record_unavailable`.
        """
        if folder.name != RECORDS:
            raise ValueError(f"the record lives in a folder named {RECORDS}")
        return cls.on(DiskStorage(folder.parent), lock_seconds=lock_seconds, clock=clock, place=str(folder.parent))

    @classmethod
    def on(cls, storage: Storage, *, lock_seconds: float, clock: Callable[[], datetime], place: str) -> RecordLog:
        """`open` on any storage; `place` names it in errors."""
        try:
            storage.make_folder("")
            storage.make_folder(RECORDS)
            storage.lock(LOCK, lock_seconds)
            opened = recover(storage, lambda: timestamp(clock()))
        except LockHeldError:
            storage.close()
            raise RecordError(
                f"another engine holds this record and did not let go in {lock_seconds:g} seconds",
                remedy="stop it or wait, or give this engine another state folder with `--state`",
                where=Location(place),
                code="engine.record_locked",
            ) from None
        except BrokenError as problem:
            storage.close()
            raise _broken(problem, place) from None
        except OSError as error:
            storage.close()
            raise _unavailable(error, place) from error
        except BaseException:
            storage.close()
            raise
        return cls(storage, opened, clock, place)

    @property
    def seq(self) -> int:
        """How many lines the record has."""
        return self._opened.end.seq

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """What opening had to cut off."""
        return self._opened.recovered

    def append(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """Write one line, and the source events of a decision before it; returns its seq once both are durable.

        Raises RecordError `engine.record_unavailable`; unless the body itself has no JSON form, the log is
        then closed for ever.
        """
        if os.getpid() != self._owner:  # a fork shares the file: two writers would break the chain
            raise RecordError(
                "this record was opened in another process",
                remedy="open an engine of its own in each process, after the fork",
                where=Location(self._place),
            )
        with self._guard:
            if not self._usable:
                raise RecordError(
                    "the record is closed after a failure", remedy="start the engine again", where=Location(self._place)
                )
            data, covered = block(events)
            if covered is not None:
                if not isinstance(body, DecisionRecord):
                    raise TypeError("source events belong to a decision")
                body = body.model_copy(update={"source_events": covered})
            line = self._encoded(body)
            self._usable = False  # whatever interrupts the writing, nothing may follow it
            try:
                self._write(line, data)
            except OSError as error:
                self._storage.close()
                raise _unavailable(error, self._place) from error
            self._advance(line, data)
            self._usable = True
            return self._opened.end.seq

    def close(self) -> None:
        """Write a last checkpoint and let go of the lock; nothing in a forked process.

        Raises RecordError; every line is durable all the same.
        """
        if os.getpid() != self._owner:
            return
        with self._guard:
            try:
                if self._usable and self._opened.vouched != self._opened.end:
                    self._checkpoint()
            except OSError as error:
                raise _unavailable(error, self._place) from error
            finally:
                self._usable = False
                self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RecordError:
            if error is None:
                raise

    def _encoded(self, body: Body) -> bytes:
        try:
            line = encode(self._opened.end.seq + 1, self._opened.end.hash, body)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordError(
                "the record of this decision has no JSON form",
                remedy="send plain JSON values",
                where=Location(self._place),
            ) from error
        if len(line) > LINE_BYTES:
            raise RecordError(
                f"the record of this decision is longer than {LINE_BYTES} bytes",
                remedy="ask for less in one request",
                where=Location(self._place),
            )
        return line

    def _write(self, line: bytes, events: bytes) -> None:
        # A checkpoint that is due comes first: if it fails, this line was never written.
        end, vouched = self._opened.end, self._opened.vouched
        if end.seq - vouched.seq >= CHECKPOINT_RECORDS or end.size - vouched.size >= CHECKPOINT_BYTES:
            self._checkpoint()
        if events:
            self._storage.append(EVENTS, events)
            self._storage.sync(EVENTS)
        self._storage.append(DECISIONS, line + b"\n")
        self._storage.sync(DECISIONS)

    def _advance(self, line: bytes, events: bytes) -> None:
        end, known = self._opened.end, self._opened.events
        self._opened.end = Position(end.size + len(line) + 1, end.seq + 1, sha256(line).hexdigest())
        if events:
            last = events[events.rfind(b"\n", 0, -1) + 1 : -1]
            self._opened.events = Events(
                size=known.size + len(events),
                lines=known.lines + events.count(b"\n"),
                hash=sha256(last).hexdigest(),
            )

    def _checkpoint(self) -> None:
        now = timestamp(self._clock())
        write_checkpoint(self._storage, self._opened.identity, self._opened.end, self._opened.events, now)
        self._opened.vouched = self._opened.end


def _unavailable(error: OSError, place: str) -> RecordError:
    reason = (error.strerror or "input or output failed").lower()
    return RecordError(
        f"the record cannot be written: {reason}",
        remedy="make room, or repair the disk or the permissions of the state folder, then start again",
        where=Location(place),
    )


def _broken(problem: BrokenError, place: str) -> RecordError:
    broken = problem.broken
    return RecordError(
        f"the record is broken: {broken.kind} at byte {broken.offset}",
        remedy="run `engine record verify`; nothing is decided until the record is restored or moved aside",
        where=Location(f"{place}/{broken.file}", broken.line),
        code="engine.record_broken",
    )

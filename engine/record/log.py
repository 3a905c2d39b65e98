"""The record's interface for the engine: `append` returns once the line is on disk.

`append` for threads and `append_async` for event loops return when a line, and before it the source events it
covers, are durable. All callers share one queue (commit.py) before one writer (writer.py). Any failure on the
way closes the log permanently: a retried sync can report success for lost data (fsync(2)). Another log may
be opened on the same files (standing.py), which reads them again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from engine.errors import Location, RecordError, reason_of
from engine.record.chain import Position
from engine.record.checkpoint import read_anchor
from engine.record.commit import GroupCommit
from engine.record.layout import LINE_BYTES, LOCK, RECORDS, SEGMENT_BYTES, BreakKind, BrokenError
from engine.record.model import Body, DecisionRecord, encode_body, utc_now
from engine.record.recovery import Answered, recover
from engine.record.source_events import SourceEvent, block
from engine.record.storage import ChangedError, LockHeldError, Storage
from engine.record.verify import Heads, require_contained
from engine.record.writer import Writer
from engine.times import timestamp

_HEAD_BYTES = 128
"""Upper bound for the number and digest before a body."""


class RecordLog:
    """An open record, created by `open`; threads may share it; use it as a context manager or call `close`."""

    def __init__(self, storage: Storage, writer: Writer) -> None:
        self.storage = storage
        self._owner = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self.retaining = threading.Lock()
        """Held while old segments are removed: another removal would change what this one has found."""
        self.opened = opened = writer.opened
        """The end of the record and of its last checkpoint, the installation, and what opening has cut off."""
        self._writer = writer
        self._commits = GroupCommit(opened.end.seq, opened.end.hash, writer.write, storage.release_all, self._failure)

    @classmethod
    def open(
        cls,
        storage: Storage,
        *,
        lock_seconds: float,
        clock: Callable[[], datetime] = utc_now,
        segment_bytes: int = SEGMENT_BYTES,
        heads: Callable[[], Heads] = dict,
        answered: Answered | None = None,
    ) -> RecordLog:
        """Open the record below a state folder, creating it at first use.

        Waits up to `lock_seconds` for another writer. `clock` returns aware times, for checkpoints and
        recoveries only. A segment of `segment_bytes` or more is followed by the next. The record has to contain all
        `heads`, which are read under the lock, and everything `answered` from it before. Writes that a crash left
        unfinished are cut, saved and recorded. A lock that this process already has is kept, also if opening fails.
        Raises RecordError `engine.record_locked`, `engine.record_broken` or `engine.record_unavailable`.
        """
        locked = storage.holds(LOCK)
        try:
            if answered is None:
                storage.make_folder("")
                storage.make_folder(RECORDS)
            storage.lock(LOCK, lock_seconds)
            opened = recover(storage, lambda: timestamp(clock()), heads(), answered)
            return cls(storage, Writer(storage, opened, segment_bytes, lambda: timestamp(clock())))
        except LockHeldError:
            storage.close()
            raise RecordError(
                f"another engine uses this record and did not release it within {lock_seconds:g} seconds",
                remedy="stop it, wait, or use another state folder (`--state`)",
                where=Location(storage.place),
                code="engine.record_locked",
            ) from None
        except BaseException as error:
            (storage.release_all if locked else storage.close)()
            if isinstance(error, BrokenError):
                raise broken_error(error, storage.place) from None
            if isinstance(error, OSError):
                raise unavailable(error, storage.place) from error
            raise

    @property
    def seq(self) -> int:
        """The number of durable lines, including those that retention removed."""
        return self.opened.end.seq

    @property
    def usable(self) -> bool:
        """False after a failure or `close`, permanently."""
        return self._commits.open

    def append(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """Write one line, and the source events of a decision before it; returns its seq once both are durable.

        Raises RecordError `engine.record_unavailable`; unless the body itself has no JSON form or is too long,
        the log is then closed for ever.
        """
        return self._commits.commit(*self._encoded(body, events))

    def append_many(self, bodies: Sequence[tuple[Body, Sequence[SourceEvent]]]) -> list[int | RecordError]:
        """`append` for many lines at once; returns for each its seq or its error."""
        outcomes: list[int | RecordError] = []
        encoded: list[tuple[bytes, bytes]] = []
        for body, events in bodies:
            try:
                encoded.append(self._encoded(body, events))
                outcomes.append(0)
            except RecordError as error:
                outcomes.append(error)
        written = iter(self._commits.commit_many(encoded))
        return [next(written) if outcome == 0 else outcome for outcome in outcomes]

    async def append_async(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`append` from an event loop. If the caller is cancelled, the line is still written."""
        return await self._commits.commit_async(*self._encoded(body, events))

    def between_batches(self, action: Callable[[Writer], None]) -> None:
        """Run `action` while nothing is being written. Raises RecordError; an OSError closes the log permanently."""
        self._demand_owner()
        self._commits.run(lambda: action(self._writer))

    def vouch(self) -> None:
        """Check that all files are in their places, and write a checkpoint of all lines so far. Raises RecordError."""
        self.between_batches(lambda writer: writer.vouch())

    def contains(self, end: Position) -> bool:
        """Whether the record contains this position, or retention removed it. May raise OSError."""
        try:
            require_contained(self.storage, self.opened.identity, read_anchor(self.storage, None), end)
        except BrokenError:
            return False
        return True

    @property
    def failure(self) -> RecordError:
        """The error that closed this log permanently."""
        return self._commits.reason or self._failure(None)

    def leave(self) -> Answered:
        """Close a failed log except for its lock; returns how far it has answered."""
        self._commits.close()
        with self._closing:
            self._closed = True
            return Answered(self.opened.identity.installation, self.opened.end, self.storage.holds(LOCK))

    def close(self) -> None:
        """Write a last checkpoint and release the lock; no effect in a forked process.

        Every line is durable without it: a disk without room for it takes no answer back. Raises RecordError if
        another program has changed a file.
        """
        if os.getpid() != self._owner:
            return
        self._commits.close()
        with self._closing:
            try:
                if not self._commits.failed and not self._closed:
                    self._writer.checkpoint()
            except ChangedError as error:
                raise unavailable(error, self.storage.place) from error
            except OSError:
                pass
            finally:
                self._closed = True
                self.storage.close()

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

    def _encoded(self, body: Body, events: Sequence[SourceEvent]) -> tuple[bytes, bytes]:
        self._demand_owner()
        data, covered = block(events)
        if covered is not None:
            if not isinstance(body, DecisionRecord):
                raise TypeError("source events require a decision")
            body = body.model_copy(update={"source_events": covered})
        try:
            encoded = encode_body(body)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordError(
                "the record of this decision cannot be written as JSON",
                remedy="send plain JSON values",
                where=Location(self.storage.place),
            ) from error
        if len(encoded) + _HEAD_BYTES > LINE_BYTES:
            raise RecordError(
                f"the record of this decision is longer than {LINE_BYTES} bytes",
                remedy="send less in one request",
                where=Location(self.storage.place),
            )
        return encoded, data

    def _demand_owner(self) -> None:
        if os.getpid() != self._owner:  # a fork shares the file: two writers would break the chain
            raise RecordError(
                "this record was opened in another process",
                remedy="open a separate engine in each process, after the fork",
                where=Location(self.storage.place),
            )

    def _failure(self, error: BaseException | None) -> RecordError:
        if isinstance(error, OSError):
            failure = unavailable(error, self.storage.place)
            failure.__cause__ = error
            return failure
        return RecordError(
            "the record is closed after a failure",
            remedy="retry in a few seconds; a running engine reopens the record by itself",
            where=Location(self.storage.place),
        )


def unavailable(error: OSError, place: str) -> RecordError:
    """The error for a record below `place` whose disk failed."""
    reason = reason_of(error)
    remedy = "free disk space, repair the disk or the permissions of the state folder, or use another folder"
    if isinstance(error, ChangedError):
        remedy = "restore the file, and stop whatever changes files of the state folder"
    return RecordError(
        f"the record cannot be written: {reason}",
        remedy=f"{remedy}; a running engine then continues by itself",
        where=Location(place),
    )


def broken_error(problem: BrokenError, place: str) -> RecordError:
    """The error for a record below `place` that must not be written to."""
    broken = problem.broken
    if broken.kind is BreakKind.ROLLED_BACK:
        return RecordError(
            f"the record was rolled back or replaced: line {broken.seq or 1} differs from the one in the state",
            remedy="restore the newest copy of the record; until then, or until the whole state folder is moved"
            " aside, every request fails",
            where=Location(f"{place}/{broken.file}", broken.line),
            code="engine.record_rolled_back",
        )
    return RecordError(
        f"the record is broken: {broken.kind} at byte {broken.offset}",
        remedy="run `engine record verify`; until the record is restored or moved aside, every request fails",
        where=Location(f"{place}/{broken.file}", broken.line),
        code="engine.record_broken",
    )

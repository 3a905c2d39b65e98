"""The record as everybody else sees it: nothing is answered before its line is on disk.

`append` for threads and `append_async` for event loops return when a line, and before it the source events it
covers, are durable. All callers share one queue (commit.py) before one writer (writer.py). Any failure on the
way closes the log for ever: a retried sync can report success for data that is lost (fsync(2)). Another log may
be opened on the same files (standing.py), which reads again what is there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.errors import Location, RecordError
from engine.record.chain import Position
from engine.record.checkpoint import read_anchor
from engine.record.commit import GroupCommit
from engine.record.layout import LINE_BYTES, LOCK, RECORDS, SEGMENT_BYTES, BreakKind, BrokenError
from engine.record.model import Body, DecisionRecord, RecoveryRecord, encode_body, timestamp, utc_now
from engine.record.recovery import Answered, recover
from engine.record.source_events import SourceEvent, block
from engine.record.storage import ChangedError, DiskStorage, LockHeldError, Storage
from engine.record.verify import Heads, require_contained
from engine.record.writer import Writer

_HEAD_BYTES = 128
"""More than the number and digest before a body take."""


class RecordLog:
    """An open record. Made by `open`; threads may share it; use it as a context manager or call `close`."""

    def __init__(self, storage: Storage, writer: Writer, place: str) -> None:
        self.storage = storage
        self._place = place
        self._owner = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self.retaining = threading.Lock()
        """Held while old segments are removed: another removal would change what this one has found."""
        self._opened = opened = writer.opened
        self._writer = writer
        self._commits = GroupCommit(opened.end.seq, opened.end.hash, writer.write, storage.release_all, self._failure)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        lock_seconds: float,
        clock: Callable[[], datetime] = utc_now,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> RecordLog:
        """Open the record in `folder`, the `records` folder of a state folder, creating it at first use.

        Waits up to `lock_seconds` for another writer. `clock` gives aware times, for checkpoints and
        recoveries only. A segment of `segment_bytes` or more is followed by the next. What a crash left
        unfinished is cut, kept aside and recorded. Raises RecordError `engine.record_locked`,
        `engine.record_broken` or `engine.record_unavailable`.
        """
        if folder.name != RECORDS:
            raise ValueError(f"the record lives in a folder named {RECORDS}")
        return cls.on(
            DiskStorage(folder.parent),
            lock_seconds=lock_seconds,
            clock=clock,
            place=str(folder.parent),
            segment_bytes=segment_bytes,
        )

    @classmethod
    def on(
        cls,
        storage: Storage,
        *,
        lock_seconds: float,
        clock: Callable[[], datetime],
        place: str,
        segment_bytes: int = SEGMENT_BYTES,
        heads: Callable[[], Heads] = dict,
        answered: Answered | None = None,
    ) -> RecordLog:
        """`open` on any storage; `place` names it in errors.

        The record has to contain all `heads`, which are asked for under the lock, and what was `answered`
        from it before. A lock that is held already is kept, also where opening fails.
        """
        held = storage.holds(LOCK)
        try:
            if answered is None:
                storage.make_folder("")
                storage.make_folder(RECORDS)
            storage.lock(LOCK, lock_seconds)
            opened = recover(storage, lambda: timestamp(clock()), heads(), answered)
            return cls(storage, Writer(storage, opened, segment_bytes, lambda: timestamp(clock())), place)
        except LockHeldError:
            storage.close()
            raise RecordError(
                f"another engine holds this record and did not let go in {lock_seconds:g} seconds",
                remedy="stop it or wait, or give this engine another state folder with `--state`",
                where=Location(place),
                code="engine.record_locked",
            ) from None
        except BaseException as error:
            (storage.release_all if held else storage.close)()
            if isinstance(error, BrokenError):
                raise _broken(error, place) from None
            if isinstance(error, OSError):
                raise _unavailable(error, place) from error
            raise

    @property
    def seq(self) -> int:
        """How many lines are durable, those that retention removed included."""
        return self._opened.end.seq

    @property
    def vouched(self) -> Position:
        """The end of the record that the last checkpoint vouches for."""
        return self._opened.vouched

    @property
    def installation(self) -> str:
        """The id of the installation that writes this record."""
        return self._opened.identity.installation

    @property
    def recovered(self) -> tuple[RecoveryRecord, ...]:
        """What opening had to cut off."""
        return self._opened.recovered

    @property
    def usable(self) -> bool:
        """False for ever after a failure, and once it is closed."""
        return self._commits.open

    def append(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """Write one line, and the source events of a decision before it; returns its seq once both are durable.

        Raises RecordError `engine.record_unavailable`; unless the body itself has no JSON form or is too long,
        the log is then closed for ever.
        """
        return self._commits.commit(*self._encoded(body, events))

    def append_many(self, bodies: Sequence[tuple[Body, Sequence[SourceEvent]]]) -> list[int | RecordError]:
        """`append` for many lines at once: the seq of each, or why it was not recorded."""
        outcomes: list[int | RecordError] = []
        encoded: list[tuple[bytes, bytes]] = []
        for body, events in bodies:
            try:
                encoded.append(self._encoded(body, events))
                outcomes.append(0)
            except RecordError as error:
                outcomes.append(error)
        written = iter(self._commits.commit_many(encoded))
        return [next(written) if one == 0 else one for one in outcomes]

    async def append_async(self, body: Body, events: Sequence[SourceEvent] = ()) -> int:
        """`append` that holds up no event loop. Cancelled, it leaves the line to be written all the same."""
        return await self._commits.commit_async(*self._encoded(body, events))

    def between_batches(self, action: Callable[[Writer], None]) -> None:
        """Run `action` while nothing is being written. Raises RecordError; an OSError closes the log for ever."""
        self._demand_owner()
        self._commits.run(lambda: action(self._writer))

    def vouch(self) -> None:
        """See that the files of the record are in their places, and write a checkpoint of all lines so far.

        Raises RecordError.
        """
        self.between_batches(lambda writer: writer.vouch())

    def contains(self, end: Position) -> bool:
        """Whether the record has the line that ended there, or retention removed it. May raise OSError."""
        try:
            require_contained(self.storage, self._opened.identity, read_anchor(self.storage, None), end)
        except BrokenError:
            return False
        return True

    @property
    def failure(self) -> RecordError:
        """Why this log was closed for ever."""
        return self._commits.reason or self._failure(None)

    def leave(self) -> Answered:
        """End what is left of a log that has failed, but for its lock: how far it has answered."""
        self._commits.close()
        with self._closing:
            self._closed = True
        return Answered(self.installation, self._opened.end, self.storage.holds(LOCK))

    def close(self) -> None:
        """Write a last checkpoint and let go of the lock; nothing in a forked process.

        Raises RecordError; every line is durable all the same.
        """
        if os.getpid() != self._owner:
            return
        self._commits.close()
        with self._closing:
            try:
                if not self._commits.failed and not self._closed:
                    self._writer.checkpoint()
            except OSError as error:
                raise _unavailable(error, self._place) from error
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
                raise TypeError("source events belong to a decision")
            body = body.model_copy(update={"source_events": covered})
        try:
            encoded = encode_body(body)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordError(
                "the record of this decision has no JSON form",
                remedy="send plain JSON values",
                where=Location(self._place),
            ) from error
        if len(encoded) + _HEAD_BYTES > LINE_BYTES:
            raise RecordError(
                f"the record of this decision is longer than {LINE_BYTES} bytes",
                remedy="ask for less in one request",
                where=Location(self._place),
            )
        return encoded, data

    def _demand_owner(self) -> None:
        if os.getpid() != self._owner:  # a fork shares the file: two writers would break the chain
            raise RecordError(
                "this record was opened in another process",
                remedy="open an engine of its own in each process, after the fork",
                where=Location(self._place),
            )

    def _failure(self, error: BaseException | None) -> RecordError:
        if isinstance(error, OSError):
            failure = _unavailable(error, self._place)
            failure.__cause__ = error
            return failure
        return RecordError(
            "the record is closed after a failure",
            remedy="ask again in a few seconds; a running engine opens the record again by itself",
            where=Location(self._place),
        )


def _unavailable(error: OSError, place: str) -> RecordError:
    reason = (error.strerror or "input or output failed").lower()
    remedy = "make room, repair the disk or the permissions of the state folder, or name another folder"
    if isinstance(error, ChangedError):
        remedy = "put back the file as it was, and end what removes or changes files of the state folder"
    return RecordError(
        f"the record cannot be written: {reason}",
        remedy=f"{remedy}; a running engine then continues by itself",
        where=Location(place),
    )


def _broken(problem: BrokenError, place: str) -> RecordError:
    broken = problem.broken
    if broken.kind is BreakKind.ROLLED_BACK:
        return RecordError(
            f"the record was rolled back or replaced: line {broken.seq or 1} is not the one that is remembered",
            remedy="restore the newest copy of the record; nothing is decided until then, or until the whole state"
            " folder is moved aside",
            where=Location(f"{place}/{broken.file}", broken.line),
            code="engine.record_rolled_back",
        )
    return RecordError(
        f"the record is broken: {broken.kind} at byte {broken.offset}",
        remedy="run `engine record verify`; nothing is decided until the record is restored or moved aside",
        where=Location(f"{place}/{broken.file}", broken.line),
        code="engine.record_broken",
    )

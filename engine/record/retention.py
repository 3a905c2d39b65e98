"""Removes whole old segments, and leaves behind what proves that it was this and no tampering.

In order, each step durable before the next: a retention line in the record, a checkpoint that vouches for it,
the signed anchor from which the rest is checked, then the files are removed. A crash before the anchor leaves
everything, and a line that tells of a removal that was not done; a crash behind it leaves files that the next
start removes. Nothing is removed from a record that does not verify: that would remove the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from engine.errors import Exit, Location, RecordError
from engine.record.checkpoint import Events, write_anchor
from engine.record.events_file import last_line
from engine.record.layout import EVENTS, LOCK, SEGMENT_BYTES, segment_file
from engine.record.lines import Lines
from engine.record.log import RecordLog
from engine.record.model import RetentionRecord, timestamp
from engine.record.reader import line_time
from engine.record.recovery import remove_segments
from engine.record.storage import Storage
from engine.record.verify import SegmentEnd, verify_storage
from engine.record.writer import Writer

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Retained:
    """What was removed: the numbers of the first and last segment, how many lines, and how many bytes."""

    first: int
    last: int
    lines: int
    size: int


@dataclass(frozen=True, slots=True)
class By:
    """Who removes, and why."""

    principal: str | None = None
    reason: str | None = None


NOBODY = By()


def retain(
    state: Path, keep_days: int, floor_days: int, now: datetime, by: By = NOBODY, *, lock_seconds: float = 10.0
) -> Retained | None:
    """Remove segments in which every line is older than `keep_days`; None where there is none.

    Raises RecordError: `engine.record_retention` where `keep_days` is less than `floor_days`, which policy says;
    `engine.record_locked` while an engine writes (it can call `retain_in` itself); `engine.record_broken`.
    """
    _demand_floor(keep_days, floor_days)
    if not (state / LOCK).exists():
        return None  # nothing was ever recorded here
    with RecordLog.open(
        state / LOCK.partition("/")[0], lock_seconds=lock_seconds, clock=lambda: now, segment_bytes=SEGMENT_BYTES
    ) as log:
        return retain_in(log, keep_days, floor_days, now, by)


def retain_in(log: RecordLog, keep_days: int, floor_days: int, now: datetime, by: By = NOBODY) -> Retained | None:
    """`retain` on an open record; others may append to it all the while."""
    _demand_floor(keep_days, floor_days)
    before = timestamp(now - timedelta(days=keep_days))
    storage = log.storage
    log.between_batches(lambda writer: _close_old_segment(writer, before))
    found = verify_storage(storage)
    if not found.ok:
        raise RecordError(
            f"the record is broken: {found.breaks[0].kind}; nothing is removed from it",
            remedy="run `engine record verify`",
            where=Location(found.breaks[0].file, found.breaks[0].line),
            code="engine.record_broken",
        )
    old: list[SegmentEnd] = []
    for end in found.ends:
        if not _all_before(storage, end.end.segment, before):
            break
        old.append(end)
    if not old:
        return None
    first, last = old[0].end.segment, old[-1].end
    size = sum(end.end.size for end in old)
    line = RetentionRecord(
        time=timestamp(now),
        keep_days=keep_days,
        floor_days=floor_days,
        before=before,
        first_segment=first,
        last_segment=last.segment,
        last_seq=last.seq,
        last_hash=last.hash,
        principal=by.principal,
        reason=by.reason,
    )
    told = log.append(line)
    log.between_batches(lambda writer: _remove(writer, old, told, timestamp(now)))
    return Retained(first, last.segment, last.seq - found.removed, size)


def _demand_floor(keep_days: int, floor_days: int) -> None:
    if keep_days < max(floor_days, 0):
        error = RecordError(
            f"records are kept for at least {floor_days} days; {keep_days} is less",
            remedy="keep them for longer, or have the retention floor in policy/ changed",
            code="engine.record_retention",
        )
        error.exit = Exit.UNREADABLE
        raise error


def _close_old_segment(writer: Writer, before: str) -> None:
    """A record to which little is written ends its segment here, or it would keep the first line for ever."""
    end = writer.opened.end
    if end.lines == 0:
        return
    with writer.storage.open(end.file) as file:
        first = line_time(next(iter(Lines(file)), b""))
    if first is not None and first < before:
        writer.rotate()


def _all_before(storage: Storage, segment: int, before: str) -> bool:
    with storage.open(segment_file(segment)) as file:
        return all((line_time(line) or before) < before for line in Lines(file))


def _remove(writer: Writer, old: list[SegmentEnd], told: int, now: str) -> None:
    writer.checkpoint()
    opened, storage, last = writer.opened, writer.storage, old[-1]
    with storage.open(EVENTS) as file:
        digest, left = sha256(), last.events_size
        while left and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        end = last_line(file, last.events_size, opened.identity.genesis)[1]
    events = Events(size=last.events_size, lines=last.events_lines, hash=end)
    write_anchor(storage, opened.identity, last.end.next_segment(), events, digest.hexdigest(), told, now)
    remove_segments(storage, [one.end.segment for one in old])
    writer.watch()

"""Retention: removes whole old segments and leaves a signed proof that this was not tampering.

In order, each step durable before the next: a retention line in the record, a checkpoint that covers it,
the signed anchor from which the rest is checked, then the files are removed. A crash before the anchor leaves
everything, and a line about a removal that was not done; a crash after it leaves files that the next
start removes. Nothing is removed from a record that does not verify: that would remove the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from engine.errors import Location, RecordError
from engine.model import Mode, Revisions
from engine.record.checkpoint import write_anchor
from engine.record.layout import EVENTS, segment_file
from engine.record.lines import Lines, measured
from engine.record.log import RecordLog
from engine.record.model import DecisionRecord, RetentionRecord
from engine.record.reader import Filter, line_time, newest
from engine.record.recovery import remove_segments
from engine.record.shipping import first_unshipped
from engine.record.storage import Storage
from engine.record.verify import verify_storage
from engine.record.walk import SegmentEnd
from engine.record.writer import Writer
from engine.times import timestamp

RETENTION_POINT = "record"
"""The decision point that decides how long a record is kept."""


@dataclass(frozen=True, slots=True)
class Retained:
    """The removed segments: the first and last number, the lines and the bytes."""

    first: int
    last: int
    lines: int
    size: int


@dataclass(frozen=True, slots=True)
class RetentionOrder:
    """What a decision on retention allows, as of `time` in seconds since 1970 UTC."""

    decision_id: str
    keep_days: int
    time: int
    principal: str | None
    reason: str | None

    @property
    def now(self) -> datetime:
        """The time of the decision."""
        return datetime.fromtimestamp(self.time, UTC)

    def carry_out(self, log: RecordLog, state: Path) -> Retained | None:
        """`retain` on one chain of a state folder; of a record that is shipped, only what the store has."""
        return retain(log, self, first_unshipped(state, log.storage, log.opened.identity))


def last_policy(state: Path) -> Revisions | None:
    """The policy of the last enforced decision, except those on retention itself; None if there is none."""
    for entry in newest(state, Filter(mode=Mode.ENFORCE)):
        body = entry.body
        if isinstance(body, DecisionRecord) and body.point != RETENTION_POINT and body.policy is not None:
            return body.policy
    return None


def begin(log: RecordLog, keep_days: int, now: datetime) -> None:
    """End a segment with old lines, so that the decision to remove them is not in it."""
    log.between_batches(lambda writer: _close_old_segment(writer, _before(keep_days, now)))


def retain(log: RecordLog, order: RetentionOrder, kept: int | None = None) -> Retained | None:
    """Remove segments in which every line is older than the order says; None if there are none.

    Other callers may append to the record meanwhile. Segments from `kept` on stay.
    Raises RecordError: `engine.record_broken` if the record does not verify.
    """
    with log.retaining:
        begin(log, order.keep_days, order.now)
        storage, before = log.storage, _before(order.keep_days, order.now)
        found = verify_storage(storage)
        if not found.ok:
            raise RecordError(
                f"the record is broken: {found.breaks[0].kind}; nothing is removed from it",
                remedy="run `engine record verify`",
                where=Location(found.breaks[0].file, found.breaks[0].line),
                code="engine.record_broken",
            )
        ends = [end for end in found.ends if kept is None or end.end.segment < kept]
        old = list(takewhile(lambda end: _all_before(storage, end.end.segment, before), ends))
        if not old:
            return None
        first, last, time = old[0].end.segment, old[-1].end, timestamp(order.now)
        line = RetentionRecord(
            time=time,
            keep_days=order.keep_days,
            decision_id=order.decision_id,
            before=before,
            first_segment=first,
            last_segment=last.segment,
            last_seq=last.seq,
            last_hash=last.hash,
            principal=order.principal,
            reason=order.reason,
        )
        logged = log.append(line)
        log.between_batches(lambda writer: _remove(writer, old, logged, time))
        return Retained(first, last.segment, last.seq - found.removed, sum(end.end.size for end in old))


def _before(keep_days: int, now: datetime) -> str:
    return timestamp(now - timedelta(days=keep_days))


def _close_old_segment(writer: Writer, before: str) -> None:
    """A record with little traffic ends its segment here; otherwise it would keep its first line forever."""
    with writer.storage.open(writer.opened.end.file) as file:
        first = line_time(next(iter(Lines(file)), b""))
    if first is not None and first < before:
        writer.rotate()


def _all_before(storage: Storage, segment: int, before: str) -> bool:
    with storage.open(segment_file(segment)) as file:
        return all((line_time(line) or before) < before for line in Lines(file))


def _remove(writer: Writer, old: list[SegmentEnd], logged: int, now: str) -> None:
    writer.checkpoint()
    opened, storage, last = writer.opened, writer.storage, old[-1]
    with storage.open(EVENTS) as file:
        digest = measured(file, last.events_size)[-1]
        events = last.events(file, opened.identity.genesis)
    write_anchor(storage, opened.identity, last.end.next_segment(), events, digest, logged, now)
    remove_segments(storage, [segment_end.end.segment for segment_end in old])
    writer.watch()

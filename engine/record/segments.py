"""Which segments a record has, which it must have, and how they are opened one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from engine.record.chain import Position
from engine.record.checkpoint import Anchor, Checkpoint
from engine.record.layout import (
    EVENTS,
    RECORDS,
    Break,
    BreakKind,
    BrokenError,
    segment_file,
    segment_numbers,
)
from engine.record.storage import Storage


@dataclass(frozen=True, slots=True)
class Segments:
    """The numbers of the first and the last segment; those that retention was about to remove are `left`."""

    first: int
    last: int
    left: tuple[int, ...] = ()


def find_segments(storage: Storage, anchor: Anchor | None, checkpoint: Checkpoint | None) -> Segments:
    """The segments that are there. Raises BrokenError unless exactly the files of this record are.

    From the anchor to the checkpoint every segment must be there; behind the checkpoint there may be one more,
    because a checkpoint is written before every new segment.
    """
    names = storage.names(RECORDS)
    numbers = segment_numbers(names)
    first = 1 if anchor is None else anchor.segment
    there = {number for number in numbers if number >= first}
    needed = max(there, default=first) if checkpoint is None else checkpoint.segment
    for number in range(first, needed + 1):
        if number not in there:
            raise _broken(segment_file(number), BreakKind.MISSING_SEGMENT, "a file", "none")
    if EVENTS.rpartition("/")[2] not in names:
        raise _broken(EVENTS, BreakKind.MISSING_SEGMENT, "a file", "none")
    ours = {EVENTS, *(segment_file(number) for number in numbers if number <= needed + 1)}
    for name in names:
        if name.endswith(".jsonl") and f"{RECORDS}/{name}" not in ours:
            raise _broken(f"{RECORDS}/{name}", BreakKind.UNKNOWN_SEGMENT, "no such file", "a file")
    return Segments(first, max(there), tuple(number for number in numbers if number < first))


def open_segments(storage: Storage, start: Position, last: int) -> Iterator[tuple[int, BinaryIO]]:
    """Each segment by its number from that of `start`, the first one standing at `start`."""
    for number in range(start.segment, last + 1):
        with storage.open(segment_file(number)) as file:
            if number == start.segment:
                file.seek(start.size)
            yield number, file


def left_break(number: int) -> Break:
    """What to say of a segment that retention did not finish removing."""
    return Break(segment_file(number), 1, 0, None, BreakKind.LEFT_SEGMENT, "no such file", "a file")


def _broken(path: str, kind: BreakKind, expected: str, found: str) -> BrokenError:
    return BrokenError(Break(path, 1, 0, None, kind, expected, found))

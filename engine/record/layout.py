"""Where the record's files are below the state folder, and what may go wrong with them.

state/
├── installation.json            who wrote this record; written last at first use
├── keys/record.key              32 random bytes that sign checkpoints and anchors
├── checkpoints/decisions.json   how far the record is vouched for
├── checkpoints/anchor.json      what retention has removed; the record starts behind it
└── records/
    ├── lock                     held by the one writer
    ├── decisions.000001.jsonl   the record, in segments; the last one is written to
    ├── source_events.jsonl      the narrow view for data governance
    └── cut/                     unfinished writes that were cut off

source_events.jsonl is one file and stays whole: its lines carry no time to go by and nothing that has to be
forgotten, and whoever compares it between two runs needs it from its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

INSTALLATION = "installation.json"
KEYS = "keys"
KEY = f"{KEYS}/record.key"
CHECKPOINTS = "checkpoints"
CHECKPOINT = f"{CHECKPOINTS}/decisions.json"
ANCHOR = f"{CHECKPOINTS}/anchor.json"
RECORDS = "records"
LOCK = f"{RECORDS}/lock"
DECISIONS = f"{RECORDS}/decisions.000001.jsonl"
"""The first segment, where a record begins."""

EVENTS = f"{RECORDS}/source_events.jsonl"
CUT = f"{RECORDS}/cut"

SEGMENT_BYTES = 256 << 20
"""Size from which on the next batch opens a new segment: some 200,000 decisions. Retention removes whole
segments, so this is what it may keep too long; and it is what one copy, one look or one restore has to move."""

LINE_BYTES = 256 << 20
"""The longest line: an input of 64 MiB in canonical JSON, its findings and limits, with room."""


class BreakKind(StrEnum):
    """What is wrong at the first place where the record does not hold."""

    BAD_JSON = "bad_json"  # a line that the writer would not have written
    BAD_KEYS = "bad_keys"  # JSON, but not a record: a key or value too many, too few or of another type
    SEQ_GAP = "seq_gap"  # a line is missing, doubled or out of place
    CHAIN_BREAK = "chain_break"  # the bytes of a line are not those that the next line vouches for
    TORN_TAIL = "torn_tail"  # the last write did not finish
    ORPHAN_EVENTS = "orphan_events"  # source events whose decision was never written
    EVENTS_MISMATCH = "events_mismatch"  # source events are not those that a decision vouches for
    RETENTION_MISMATCH = "retention_mismatch"  # what the anchor says was removed is not what the record says
    LEFT_SEGMENT = "left_segment"  # retention did not finish removing a file
    MISSING_SEGMENT = "missing_segment"  # a file of the record is gone
    UNKNOWN_SEGMENT = "unknown_segment"  # a file that this record does not have
    BEFORE_CHECKPOINT = "before_checkpoint"  # shorter than was vouched for
    CHECKPOINT_MISMATCH = "checkpoint_mismatch"  # another content than was vouched for
    CHECKPOINT_MISSING = "checkpoint_missing"
    ROLLED_BACK = "rolled_back"  # without a line that is remembered outside the record
    INSTALLATION_MISSING = "installation_missing"
    BAD_SIGNATURE = "bad_signature"  # the checkpoint or the anchor is not signed with this record's key


REPAIRABLE = frozenset({BreakKind.TORN_TAIL, BreakKind.ORPHAN_EVENTS, BreakKind.LEFT_SEGMENT})
"""What a crash leaves behind; the next start cuts it, keeps it aside and records that, or removes it."""

_SEGMENT = re.compile(r"decisions\.([0-9]{6,12})\.jsonl")


def segment_file(number: int) -> str:
    """The path of a segment; they are counted from 1."""
    return f"{RECORDS}/decisions.{number:06d}.jsonl"


def segment_numbers(names: Iterable[str]) -> list[int]:
    """The segments among the names of a folder, sorted."""
    found = ((int(match[1]), name) for name in names if (match := _SEGMENT.fullmatch(name)))
    return sorted(number for number, name in found if number > 0 and segment_file(number) == f"{RECORDS}/{name}")


@dataclass(frozen=True, slots=True)
class Break:
    """The first place in one file where the record does not hold.

    `file` is relative to the state folder, `line` counts from 1, `offset` is the byte where the line
    starts. `expected` and `found` are numbers, digests or a few words, never content.
    """

    file: str
    line: int
    offset: int
    seq: int | None
    kind: BreakKind
    expected: str
    found: str

    @property
    def repairable(self) -> bool:
        """Whether the next start mends it by itself."""
        return self.kind in REPAIRABLE


class BrokenError(Exception):
    """Carries a break out of the pure code; callers turn it into an answer or a RecordError."""

    def __init__(self, broken: Break) -> None:
        super().__init__(broken.kind)
        self.broken = broken

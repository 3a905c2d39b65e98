"""The files of a chain, the first one below the state folder itself, and the ways in which they can be broken.

state/
├── installation.json            who wrote this record; written last at first use
├── keys/record.key              32 random bytes that sign checkpoints and anchors
├── checkpoints/decisions.json   the verified end of the record
├── checkpoints/anchor.json      what retention has removed; the record starts after it
└── records/
    ├── lock                     locked by the only writer of this chain
    ├── decisions.000001.jsonl   the record, in segments; the last one is written to
    ├── source_events.jsonl      the narrow view for data governance
    └── cut/                     unfinished writes that were cut off

Further chains have the same files below `chains/002`, `chains/003` and so on (chains.py).

source_events.jsonl is a single file that is never pruned: its lines have no time and nothing that must be
deleted, and comparisons between two runs need all of it.
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
"""Size at which the next batch opens a new segment: some 200,000 decisions. Retention removes whole
segments, so up to this much is kept too long; and it is the unit of copying, reading and restoring."""

LINE_BYTES = 256 << 20
"""The longest line: an input of 64 MiB in canonical JSON, its findings and limits, with room."""


class BreakKind(StrEnum):
    """The kinds of breaks of a record."""

    BAD_JSON = "bad_json"  # a line that the writer would not have written
    BAD_KEYS = "bad_keys"  # JSON, but not a record: a key or value too many, too few or of another type
    SEQ_GAP = "seq_gap"  # a line is missing, doubled or out of place
    CHAIN_BREAK = "chain_break"  # the bytes of a line do not match the hash in the next line
    TORN_TAIL = "torn_tail"  # the last write did not finish
    ORPHAN_EVENTS = "orphan_events"  # source events whose decision was never written
    EVENTS_MISMATCH = "events_mismatch"  # source events do not match the hash in a decision
    RETENTION_MISMATCH = "retention_mismatch"  # the anchor and the record disagree on what was removed
    LEFT_SEGMENT = "left_segment"  # retention did not finish removing a file
    MISSING_SEGMENT = "missing_segment"  # a file of the record is missing
    UNKNOWN_SEGMENT = "unknown_segment"  # a file that this record does not have
    BEFORE_CHECKPOINT = "before_checkpoint"  # shorter than the checkpoint
    CHECKPOINT_MISMATCH = "checkpoint_mismatch"  # another content than at the checkpoint
    CHECKPOINT_MISSING = "checkpoint_missing"
    ROLLED_BACK = "rolled_back"  # without a line that is remembered outside the record
    INSTALLATION_MISSING = "installation_missing"
    MANIFEST_MISSING = "manifest_missing"  # a bulk run that did not end
    BAD_SIGNATURE = "bad_signature"  # the checkpoint or the anchor is not signed with this record's key


_REPAIRABLE = frozenset({BreakKind.TORN_TAIL, BreakKind.ORPHAN_EVENTS, BreakKind.LEFT_SEGMENT})
"""What a crash leaves behind; the next start cuts it, saves it and records that, or removes it."""

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
    """The first broken place in one file.

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
        """Whether the next start repairs it by itself."""
        return self.kind in _REPAIRABLE


class BrokenError(Exception):
    """Carries a break to callers, which turn it into a result or a RecordError."""

    def __init__(self, broken: Break) -> None:
        super().__init__(broken.kind)
        self.broken = broken


def broken_file(file: str, kind: BreakKind, expected: str, found: str) -> BrokenError:
    """The error for a file that is broken as a whole."""
    return BrokenError(Break(file, 1, 0, None, kind, expected, found))

"""Encodes and strictly parses one line of the record. No I/O.

A line is `{"seq":N,"prev":"…",` followed by the canonical JSON of its body. `prev` is the SHA-256 of the
exact bytes of the line before, newline excluded, so a line covers all lines before it, in its own segment
and in those before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from engine.record.layout import BreakKind, segment_file
from engine.record.model import BODIES, Body, encode_body


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a record: `seq` lines in all, of which the last `lines` with `size` bytes are in this segment.

    `hash` is of the last line, or the genesis digest.
    """

    segment: int
    lines: int
    size: int
    seq: int
    hash: str

    @property
    def file(self) -> str:
        """The path of the segment."""
        return segment_file(self.segment)

    def after(self, *, lines: int, size: int, hash: str) -> Position:  # noqa: A002 (the field's name)
        """The end after adding this many lines and bytes, newlines included."""
        return Position(self.segment, self.lines + lines, self.size + size, self.seq + lines, hash)

    def next_segment(self) -> Position:
        """The start of the following segment."""
        return Position(self.segment + 1, 0, 0, self.seq, self.hash)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, read strictly, the number of its chain, and its bytes without the newline."""

    seq: int
    prev: str
    body: Body
    chain: int = 1
    size: int = field(default=0, compare=False)


class LineError(Exception):
    """A line that is not ours; `found` is the reason in a few words, never content."""

    def __init__(self, kind: BreakKind, found: str) -> None:
        super().__init__(found)
        self.kind = kind
        self.found = found


def encode(seq: int, prev: str, body: Body) -> bytes:
    """A line without its newline. Raises ValueError, TypeError or RecursionError for a body without a JSON form."""
    return head(seq, prev) + encode_body(body)[1:]


def parse(line: bytes, chain: int = 1) -> Entry:
    """Read one line of a chain strictly: our form, our keys, our types. Raises only LineError."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise LineError(BreakKind.BAD_JSON, "no JSON") from None
    if not isinstance(value, dict):
        raise LineError(BreakKind.BAD_JSON, "not a JSON object")
    seq, prev, kind = value.pop("seq", None), value.pop("prev", None), value.get("kind")
    if type(seq) is not int or not isinstance(prev, str) or not isinstance(kind, str) or kind not in BODIES:
        raise LineError(BreakKind.BAD_KEYS, "no valid seq, prev or kind")
    model = BODIES[kind]
    if value.keys() != model.model_fields.keys():
        raise LineError(BreakKind.BAD_KEYS, "a missing or unknown key")
    try:
        body = model.model_validate(value, strict=False)  # JSON has no tuples; comparing the bytes is stricter
        if encode(seq, prev, body) != line:
            raise LineError(BreakKind.BAD_JSON, "JSON in non-canonical form")
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"][:1])
        raise LineError(BreakKind.BAD_KEYS, f"a value of the wrong type in `{field}`") from None
    except (ValueError, TypeError, RecursionError):
        raise LineError(BreakKind.BAD_JSON, "JSON without a canonical form") from None
    return Entry(seq, prev, body, chain, len(line))


def head(seq: int, prev: str) -> bytes:
    """The start of a line; a body without its opening brace follows."""
    return b'{"seq":%d,"prev":"%b",' % (seq, prev.encode())


def plain_json(entry: Entry) -> dict[str, Any]:
    """A line as JSON values, for people and exports."""
    return {"seq": entry.seq, "prev": entry.prev, **entry.body.model_dump(mode="json")}

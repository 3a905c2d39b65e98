"""The chain: how a line is written, and how lines are checked one after the other. No I/O of its own.

A line is `{"seq":N,"prev":"…",` followed by the canonical JSON of its body. `prev` is the SHA-256 of the
exact bytes of the line before, newline excluded, so a line vouches for all lines before it. Because the
head of every line is known before it is read, checking needs no JSON parser: lines up to a signed
checkpoint are proven by their digests alone, lines after it are also read strictly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO

from pydantic import ValidationError

from engine.canonical import canonical
from engine.record.layout import DECISIONS, LINE_BYTES, Break, BreakKind, BrokenError
from engine.record.model import BODIES, Body

_CHUNK = 1 << 20
_EVENTS_MARK = b',"source_events":{'
_EVENTS_WITHIN = 512
"""Only time and versions, both short, follow the source events of a decision."""
_EVENTS = re.compile(
    rb',"source_events":\{"bytes":([0-9]+),"count":([0-9]+),"sha256":"([0-9a-f]{64})"\}'
    rb',"time":"[^"]+","versions":\{"engine":"[^"]*","opa":(?:null|"[^"]*")\}\}$'
)


OnEvents = Callable[[int, int, str, int], None]
"""Told of a decision's source events: their bytes, their count, their SHA-256, and the decision's seq."""


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a record of `seq` lines and `size` bytes; `hash` is of the last line, or the genesis digest."""

    size: int
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, read strictly."""

    seq: int
    prev: str
    body: Body


class LineError(Exception):
    """Why a line is none of ours; `found` is a few words, never content."""

    def __init__(self, kind: BreakKind, found: str) -> None:
        super().__init__(found)
        self.kind = kind
        self.found = found


def encode(seq: int, prev: str, body: Body) -> bytes:
    """The exact bytes of a line without its newline.

    Raises ValueError, TypeError or RecursionError on what has no JSON form.
    """
    return _head(seq, prev) + canonical(body.model_dump())[1:]


def parse(line: bytes) -> Entry:
    """Read one line strictly: our form, our keys, our types. Raises LineError, whatever the bytes are."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise LineError(BreakKind.BAD_JSON, "no JSON") from None
    if not isinstance(value, dict):
        raise LineError(BreakKind.BAD_JSON, "no JSON object")
    seq, prev, kind = value.pop("seq", None), value.pop("prev", None), value.get("kind")
    if type(seq) is not int or not isinstance(prev, str) or not isinstance(kind, str) or kind not in BODIES:
        raise LineError(BreakKind.BAD_KEYS, "no seq, prev or kind of ours")
    model = BODIES[kind]
    if value.keys() != model.model_fields.keys():
        raise LineError(BreakKind.BAD_KEYS, "a key too many or too few")
    try:
        body = model.model_validate(value, strict=False)  # JSON has no tuples; comparing the bytes is stricter
        if encode(seq, prev, body) != line:
            raise LineError(BreakKind.BAD_JSON, "JSON in another form")
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"][:1])
        raise LineError(BreakKind.BAD_KEYS, f"a value of another type in `{field}`") from None
    except (ValueError, RecursionError):
        raise LineError(BreakKind.BAD_JSON, "JSON that has no canonical form") from None
    return Entry(seq, prev, body)


class Lines:
    """Lines of a file without their newlines, in memory one at a time; what follows the last newline is `rest`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rest = b""

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        length = 0
        while chunk := self._file.read(_CHUNK):
            first, *others = chunk.split(b"\n")
            held.append(first)
            length += len(first)
            if length > LINE_BYTES:
                raise LineError(BreakKind.BAD_JSON, f"more than {LINE_BYTES} bytes without a newline")
            if others:
                last = others.pop()
                yield b"".join(held)
                yield from others
                held, length = [last], len(last)
        self.rest = b"".join(held)


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk saw: where the good lines end, and the bytes of an unfinished line after them."""

    end: Position
    rest: bytes


def walk(
    file: BinaryIO,
    start: Position,
    vouched: Position | None,
    on_events: OnEvents,
    on_vouched: Callable[[], None],
) -> Walked:
    """Check every line from `start`, where `file` stands, to the end. Raises BrokenError at the first break.

    Lines up to `vouched` are proven by digests alone; without it every line is read strictly. `on_events`
    is called for each decision that has source events, `on_vouched` once when the vouched size is reached.
    """
    return _Walk(start, vouched, on_events, on_vouched).run(Lines(file))


class _Walk:
    def __init__(
        self,
        start: Position,
        vouched: Position | None,
        on_events: OnEvents,
        on_vouched: Callable[[], None],
    ) -> None:
        self._size, self._seq, self._hash = start.size, start.seq, start.hash
        self._vouched = vouched
        self._on_events = on_events
        self._on_vouched = on_vouched
        self._before: tuple[bytes, int] | None = None  # the line before and where it starts

    def run(self, lines: Lines) -> Walked:
        try:
            following = iter(lines)
            self._covered(following)
            self._after(following)
        except LineError as fault:
            raise self._break(fault.kind, "a line", fault.found) from None
        if self._vouched is not None and self._size < self._vouched.size:
            raise self._short(self._vouched.size, len(lines.rest))
        return Walked(Position(self._size, self._seq, self._hash), lines.rest)

    def _covered(self, lines: Iterator[bytes]) -> None:
        vouched = self._vouched
        if vouched is None:
            return
        size, seq, digest, before, start = self._size, self._seq, self._hash, b"", self._size
        end, claim = vouched.size, _EVENTS.match
        try:
            for line in lines if size < end else ():
                if not line.startswith(b'{"seq":%d,"prev":"%b",' % (seq + 1, digest.encode())):
                    self._size, self._seq, self._hash = size, seq, digest
                    self._before = (before, start) if before else None
                    raise self._diagnosed(line, lines)
                digest = sha256(line).hexdigest()
                seq += 1
                before, start = line, size
                size += len(line) + 1
                at = line.find(_EVENTS_MARK, -_EVENTS_WITHIN)
                if at >= 0 and (events := claim(line, at)):
                    self._on_events(int(events[1]), int(events[2]), events[3].decode(), seq)
                if size >= end:
                    break
        finally:
            self._size, self._seq, self._hash = size, seq, digest
        if (size, seq, digest) == (vouched.size, vouched.seq, vouched.hash):
            self._on_vouched()
        elif size >= end:
            self._size, self._seq = start, max(seq - 1, 0)
            raise self._unvouched(before, vouched, digest)

    def _after(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            try:
                entry = parse(line)
            except LineError as fault:
                raise self._break(fault.kind, "a record", fault.found) from None
            if (entry.seq, entry.prev) != (self._seq + 1, self._hash):
                raise self._diagnosed(line, lines)
            if (events := getattr(entry.body, "source_events", None)) is not None:
                self._on_events(events.bytes, events.count, events.sha256, entry.seq)
            self._before = (line, self._size)
            self._size += len(line) + 1
            self._seq += 1
            self._hash = sha256(line).hexdigest()

    def _diagnosed(self, line: bytes, lines: Iterator[bytes]) -> BrokenError:
        """Which of two neighbours was changed when the second does not vouch for the first."""
        try:
            if self._before is not None:
                parse(self._before[0])
        except LineError as fault:
            return self._break_before(fault.kind, "a record", fault.found)
        try:
            entry = parse(line)
        except LineError as fault:
            return self._break(fault.kind, "a record", fault.found)
        if entry.seq != self._seq + 1:
            return self._break(BreakKind.SEQ_GAP, str(self._seq + 1), str(entry.seq))
        if self._before is not None and self._intact(line, lines):
            return self._break_before(BreakKind.CHAIN_BREAK, entry.prev, self._hash)
        return self._break(BreakKind.CHAIN_BREAK, self._hash, entry.prev)

    def _intact(self, line: bytes, lines: Iterator[bytes]) -> bool:
        digest = sha256(line).hexdigest()
        if self._vouched is not None and digest == self._vouched.hash:
            return True
        following = next(lines, b"")
        return f',"prev":"{digest}",'.encode() in following[:128]

    def _short(self, vouched: int, rest: int) -> BrokenError:
        if self._size + rest >= vouched:
            return self._break(BreakKind.BAD_JSON, "a record", "a line without its newline")
        return self._break(BreakKind.BEFORE_CHECKPOINT, f"{vouched} bytes", f"{self._size + rest} bytes")

    def _unvouched(self, line: bytes, vouched: Position, digest: str) -> BrokenError:
        try:
            if line:
                parse(line)
        except LineError as fault:
            return self._break(fault.kind, "a record", fault.found)
        return self._break(BreakKind.CHECKPOINT_MISMATCH, vouched.hash, digest)

    def _break(self, kind: BreakKind, expected: str, found: str) -> BrokenError:
        return BrokenError(Break(DECISIONS, self._seq + 1, self._size, self._seq + 1, kind, expected, found[:80]))

    def _break_before(self, kind: BreakKind, expected: str, found: str) -> BrokenError:
        offset = self._size if self._before is None else self._before[1]
        return BrokenError(Break(DECISIONS, self._seq, offset, self._seq, kind, expected, found[:80]))


def _head(seq: int, prev: str) -> bytes:
    return b'{"seq":%d,"prev":"%b",' % (seq, prev.encode())


def plain_json(entry: Entry) -> dict[str, Any]:
    """A line as JSON values, for people and exports."""
    return {"seq": entry.seq, "prev": entry.prev, **entry.body.model_dump(mode="json")}

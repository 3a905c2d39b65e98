"""Verifies the lines of segments in order, from a known position to the end, and the source events that they claim.

Because the head of every line is known before it is read, lines up to a signed checkpoint are proven by their
digests alone, a block at a time; lines after it are also read strictly. A block that does not match
is read again line by line to locate the break.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import BinaryIO

from engine.record import source_events
from engine.record.chain import Entry, LineError, Position, head, parse
from engine.record.checkpoint import Events
from engine.record.layout import EVENTS, Break, BreakKind, BrokenError
from engine.record.lines import Lines, last_line, measured

_EVENT_BYTES = 1 << 16  # of a line that is looked at; one of ours has a few hundred
_EVENTS_MARK = b',"source_events":{'
_EVENTS_WITHIN = 512
"""Only time, trace and versions, all short, follow the source events of a decision."""
_EVENTS = re.compile(
    rb',"source_events":\{"bytes":([0-9]+),"count":([0-9]+),"sha256":"([0-9a-f]{64})"\}'
    rb',"time":"[^"]+","trace":(?:null|"[0-9a-f]{32}"),"versions":\{"engine":"[^"]*","opa":(?:null|"[^"]*")\}\}$'
)


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """The end of a closed segment, and the bytes and lines of source events up to there."""

    end: Position
    events_size: int
    events_lines: int

    def events(self, file: BinaryIO, genesis: str) -> Events:
        """The end of the source events up to there, in this file of them."""
        hash_ = last_line(file, self.events_size, genesis)[1]
        return Events(size=self.events_size, lines=self.events_lines, hash=hash_)


class EventsWalk:
    """Verifies the file of source events as decisions claim its bytes, from the end of `start` on."""

    line_to_see: int | None = None
    """The seq of a line that `line` must receive; None for none."""

    def __init__(self, file: BinaryIO, start: Events) -> None:
        self._file = file
        self._file.seek(start.size)
        self.size = start.size
        self.lines = start.lines
        self.ends: list[SegmentEnd] = []
        """Of the closed segments that were walked."""

    def events(self, size: int, count: int, sha: str, seq: int) -> None:
        """Read the next `size` bytes. Raises BrokenError unless decision `seq` wrote exactly these."""
        length, lines, digest = measured(self._file, size)
        if length != size:
            raise self._broken(seq, self.lines + 1, f"{size} bytes", f"{length} bytes")
        if digest != sha or lines != count:
            raise self._broken(seq, self._first_odd_line(count), sha, digest)
        self.size += size
        self.lines += count

    def end(self, genesis: str) -> Events:
        """The end of the claimed bytes."""
        return Events(size=self.size, lines=self.lines, hash=last_line(self._file, self.size, genesis)[1])

    def vouched(self) -> None:
        """The walk has reached the end that the checkpoint covers, and it matches. May raise BrokenError."""

    def line(self, entry: Entry) -> None:
        """Called with the line of the wanted seq."""

    def _first_odd_line(self, count: int) -> int:
        """The first line of the block that the engine cannot have written, else the block's first line."""
        self._file.seek(self.size)
        for index in range(count):
            line = self._file.readline(_EVENT_BYTES)
            try:
                if source_events.line(source_events.SourceEvent.model_validate_json(line)) == line:
                    continue
            except ValueError:
                pass
            return self.lines + 1 + index
        return self.lines + 1

    def _broken(self, seq: int, line: int, expected: str, found: str) -> BrokenError:
        return BrokenError(Break(EVENTS, line, self.size, seq, BreakKind.EVENTS_MISMATCH, expected, found))


def walk(
    files: Iterable[tuple[int, BinaryIO]], start: Position, vouched: Position | None, watcher: EventsWalk
) -> tuple[Position, int]:
    """Verify every line from `start` to the end of the last file. Raises BrokenError at the first break.

    Returns the end of the intact lines, and the bytes of an unfinished line after them.
    `files` are the segments by number from that of `start`, the first one standing at `start`. Without
    `vouched` every line is read strictly.
    """
    return _Walk(start, vouched, watcher).run(files)


class _Walk:
    def __init__(self, start: Position, vouched: Position | None, watcher: EventsWalk) -> None:
        self._at = start
        self._vouched = vouched
        self._watcher = watcher
        self._before: tuple[bytes, Position] | None = None  # the line before and the position before it
        self._rest = b""
        self._blocks: Iterator[list[bytes]] = iter(())

    def run(self, files: Iterable[tuple[int, BinaryIO]]) -> tuple[Position, int]:
        self._blocks = self._read(files)
        if self._at == self._vouched:
            self._watcher.vouched()
        try:
            for block in self._blocks:
                proven = self._proven(block)
                if proven:
                    if not self._hold_together(block[:proven]):
                        self._one_by_one(block, proven)
                    self._reached()
                self._strictly(block, proven)
        except LineError as fault:
            raise self._break(fault.kind, "a line", fault.found) from None
        return self._at, len(self._rest)

    def _read(self, files: Iterable[tuple[int, BinaryIO]]) -> Iterator[list[bytes]]:
        for number, file in files:
            if number != self._at.segment:
                self._segment_ended()
                self._at = replace(self._at, segment=number, lines=0, size=0)
            lines = Lines(file)
            yield from lines.blocks()
            self._rest = lines.rest
        vouched = self._vouched
        if vouched is not None and (self._at.segment, self._at.size) < (vouched.segment, vouched.size):
            raise self._short(vouched)

    def _segment_ended(self) -> None:
        vouched = self._vouched
        if vouched is not None and self._at.segment == vouched.segment:
            if self._at.size < vouched.size:
                raise self._short(vouched)
            if self._at.size > vouched.size or self._rest:  # a checkpoint comes before every new segment
                found = f"{self._at.size + len(self._rest)} bytes"
                raise self._break(BreakKind.CHECKPOINT_MISMATCH, f"{vouched.size} bytes and another segment", found)
        if self._rest:
            raise self._break(BreakKind.BAD_JSON, "a record", "a line without its newline")
        self._watcher.ends.append(SegmentEnd(self._at, self._watcher.size, self._watcher.lines))

    def _proven(self, block: list[bytes]) -> int:
        """How many lines of the block the checkpoint covers."""
        vouched = self._vouched
        if vouched is None or self._at.segment > vouched.segment:
            return 0
        if self._at.segment < vouched.segment:
            return len(block)
        left = vouched.size - self._at.size
        for count, line in enumerate(block):
            if left <= 0:
                return count
            left -= len(line) + 1
        return len(block)

    def _hold_together(self, block: list[bytes]) -> bool:
        """Whether each line's digest is in the head of the next line; if so, moves past them."""
        seq = self._at.seq
        if len(str(seq + 1)) != len(str(seq + len(block))):
            return False
        digests = [sha256(line).hexdigest() for line in block]
        heads = zip(range(seq + 1, seq + 1 + len(block)), [self._at.hash, *digests[:-1]], strict=True)
        expected = "".join(['{"seq":%d,"prev":"%s",' % pair for pair in heads]).encode()  # noqa: UP031 (twice as fast)
        length = len(expected) // len(block)
        if b"".join([line[:length] for line in block]) != expected:
            return False
        line_to_see = self._watcher.line_to_see
        if line_to_see is not None and seq < line_to_see <= seq + len(block):
            return False  # one by one comes past it
        for index in [index for index, line in enumerate(block) if line.find(_EVENTS_MARK, -_EVENTS_WITHIN) >= 0]:
            self._events(block[index], seq + 1 + index)
        size = sum(map(len, block)) + len(block)
        before = self._at.after(lines=len(block) - 1, size=size - len(block[-1]) - 1, hash="")
        self._before = (block[-1], before)
        self._at = self._at.after(lines=len(block), size=size, hash=digests[-1])
        return True

    def _one_by_one(self, block: list[bytes], proven: int) -> None:
        for index, line in enumerate(block[:proven]):
            if not line.startswith(head(self._at.seq + 1, self._at.hash)):
                raise self._diagnosed(line, block[index + 1 :])
            if self._watcher.line_to_see == self._at.seq + 1:
                self._watcher.line(self._parsed(line))
            self._events(line, self._at.seq + 1)
            self._advance(line)

    def _events(self, line: bytes, seq: int) -> None:
        at = line.find(_EVENTS_MARK, -_EVENTS_WITHIN)
        if at >= 0 and (events := _EVENTS.match(line, at)):
            self._watcher.events(int(events[1]), int(events[2]), events[3].decode(), seq)

    def _reached(self) -> None:
        vouched = self._vouched
        if vouched is None or self._at.segment != vouched.segment or self._at.size < vouched.size:
            return
        if self._at != vouched:
            raise self._unvouched(vouched)
        self._watcher.vouched()

    def _strictly(self, block: list[bytes], start: int) -> None:
        for index in range(start, len(block)):
            line = block[index]
            entry = self._parsed(line)
            if (entry.seq, entry.prev) != (self._at.seq + 1, self._at.hash):
                raise self._diagnosed(line, block[index + 1 :])
            if self._watcher.line_to_see == entry.seq:
                self._watcher.line(entry)
            if (events := getattr(entry.body, "source_events", None)) is not None:
                self._watcher.events(events.bytes, events.count, events.sha256, entry.seq)
            self._advance(line)

    def _advance(self, line: bytes) -> None:
        self._before = (line, self._at)
        self._at = self._at.after(lines=1, size=len(line) + 1, hash=sha256(line).hexdigest())

    def _parsed(self, line: bytes) -> Entry:
        try:
            return parse(line)
        except LineError as fault:
            raise self._break(fault.kind, "a record", fault.found) from None

    def _diagnosed(self, line: bytes, following: list[bytes]) -> BrokenError:
        """Which of two neighbors was changed when the hash in the second does not match the first."""
        before = self._before
        if before is not None:
            try:
                parse(before[0])
            except LineError as fault:
                return _broken(before[1], fault.kind, "a record", fault.found)
        try:
            entry = parse(line)
        except LineError as fault:
            return self._break(fault.kind, "a record", fault.found)
        if entry.seq != self._at.seq + 1:
            return self._break(BreakKind.SEQ_GAP, str(self._at.seq + 1), str(entry.seq))
        if before is not None and self._intact(line, following):
            return _broken(before[1], BreakKind.CHAIN_BREAK, entry.prev, self._at.hash)
        return self._break(BreakKind.CHAIN_BREAK, self._at.hash, entry.prev)

    def _intact(self, line: bytes, following: list[bytes]) -> bool:
        digest = sha256(line).hexdigest()
        if self._vouched is not None and digest == self._vouched.hash:
            return True
        here = self._at
        try:
            after = following or next(self._blocks, [b""])
        except (LineError, BrokenError):
            return False
        finally:
            self._at = here  # the next block may be in the next segment
        return f',"prev":"{digest}",'.encode() in after[0][:128]

    def _short(self, vouched: Position) -> BrokenError:
        size = self._at.size + len(self._rest)
        if self._at.segment == vouched.segment and size >= vouched.size:
            return self._break(BreakKind.BAD_JSON, "a record", "a line without its newline")
        return self._break(BreakKind.BEFORE_CHECKPOINT, f"{vouched.size} bytes", f"{size} bytes")

    def _unvouched(self, vouched: Position) -> BrokenError:
        found = self._at.hash
        if self._before is not None:
            line, self._at = self._before
            try:
                parse(line)
            except LineError as fault:
                return self._break(fault.kind, "a record", fault.found)
        return self._break(BreakKind.CHECKPOINT_MISMATCH, vouched.hash, found)

    def _break(self, kind: BreakKind, expected: str, found: str) -> BrokenError:
        return _broken(self._at, kind, expected, found)


def _broken(at: Position, kind: BreakKind, expected: str, found: str) -> BrokenError:
    return BrokenError(Break(at.file, at.lines + 1, at.size, at.seq + 1, kind, expected, found[:80]))

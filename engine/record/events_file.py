"""Checks source_events.jsonl against what decision records say of it, block by block."""

from __future__ import annotations

from hashlib import sha256
from typing import BinaryIO

from engine.record import source_events
from engine.record.checkpoint import Events
from engine.record.layout import EVENTS, LINE_BYTES, Break, BreakKind, BrokenError
from engine.record.model import CoveredEvents

_CHUNK = 1 << 20
_BACK = 1 << 16
_LINE = 1 << 16  # bytes; a line of ours has a few hundred


class EventsWalk:
    """Walks forward through the file as decisions claim its bytes. Starts at the end of `start`."""

    def __init__(self, file: BinaryIO, start: Events) -> None:
        self._file = file
        self._file.seek(start.size)
        self.size = start.size
        self.lines = start.lines

    def claim(self, covered: CoveredEvents, seq: int) -> None:
        """Read the next `covered.bytes` bytes. Raises BrokenError unless decision `seq` wrote exactly these."""
        digest, count, left, last = sha256(), 0, covered.bytes, b"\n"
        while left and (chunk := self._file.read(min(left, _CHUNK))):
            digest.update(chunk)
            count += chunk.count(b"\n")
            left -= len(chunk)
            last = chunk[-1:]
        if left:
            raise self._broken(seq, self.lines + 1, f"{covered.bytes} bytes", f"{covered.bytes - left} bytes")
        if digest.hexdigest() != covered.sha256 or count != covered.count or last != b"\n":
            raise self._broken(seq, self._first_odd_line(covered), covered.sha256, digest.hexdigest())
        self.size += covered.bytes
        self.lines += count

    def end(self, genesis: str) -> Events:
        """The end of what was claimed so far."""
        return Events(size=self.size, lines=self.lines, hash=last_line(self._file, self.size, genesis)[1])

    def _first_odd_line(self, covered: CoveredEvents) -> int:
        """The line in the block that cannot have been written by us, else the block's first line."""
        self._file.seek(self.size)
        for index in range(covered.count):
            line = self._file.readline(_LINE)
            try:
                if source_events.line(source_events.SourceEvent.model_validate_json(line)) == line:
                    continue
            except ValueError:
                pass
            return self.lines + 1 + index
        return self.lines + 1

    def _broken(self, seq: int, line: int, expected: str, found: str) -> BrokenError:
        return BrokenError(Break(EVENTS, line, self.size, seq, BreakKind.EVENTS_MISMATCH, expected, found))


def last_line(file: BinaryIO, size: int, genesis: str) -> tuple[int, str]:
    """Where the line that ends at `size` starts, and its SHA-256; `genesis` at 0, and of nothing where no line ends."""
    if size == 0:
        return 0, genesis
    parts: list[bytes] = []
    begin = end = size
    while end > 0 and size - end <= LINE_BYTES:
        begin = max(0, end - _BACK)
        file.seek(begin)
        piece = file.read(end - begin)
        if end == size:
            if not piece.endswith(b"\n") or len(piece) != end - begin:
                return size, sha256(b"").hexdigest()
            piece = piece[:-1]
        cut = piece.rfind(b"\n")
        parts.append(piece[cut + 1 :])
        if cut >= 0:
            begin += cut + 1
            break
        end = begin
    return begin, sha256(b"".join(reversed(parts))).hexdigest()

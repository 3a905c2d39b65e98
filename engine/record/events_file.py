"""Checks source_events.jsonl against what decision records say of it, block by block."""

from __future__ import annotations

from hashlib import sha256
from typing import BinaryIO

from engine.record import source_events
from engine.record.checkpoint import Events
from engine.record.layout import EVENTS, LINE_BYTES, Break, BreakKind, BrokenError

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

    def claim(self, size: int, count: int, sha: str, seq: int) -> None:
        """Read the next `size` bytes. Raises BrokenError unless decision `seq` wrote exactly these."""
        data = self._file.read(min(size, _CHUNK))
        digest, lines, left = sha256(data), data.count(b"\n"), size - len(data)
        while left and (chunk := self._file.read(min(left, _CHUNK))):
            digest.update(chunk)
            lines += chunk.count(b"\n")
            left -= len(chunk)
        if left:
            raise self._broken(seq, self.lines + 1, f"{size} bytes", f"{size - left} bytes")
        if digest.hexdigest() != sha or lines != count:
            raise self._broken(seq, self._first_odd_line(count), sha, digest.hexdigest())
        self.size += size
        self.lines += count

    def end(self, genesis: str) -> Events:
        """The end of what was claimed so far."""
        return Events(size=self.size, lines=self.lines, hash=last_line(self._file, self.size, genesis)[1])

    def _first_odd_line(self, count: int) -> int:
        """The line in the block that cannot have been written by us, else the block's first line."""
        self._file.seek(self.size)
        for index in range(count):
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

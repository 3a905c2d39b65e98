"""Reads lines, digests and the last line of a file block by block, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import BinaryIO

from engine.record.chain import LineError
from engine.record.layout import LINE_BYTES, BreakKind

_CHUNK = 1 << 20
_BACK = 1 << 16
"""Bytes read at a time, forwards and backwards: from the end only a few lines are wanted."""


class Lines:
    """Lines of a file without their newlines; `rest` is the text after the last newline."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rest = b""

    def blocks(self) -> Iterator[list[bytes]]:
        """About a MiB of whole lines at a time. Raises LineError at a line that is too long."""
        pieces: list[bytes] = []
        length = 0
        while chunk := self._file.read(_CHUNK):
            lines = chunk.split(b"\n")
            length += len(lines[0])
            if length > LINE_BYTES:
                raise LineError(BreakKind.BAD_JSON, f"more than {LINE_BYTES} bytes without a newline")
            pieces.append(lines[0])
            if len(lines) > 1:
                last = lines.pop()
                lines[0] = b"".join(pieces)
                yield lines
                pieces, length = [last], len(last)
        self.rest = b"".join(pieces)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks():
            yield from block


def backwards(file: BinaryIO, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines of a file up to `end` from the last to the first, without newlines, and where each begins.

    Text after the last newline is no line. Raises LineError at a line that is too long.
    """
    size = file.seek(0, os.SEEK_END)
    at = end = size if end is None else min(size, end)
    terminated = False
    pieces: list[bytes] = []
    length = 0
    while end:
        begin = max(0, end - _BACK)
        file.seek(begin)
        lines = file.read(end - begin).split(b"\n")
        end = begin
        pieces.append(lines.pop())
        length += len(pieces[-1])
        if length > LINE_BYTES:
            raise LineError(BreakKind.BAD_JSON, f"more than {LINE_BYTES} bytes without a newline")
        if lines:
            found = [b"".join(reversed(pieces)), *reversed(lines[1:])]
            if not terminated:
                at -= len(found.pop(0))
            for line in found:
                at -= len(line) + 1
                yield at, line
            pieces, length, terminated = [lines[0]], len(lines[0]), True
    if terminated:
        yield 0, b"".join(reversed(pieces))


def last_line(file: BinaryIO, size: int, genesis: str) -> tuple[int, str]:
    """Where the line that ends at `size` starts, and its SHA-256; `genesis` at 0, and of nothing where no line ends."""
    if size == 0:
        return 0, genesis
    file.seek(size - 1)
    begin, line = size, b""
    if file.read(1) == b"\n":
        with suppress(LineError):
            begin, line = next(backwards(file, size), (size, b""))
    return begin, sha256(line).hexdigest()


def measured(file: BinaryIO, size: int | None = None) -> tuple[int, int, str]:
    """Bytes, newlines and SHA-256 of the rest of a file, or of at most its next `size` bytes."""
    digest, length, lines = sha256(), 0, 0
    while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size - length)):
        digest.update(chunk)
        length += len(chunk)
        lines += chunk.count(b"\n")
    return length, lines, digest.hexdigest()

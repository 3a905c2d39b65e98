"""Reads lines of segments, block by block, so that memory does not grow with the record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from engine.record.chain import LineError
from engine.record.layout import LINE_BYTES, BreakKind

_CHUNK = 1 << 20


class Lines:
    """Lines of a file without their newlines; what follows the last newline is `rest`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rest = b""

    def blocks(self) -> Iterator[list[bytes]]:
        """About a MiB of whole lines at a time. Raises LineError at a line that is too long to be ours."""
        held: list[bytes] = []
        length = 0
        while chunk := self._file.read(_CHUNK):
            lines = chunk.split(b"\n")
            length += len(lines[0])
            if length > LINE_BYTES:
                raise LineError(BreakKind.BAD_JSON, f"more than {LINE_BYTES} bytes without a newline")
            held.append(lines[0])
            if len(lines) > 1:
                last = lines.pop()
                lines[0] = b"".join(held)
                yield lines
                held, length = [last], len(last)
        self.rest = b"".join(held)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks():
            yield from block


def backwards(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file from the last to the first, without newlines; what follows the last newline is no line.

    Raises LineError at a line that is too long to be ours.
    """
    end, ended = file.seek(0, os.SEEK_END), False
    held: list[bytes] = []
    length = 0
    while end:
        begin = max(0, end - _CHUNK)
        file.seek(begin)
        lines = file.read(end - begin).split(b"\n")
        end = begin
        held.append(lines.pop())
        length += len(held[-1])
        if length > LINE_BYTES:
            raise LineError(BreakKind.BAD_JSON, f"more than {LINE_BYTES} bytes without a newline")
        if lines:
            if ended:
                yield b"".join(reversed(held))
            yield from reversed(lines[1:])
            held, length, ended = [lines[0]], len(lines[0]), True
    if ended:
        yield b"".join(reversed(held))

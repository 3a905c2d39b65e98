"""Cuts a stream of bytes into lines."""

from __future__ import annotations


class Lines:
    """The lines of one stream; `open` is the last one as far as it has come. Each byte is copied once."""

    def __init__(self) -> None:
        self.open = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in the next piece, without their ends."""
        first, *more = data.split(b"\n")
        self.open += first
        if not more:
            return []
        *whole, rest = more
        lines = [bytes(self.open), *whole]
        self.open = bytearray(rest)
        return lines

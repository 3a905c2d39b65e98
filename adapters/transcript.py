"""What a subagent said, as far as it is kept: its last lines, none longer than a bound, each given as a preview."""

from __future__ import annotations

import codecs
import threading
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptLimits:
    """How much of what one subagent says is kept in memory."""

    turns: int = 200  # more than anybody is given at once
    line_bytes: int = 65_536  # the longest preview there is
    ended: int = 64  # subagents that ended and can still be looked at


class Transcript:
    """The turns of one subagent: one line of its output each. Threads may share it."""

    def __init__(self, limits: KeptLimits) -> None:
        self._most = limits.line_bytes
        self._turns: deque[str] = deque(maxlen=limits.turns)
        self._open = bytearray()
        self._lock = threading.Lock()
        self.said = 0
        """Turns so far, those that are no longer kept too."""
        self.spoken = threading.Event()
        """Set with the first turn, and when there will be none."""

    def feed(self, data: bytes) -> None:
        """Take what came next, cut anywhere; of a line that is too long the beginning is kept."""
        *whole, rest = data.split(b"\n")
        with self._lock:
            for line in whole:
                self._add(line)
                self._end()
            self._add(rest)

    def close(self) -> None:
        """Nothing more will come: what has no end of line is a turn as well."""
        with self._lock:
            if self._open:
                self._end()
        self.spoken.set()

    def last(self, turns: int, line_bytes: int) -> tuple[str, ...]:
        """The last turns, the oldest first, each cut to so many bytes of UTF-8."""
        with self._lock:
            kept = list(self._turns)
        return tuple(cut(line, line_bytes) for line in kept[len(kept) - min(turns, len(kept)) :])

    def _add(self, part: bytes) -> None:
        self._open += part[: self._most - len(self._open)]

    def _end(self) -> None:
        self._turns.append(_text(bytes(self._open)))
        self.said += 1
        self.spoken.set()
        self._open.clear()


def cut(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most so many bytes as UTF-8; no character is cut in two."""
    return text.encode("utf-8")[:limit].decode("utf-8", "ignore")


def _text(line: bytes) -> str:
    """A line as text: what is no UTF-8 is replaced, and a character that the bound cut in two left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(line.rstrip(b"\r"))

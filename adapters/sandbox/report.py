"""What the launcher reports after the program: how it ended, and the files that it left, read strictly."""

from __future__ import annotations

import re

from adapters.sandbox.model import Artifact, Bounds

_END = re.compile(rb"E ([0-9]{1,6}) ([0-9]{1,15})\Z")
_LINE_BYTES = 64


class Report:
    """Fed piece by piece. `broken` when it is not what the launcher says; then nothing of it counts."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._waiting = bytearray()
        self.wait_status: int | None = None
        self.cpu_seconds: float | None = None
        self.broken = False
        self.complete = False
        self.artifacts: tuple[Artifact, ...] = ()
        self.refused: tuple[str, ...] = ()

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self.broken:
            return
        self._waiting += data
        if self.wait_status is None:
            line, found, rest = bytes(self._waiting).partition(b"\n")
            if not found:
                self.broken = len(line) > _LINE_BYTES
                return
            match = _END.match(line)
            if match is None:
                self.broken = True
                return
            self.wait_status, self.cpu_seconds = int(match[1]), int(match[2]) / 1_000_000
            self._waiting = bytearray(rest)
            self.complete = self._bounds.artifact_files <= 0
        self.broken = self.complete and bool(self._waiting)

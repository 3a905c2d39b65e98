"""The standard streams of a command, also where they are closed, full, or lack a character."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from engine.errors import GatherError, reason_of


class _Results(io.FileIO):
    """Standard output: raises GatherError, once, where it takes nothing."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # the rest would fail when the interpreter ends
            raise GatherError(
                f"cannot write to standard output: {reason_of(error)}",
                remedy="make room, or send it elsewhere",
            ) from error


class _Remarks(io.FileIO):
    """Standard error: what is not read is lost, and the command goes on."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data))


def prepare_streams() -> None:
    """Make the standard streams usable, whatever the parent process made of them."""
    if sys.stdin is None:  # closed by the parent process
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  (until the process ends)
    sys.stdout = _text(sys.stdout, _Results)
    sys.stderr = _text(sys.stderr, _Remarks)


def _text(stream: Any, kind: type[io.FileIO]) -> io.TextIOWrapper:
    """The same stream; a character that it lacks is escaped."""
    raw = kind(os.open(os.devnull, os.O_WRONLY), "w") if stream is None else kind(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=getattr(stream, "line_buffering", False),
        write_through=getattr(stream, "write_through", False),
    )

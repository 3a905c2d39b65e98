"""The trajectory of an environment: every change of it, one line each, written before the change.

A line has the digest of the line before it, and no content: a contact is named by the digest of its id. `state` is
the number of the line that made the state of the database after it, `rows` its number of rows.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from typing import Any, BinaryIO

from engine.errors import WorkError

_MOST_LINE = 4_096


class Trajectory:
    """The lines of an open file; one writer. Raises WorkError for lines that were changed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.lines: list[dict[str, Any]] = []
        self._previous = ""
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # a process was killed while it wrote the rest
        for text in whole.splitlines():
            self._accept(text)
        os.ftruncate(file.fileno(), len(whole))

    @property
    def next(self) -> int:
        """The number of the next line; the first is 1."""
        return len(self.lines) + 1

    def append(self, event: str, state: int, rows: int, **more: str) -> dict[str, Any]:
        """Write one line, durable on return, and return it. Raises OSError, and then nothing was written."""
        known = {"line": self.next, "event": event, "state": state, "rows": rows, **more, "previous": self._previous}
        text = json.dumps(known, separators=(",", ":")).encode()
        descriptor = self._file.fileno()
        size = os.fstat(descriptor).st_size
        try:
            written = os.pwrite(descriptor, text + b"\n", size)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        if written != len(text) + 1:
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, "a part of a line was written")
        return self._accept(text)

    def problems(self) -> list[str]:
        """What differs in the file from the lines that were read and written."""
        data = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
        texts = data.splitlines()
        last = hashlib.sha256(texts[-1]).hexdigest() if texts else ""
        same = (len(texts), last) == (len(self.lines), self._previous)
        return [] if same else ["the trajectory was changed by another program"]

    def _accept(self, text: bytes) -> dict[str, Any]:
        line: dict[str, Any] = {}
        try:
            line = json.loads(text[:_MOST_LINE])
            known = line["line"] == self.next and line["previous"] == self._previous
            known = known and all(type(line[name]) is int for name in ("state", "rows"))
            known = known and isinstance(line["event"], str)
            known = known and all(isinstance(line.get(name, ""), str) for name in ("name", "sha256"))
        except (ValueError, TypeError, KeyError, RecursionError):
            known = False
        if not known:
            raise changed("its trajectory")
        self.lines.append(line)
        self._previous = hashlib.sha256(text).hexdigest()
        return line


def changed(what: str) -> WorkError:
    """The error for an environment that something else than its tools has changed."""
    return WorkError(
        f"the environment was changed by another program: {what}",
        remedy="build it again from its source bundle",
        code="engine.environment_changed",
    )

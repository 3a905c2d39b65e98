"""Strict reader of the launcher's report: the exit status of the program and the files that it left."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from admission_adapters.sandbox.model import Artifact, Bounds, RefusedArtifact

_END = re.compile(rb"E ([0-9]{1,6}) ([0-9]{1,15})")
_FILE = re.compile(rb"F ([0-9]{1,3}) ([0-9]{1,15})")
_REFUSED = re.compile(rb"X ([0-9]{1,3}) ([a-z]{1,8})")
_MORE = re.compile(rb"M ([0-9]{1,6})")
_REQUEST = re.compile(rb"R ([0-9A-Za-z]{1,32}) ([0-9]{1,6})")
_REQUEST_BYTES = 1 << 18
_LINE_BYTES = 64
_PATH_BYTES = 1_000
_MOST_REFUSED = 100

_REASONS = {
    b"access": "unreadable",
    b"count": "too_many_files",
    b"depth": "folder_too_deep",
    b"kind": "not_a_regular_file",
    b"name": "name_not_plain",
    b"names": "more_than_one_name",
    b"size": "too_many_bytes",
}

TOO_MANY = RefusedArtifact("(all files)", "too_many_entries")
"""Stands for all of them among the refused artifacts."""


class BrokenReportError(Exception):
    """The data is not a report of the launcher."""


class Report:
    """Fed piece by piece. `complete` when everything has arrived; `broken` if it is out of order, and then unusable."""

    def __init__(self, bounds: Bounds, relay: Callable[[bytes], None] | None = None) -> None:
        """`relay` gets each request of the relay folder, as `<name> <content>`."""
        self._relay = relay
        self._files_left = bounds.artifact_files
        self._bytes_left = bounds.artifact_bytes
        self._waiting = bytearray()
        self.wait_status: int | None = None
        self.cpu_seconds: float | None = None
        self.broken = False
        self.complete = False
        self.artifacts: list[Artifact] = []
        self.refused: list[RefusedArtifact] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._waiting += data
        try:
            while self._waiting and not self.broken:
                parsed = self._next()
                if not parsed:
                    return
                del self._waiting[:parsed]
        except BrokenReportError:
            self.broken = True

    def _next(self) -> int:
        """Read one item of the report; return its bytes, or 0 if it is incomplete."""
        if self.complete:
            raise BrokenReportError
        end = self._waiting.find(b"\n", 0, _LINE_BYTES)
        if end < 0:
            if len(self._waiting) >= _LINE_BYTES:
                raise BrokenReportError
            return 0
        line = bytes(self._waiting[:end])
        if self.wait_status is None:
            match = _REQUEST.fullmatch(line)
            return self._end(line) if match is None else self._request(end + 1, match[1], int(match[2]))
        if line == b"Z":
            self.complete = True
        elif line == b"O":
            self.artifacts, self.refused, self._files_left = [], [TOO_MANY], 0
        elif match := _MORE.fullmatch(line):
            self.refused.append(RefusedArtifact(f"({int(match[1])} more)", "not_named"))
        elif match := _FILE.fullmatch(line):
            return self._file(end + 1, int(match[1]), int(match[2]))
        elif match := _REFUSED.fullmatch(line):
            return self._refusal(end + 1, int(match[1]), match[2])
        else:
            raise BrokenReportError
        return end + 1

    def _end(self, line: bytes) -> int:
        match = _END.fullmatch(line)
        if match is None:
            raise BrokenReportError
        self.wait_status, self.cpu_seconds = int(match[1]), int(match[2]) / 1_000_000
        self.complete = self._files_left <= 0
        return len(line) + 1

    def _request(self, start: int, name: bytes, size: int) -> int:
        if self._relay is None or size > _REQUEST_BYTES:
            raise BrokenReportError
        if len(self._waiting) < start + size:
            return 0
        self._relay(name + b" " + bytes(self._waiting[start : start + size]))
        return start + size

    def _file(self, start: int, length: int, size: int) -> int:
        if self._files_left <= 0 or size > self._bytes_left or not 0 < length <= _PATH_BYTES:
            raise BrokenReportError
        end = start + length + size
        if len(self._waiting) < end:
            return 0
        name = bytes(self._waiting[start : start + length])
        data = bytes(self._waiting[start + length : end])
        self._files_left -= 1
        self._bytes_left -= size
        self.artifacts.append(Artifact(_path(name), data, hashlib.sha256(data).hexdigest()))
        return end

    def _refusal(self, start: int, length: int, why: bytes) -> int:
        if len(self.refused) >= _MOST_REFUSED or not 0 < length <= _PATH_BYTES or why not in _REASONS:
            raise BrokenReportError
        if len(self._waiting) < start + length:
            return 0
        name = bytes(self._waiting[start : start + length]).decode("utf-8", "backslashreplace")
        self.refused.append(RefusedArtifact(name.encode("unicode_escape").decode("ascii"), _REASONS[why]))
        return start + length


def _path(name: bytes) -> str:
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenReportError from error
    if any(part in {"", ".", ".."} for part in path.split("/")) or "\\" in path or not path.isprintable():
        raise BrokenReportError
    return path

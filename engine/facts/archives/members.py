"""Shared by all forms of a source bundle: member names, budgets and refusals."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from engine.documents.files import printable
from engine.errors import GatherError, Location
from engine.settings import ReadLimits

CHUNK = 256 << 10
"""Bytes read at once; what memory a file of any size costs."""

LONGEST_NAME = 1_024
"""Characters of a member's path; the longest that common archivers write without trouble."""

_ABSOLUTE = re.compile(r"/|[A-Za-z]:")
"""Some readers remove a letter and a colon, as they do with `/`, and others do not."""

_RATIO = 200
_RATIO_FROM = 64 << 20
"""An archive may unpack to 200 times its size, or to 64 MiB: logs and databases reach 50, bombs 1,000."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive: its hash and size as counted while reading, and where it starts.

    `at` is an offset whose meaning only the archive's format knows.
    """

    sha256: str
    bytes: int
    at: int


Read = Callable[[int], bytes]
"""Gives at most so many bytes of a stream, none only at the end."""


def refusal(file: str, message: str, remedy: str) -> GatherError:
    """The error for an archive or folder that is not read any further."""
    return GatherError(message, remedy=remedy, where=Location(file))


class Stream(io.RawIOBase, ABC):
    """A stream that is read in chunks."""

    @abstractmethod
    def chunk(self, most: int) -> bytes:
        """At most so many bytes, none only at the end. Raises GatherError."""

    def readable(self) -> bool:
        """As io.BufferedReader requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next chunk."""
        view = memoryview(buffer)
        data = self.chunk(len(view))
        view[: len(data)] = data
        return len(data)

    def buffered(self) -> BinaryIO:
        """The same as a stream to read from."""
        return cast(BinaryIO, io.BufferedReader(self, CHUNK))


class Part(Stream):
    """A range of a file as a separate stream, read by position so that several may be open at once."""

    def __init__(self, descriptor: int, at: int, size: int) -> None:
        self._descriptor = descriptor
        self._at = at
        self._left = size

    def chunk(self, most: int) -> bytes:
        """The next bytes of the range."""
        data = os.pread(self._descriptor, min(most, self._left), self._at)
        self._at += len(data)
        self._left -= len(data)
        return data


class Inflated:
    """Deflated data, unpacked as it is read, and what follows it; raises the errors it was given."""

    def __init__(self, packed: Part, wbits: int, damaged: GatherError, cut_short: GatherError) -> None:
        self._packed = packed
        self._inflate = zlib.decompressobj(wbits)
        self._input = b""
        self._damaged, self._cut_short = damaged, cut_short

    def chunk(self, most: int) -> bytes:
        """At most so many bytes, none only at the end. Raises GatherError."""
        while True:
            try:
                data = self._inflate.decompress(self._input, most)
            except zlib.error as error:
                raise self._damaged from error
            self._input = self._inflate.unconsumed_tail
            if data or self._inflate.eof:
                return data
            if not self._input:
                self._input = self._packed.chunk(CHUNK)
                if not self._input:
                    raise self._cut_short

    def behind(self) -> Iterator[bytes]:
        """What follows the deflated data, in chunks."""
        if self._inflate.unused_data:
            yield self._inflate.unused_data
        while data := self._packed.chunk(CHUNK):
            yield data


class Budget:
    """Counts members and unpacked bytes of one source bundle, and stops where its limits are.

    `packed` is the size of the archive in bytes; None for a folder, which cannot be a bomb.
    """

    def __init__(self, file: str, limits: ReadLimits, packed: int | None = None) -> None:
        self._file = file
        self._limits = limits
        self._files = 0
        self._bytes = 0
        ratio = limits.total_bytes if packed is None else max(_RATIO_FROM, _RATIO * packed)
        self._most = min(limits.total_bytes, ratio)

    def member(self) -> None:
        """Count one more file or folder."""
        self._files += 1
        if self._files > self._limits.files:
            raise refusal(
                self._file, f"the source bundle has more than {self._limits.files} members", "split it into several"
            )

    def take(self, count: int) -> None:
        """Count bytes that were unpacked just now; headers of an archive count too."""
        self._bytes += count
        if self._bytes > self._most:
            raise refusal(
                self._file,
                f"the source bundle unpacks to more than {self._most} bytes (the limit, or {_RATIO} times its size)",
                "split it, or submit the folder itself",
            )


def hashed(read: Read, name: str, file: str, limits: ReadLimits, budget: Budget | None = None) -> tuple[str, int]:
    """SHA-256 in hex and number of bytes of a stream, read in chunks. Raises GatherError past a limit."""
    sha256, count = hashlib.sha256(), 0
    while chunk := read(CHUNK):
        count += len(chunk)
        if count > limits.content_bytes:
            raise refusal(
                file,
                f"the file `{printable(name)}` is larger than {limits.content_bytes} bytes",
                "split it; a program may raise the limit in `Settings.read`",
            )
        if budget is not None:
            budget.take(len(chunk))
        sha256.update(chunk)
    return sha256.hexdigest(), count


class Names:
    """The member names of one archive: refuses what is unsafe, ambiguous or there twice."""

    def __init__(self, file: str, most: int) -> None:
        """`most` folders, including those that only names of members have."""
        self._file = file
        self._most = most
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def file(self, raw: str) -> str:
        """The name of a file member in its only form: relative, `/` between parts, no `.` parts."""
        name = "/".join(self._parts(raw))
        if not name or raw.endswith(("/", "/.")) or name in self._files or name in self._folders:
            raise self._refuse(raw, "occurs twice, or is both a file and a folder")
        self._files.add(name)
        self._add_folders(raw, name.split("/")[:-1])
        return name

    def folder(self, raw: str) -> None:
        """Take note of a folder member; the same folder may be there several times."""
        self._add_folders(raw, self._parts(raw.removesuffix("/")))

    def _add_folders(self, raw: str, parts: list[str]) -> None:
        folder = "/".join(parts)
        while folder and folder not in self._folders:
            if folder in self._files:
                raise self._refuse(raw, "occurs twice, or is both a file and a folder")
            self._folders.add(folder)
            if len(self._folders) > self._most:
                raise refusal(
                    self._file, f"the source bundle has more than {self._most} folders", "split it into several"
                )
            folder = folder.rpartition("/")[0]

    def _parts(self, raw: str) -> list[str]:
        if len(raw) > LONGEST_NAME:
            raise self._refuse(raw, f"has a name of more than {LONGEST_NAME} characters")
        if any("\ud800" <= character <= "\udfff" for character in raw):
            raise self._refuse(raw, "has a name that is not UTF-8")
        if not raw.isprintable():
            raise self._refuse(raw, "has a name with line breaks, control or invisible characters")
        if _ABSOLUTE.match(raw) or "\\" in raw:
            raise self._refuse(raw, "has an absolute name, or one with `\\`")
        parts = [part for part in raw.split("/") if part != "."]
        if ".." in parts:
            raise self._refuse(raw, "has a path outside the archive")
        if "" in parts:
            raise self._refuse(raw, "has a name with an empty part")
        return parts

    def _refuse(self, raw: str, message: str) -> GatherError:
        return refusal(self._file, f"the member `{printable(raw)}` {message}", "pack the folder again with plain names")

"""Source bundles as `.tar` and `.tar.gz`: one pass hashes every member, bounded in memory, nothing unpacked.

tarfile parses the headers, over a stream that only goes forward, counts every byte and gives each
member's headers a budget: extended headers and sparse maps are read into memory otherwise.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tempfile
from typing import IO, BinaryIO, cast

from engine.documents.files import printable
from engine.errors import GatherError
from engine.facts.archives.members import CHUNK, Budget, Inflated, Member, Names, Part, Stream, hashed, refusal
from engine.settings import ReadLimits

GZIP = b"\x1f\x8b"
_BLOCK = 512
_HEADER_BYTES = 64 << 10
"""Headers of one member, extensions included; real ones need 3 blocks."""

_TYPE, _EXTENSIONS = slice(156, 157), {b"x", b"g"}
"""Where a header states its type, and the types whose content is fields of the next header (POSIX pax)."""

_MOST_DIGITS = 40
_DIGITS = re.compile(rb"[0-9]{%d}" % (_MOST_DIGITS + 1))
"""The patterns with which tarfile reads these fields take the square of the digits in a row; a time has 20."""

_PACK_AGAIN = "pack the folder again with `tar czf`"


def _refused(file: str, message: str) -> GatherError:
    return refusal(file, message, _PACK_AGAIN)


class TarMembers:
    """The members of one tar file, compressed by gzip or not, whose descriptor stays the caller's."""

    def __init__(self, descriptor: int, file: str, limits: ReadLimits) -> None:
        self._descriptor = descriptor
        self._file = file
        self._limits = limits
        self._spool: BinaryIO | None = None

    def scan(self) -> dict[str, Member]:
        """One pass over the whole archive."""
        stream = self._stream()
        names = Names(self._file, self._limits.files)
        members: dict[str, Member] = {}
        try:
            tar = tarfile.TarFile(fileobj=cast(IO[bytes], stream), encoding="utf-8", errors="surrogateescape")
            while (header := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # or tarfile keeps every header
                stream.budget.member()
                if self._is_file(header):
                    at = stream.tell()
                    content = _Content(stream, header.size)
                    sha256, count = hashed(content.read, header.name, self._file, self._limits)
                    if count != header.size:
                        raise _refused(self._file, "the source bundle ends in the middle of a member")
                    members[names.file(header.name)] = Member(sha256, count, at)
                else:
                    names.folder(header.name)
                stream.allow_headers()
        except (tarfile.TarError, ValueError, RecursionError) as error:
            raise _refused(self._file, "the source bundle is not a tar archive, or is damaged") from error
        stream.finish()
        return members

    def _is_file(self, header: tarfile.TarInfo) -> bool:
        plain = header.type in {tarfile.REGTYPE, tarfile.AREGTYPE}
        sparse = header.sparse is not None or any(key.startswith("GNU.sparse") for key in header.pax_headers)
        if sparse or header.size < 0 or not (plain or (header.isdir() and header.size == 0)):
            raise refusal(
                self._file,
                f"the member `{printable(header.name)}` is a link, a device, sparse or of another special kind",
                "pack plain files and folders only",
            )
        return plain

    def read(self, member: Member) -> bytes:
        """One member, by a pass up to it."""
        stream = self._stream()
        stream.seek(member.at)
        return stream.take(member.bytes)

    def open(self, member: Member) -> BinaryIO:
        """One member as a stream. The first call unpacks the tar stream into one file without a name.

        So members may be opened in any order with at most two passes; `close` removes the file.
        """
        if self._spool is None:
            self._spool = self._spooled()
        return Part(self._spool.fileno(), member.at, member.bytes).buffered()

    def _spooled(self) -> BinaryIO:
        stream = self._stream()
        spool = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  # lives as long as this object
        try:
            while chunk := stream.take(CHUNK):
                spool.write(chunk)
            spool.flush()
        except OSError as error:
            spool.close()
            remedy = "make room in the temporary folder, or submit the folder itself"
            raise refusal(self._file, "the source bundle cannot be unpacked into a temporary file", remedy) from error
        return spool

    def _stream(self) -> _Forward:
        packed = os.fstat(self._descriptor).st_size
        return _Forward(self._descriptor, self._file, Budget(self._file, self._limits, packed))

    def close(self) -> None:
        """Let go of the unpacked stream, if there is one."""
        if self._spool is not None:
            self._spool.close()


class _Forward:
    """The unpacked tar stream, forward only; every byte counts against the budget.

    `read`, `seek` and `tell` are what tarfile calls, for headers and to skip.
    """

    def __init__(self, descriptor: int, file: str, budget: Budget) -> None:
        self.budget = budget
        packed = os.pread(descriptor, len(GZIP), 0) == GZIP
        self._stream = (_Gunzipped(descriptor, file) if packed else Part(descriptor, 0, sys.maxsize)).buffered()
        self._file = file
        self._position = 0
        self._last = b""
        self._headers_left = _HEADER_BYTES

    def allow_headers(self) -> None:
        """Give the next member's headers their budget."""
        self._headers_left = _HEADER_BYTES

    def read(self, size: int) -> bytes:
        self._headers_left -= size
        if size < 0 or self._headers_left < 0:
            raise _refused(
                self._file, f"the source bundle has a member with more than {_HEADER_BYTES} bytes of headers"
            )
        extension, self._last = self._last[_TYPE] in _EXTENSIONS, self.take(size)
        if extension and _DIGITS.search(self._last) is not None:
            raise _refused(self._file, f"the source bundle has a header with more than {_MOST_DIGITS} digits in a row")
        return self._last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        if position < self._position:
            raise _refused(self._file, "the source bundle has a member that starts before its header")
        while (left := position - self._position) and self.take(min(left, CHUNK)):
            pass

    def take(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        data = self._stream.read(size)
        self._position += len(data)
        self.budget.take(len(data))
        return data

    def finish(self) -> None:
        """Read to the end. Raises GatherError unless the tar ended as it should and only padding follows."""
        if self._last != bytes(_BLOCK):
            raise _refused(self._file, "the source bundle has a damaged header, or ends without an end mark")
        while chunk := self.take(CHUNK):
            if chunk.strip(b"\0"):
                raise _refused(self._file, "the source bundle has more data after the end of the tar archive")


class _Content:
    """The content of the member at the current position of the stream."""

    def __init__(self, stream: _Forward, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int, /) -> bytes:
        data = self._stream.take(min(size, self._left))
        self._left -= len(data)
        return data


class _Gunzipped(Stream):
    """The content of a file that is exactly one gzip stream, checked to its end."""

    def __init__(self, descriptor: int, file: str) -> None:
        self._file = file
        self._content = Inflated(
            Part(descriptor, 0, sys.maxsize),
            31,  # with the header and checksum of gzip
            _refused(file, "the source bundle is damaged: its gzip stream is not complete"),
            refusal(file, "the source bundle is cut short", "copy it again, or pack it again with `tar czf`"),
        )

    def chunk(self, most: int) -> bytes:
        data = self._content.chunk(most)
        if not data and any(rest.strip(b"\0") for rest in self._content.behind()):
            raise _refused(self._file, "the source bundle has more data after its gzip stream")
        return data

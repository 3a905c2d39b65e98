"""Source bundles as `.tar.gz`: one pass hashes every member, bounded in memory, nothing unpacked.

tarfile parses the headers, over a stream that only goes forward, counts every byte and gives each
member's headers a budget: extended headers and sparse maps are read into memory otherwise.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import zlib
from typing import IO, Any, BinaryIO, cast

from engine.facts.members import CHUNK, Budget, Member, Names, Part, hashed, refusal
from engine.files import shown
from engine.settings import ReadLimits

_BLOCK = 512
_HEADER_BYTES = 64 << 10
"""Headers of one member, extensions included; real ones need 3 blocks."""

_PACK_AGAIN = "pack the folder again with `tar czf`"


class TarMembers:
    """The members of one gzip-compressed tar file, whose descriptor stays the caller's."""

    def __init__(self, descriptor: int, file: str, limits: ReadLimits) -> None:
        self._descriptor = descriptor
        self._file = file
        self._limits = limits
        self._spool: BinaryIO | None = None

    def scan(self) -> dict[str, Member]:
        """One pass over the whole archive."""
        stream = self._stream()
        names = Names(self._file)
        members: dict[str, Member] = {}
        try:
            tar = tarfile.TarFile(fileobj=cast(IO[bytes], stream), encoding="utf-8", errors="surrogateescape")
            while (header := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # or tarfile keeps every header
                stream.budget.member()
                if self._is_file(header):
                    at = stream.tell()
                    content = _Content(stream, header.size)
                    sha256, count = hashed(content, header.name, self._file, self._limits)
                    if count != header.size:
                        raise refusal(self._file, "the source bundle ends in the middle of a member", _PACK_AGAIN)
                    members[names.file(header.name)] = Member(sha256, count, at)
                else:
                    names.folder(header.name)
                stream.allow_headers()
        except (tarfile.TarError, ValueError, RecursionError) as error:
            raise refusal(self._file, "the source bundle is not a tar archive, or is damaged", _PACK_AGAIN) from error
        stream.finish()
        return members

    def _is_file(self, header: tarfile.TarInfo) -> bool:
        plain = header.type in {tarfile.REGTYPE, tarfile.AREGTYPE}
        sparse = header.sparse is not None or any(key.startswith("GNU.sparse") for key in header.pax_headers)
        if sparse or header.size < 0 or not (plain or (header.isdir() and header.size == 0)):
            raise refusal(
                self._file,
                f"the member `{shown(header.name)}` is a link, a device, sparse or of another odd kind",
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

        So members may be opened in any order at no more than two passes; the file is gone with `close`.
        """
        if self._spool is None:
            self._spool = self._spooled()
        return cast(BinaryIO, io.BufferedReader(Part(self._spool.fileno(), member.at, member.bytes), CHUNK))

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
        self._stream = io.BufferedReader(_Gunzipped(descriptor, file), CHUNK)
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
            raise refusal(
                self._file,
                f"the source bundle has a member with more than {_HEADER_BYTES} bytes of headers",
                _PACK_AGAIN,
            )
        self._last = self.take(size)
        return self._last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        if position < self._position:
            raise refusal(self._file, "the source bundle has a member that starts before its header", _PACK_AGAIN)
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
            raise refusal(
                self._file, "the source bundle has a damaged header, or ends without an end mark", _PACK_AGAIN
            )
        while chunk := self.take(CHUNK):
            if chunk.strip(b"\0"):
                raise refusal(
                    self._file, "the source bundle holds more data after the end of the tar archive", _PACK_AGAIN
                )


class _Content:
    """The content of the member that the stream stands at."""

    def __init__(self, stream: _Forward, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int, /) -> bytes:
        data = self._stream.take(min(size, self._left))
        self._left -= len(data)
        return data


class _Gunzipped(io.RawIOBase):
    """The content of a file that is exactly one gzip stream, checked to its end."""

    def __init__(self, descriptor: int, file: str) -> None:
        self._descriptor = descriptor
        self._file = file
        self._inflate = zlib.decompressobj(wbits=31)
        self._input = b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while True:
            try:
                data = self._inflate.decompress(self._input, len(view))
            except zlib.error as error:
                raise refusal(
                    self._file, "the source bundle is damaged: it is not gzip to its end", _PACK_AGAIN
                ) from error
            self._input = self._inflate.unconsumed_tail
            if data:
                view[: len(data)] = data
                return len(data)
            if self._inflate.eof:
                break
            if not self._input and not self._more():
                raise refusal(
                    self._file, "the source bundle is cut short", "copy it again, or pack it again with `tar czf`"
                )
        self._input = self._inflate.unused_data
        while self._input or self._more():
            if self._input.strip(b"\0"):
                raise refusal(self._file, "the source bundle holds more data after its gzip stream", _PACK_AGAIN)
            self._input = b""
        return 0

    def _more(self) -> bool:
        self._input = os.pread(self._descriptor, CHUNK, self._at)
        self._at += len(self._input)
        return bool(self._input)

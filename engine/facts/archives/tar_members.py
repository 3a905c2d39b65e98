"""Source bundles as `.tar` and `.tar.gz`: one pass hashes every member, bounded in memory, nothing unpacked.

Headers are read strictly: where readers of tar files would see other names or sizes, the file is refused. The layouts
are those of POSIX.1-2017, `pax`, and of the long names of GNU tar.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import BinaryIO, cast

from engine.documents.files import printable
from engine.errors import GatherError
from engine.facts.archives.members import CHUNK, Budget, Inflated, Member, Names, Part, Stream, hashed, refusal
from engine.settings import ReadLimits

GZIP = b"\x1f\x8b"
_BLOCK = 512
_HEADER_BYTES = 64 << 10
"""An extended header; real ones need one or two blocks."""

_NAME, _SIZE, _SUM, _TYPE, _MAGIC, _PREFIX = (
    slice(start, start + length) for start, length in ((0, 100), (124, 12), (148, 8), (156, 1), (257, 8), (345, 155))
)
_POSIX, _GNU = b"ustar\x0000", b"ustar  \0"
_FILE, _OLD_FILE, _FOLDER, _LONG_NAME, _EXTENDED, _GLOBAL = b"0", b"\0", b"5", b"L", b"x", b"g"
_OCTAL = re.compile(rb" {0,11}([0-7]{1,12})[ \0]{0,11}")
_BINARY = b"\x80"
_FROM_LONG = 8 << 30
"""Bytes of a member from which the field for its size is too short, so an extended header states it."""

_LONG = re.compile(rb"[1-9][0-9]{9,18}")
_RECORD = re.compile(rb"([1-9][0-9]{0,4}) ([^=\n]+)=")
_PATH, _LENGTH, _SPARSE = b"path", b"size", (b"GNU.sparse.", b"SCHILY.realsize")

_PACK_AGAIN = "pack the folder again with `tar czf`"


def _text(raw: bytes) -> str:
    return printable(raw.split(b"\0")[0].decode("utf-8", "surrogateescape"))


def _refused(file: str, message: str) -> GatherError:
    return refusal(file, message, _PACK_AGAIN)


@dataclass(frozen=True, slots=True)
class _Header:
    """What the headers of one member state; `size` in bytes."""

    name: str
    size: int
    folder: bool


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
        while (header := self._header(stream)) is not None:
            stream.budget.member()
            if header.folder:
                names.folder(header.name)
                continue
            at = stream.position
            content = _Content(stream, header.size)
            sha256, count = hashed(content.read, header.name, self._file, self._limits)
            if count != header.size:
                raise _refused(self._file, "the source bundle ends in the middle of a member")
            stream.pad(header.size)
            members[names.file(header.name)] = Member(sha256, count, at)
        stream.finish()
        return members

    def _header(self, stream: _Forward) -> _Header | None:
        """The next member; None at the end mark."""
        extended, kinds = dict[bytes, bytes](), set[bytes]()
        while (block := stream.take(_BLOCK)) != bytes(_BLOCK) or kinds:
            kind, size = block[_TYPE], self._size(block)
            if kind not in {_LONG_NAME, _EXTENDED, _GLOBAL}:
                return self._member(block, size, extended)
            if size > _HEADER_BYTES:
                message = f"the source bundle has a member with more than {_HEADER_BYTES} bytes of headers"
                raise _refused(self._file, message)
            fields = self._fields(kind, stream.take(size))
            stream.pad(size)
            if kind in kinds or fields.keys() & (extended.keys() if kind != _GLOBAL else {_PATH, _LENGTH}):
                raise self._differs(block[_NAME])
            extended |= fields if kind != _GLOBAL else {}
            kinds.add(kind)
        return None

    def _size(self, block: bytes) -> int:
        """The size that a header states, whose checksum must fit."""
        total, magic = sum(block) - sum(block[_SUM]) + len(block[_SUM]) * ord(" "), block[_MAGIC]
        checksum, size = _OCTAL.fullmatch(block[_SUM]), _OCTAL.fullmatch(block[_SIZE])
        damaged = len(block) != _BLOCK or checksum is None or int(checksum[1], 8) != total
        if damaged or magic not in {_POSIX, _GNU}:
            raise self._damaged()
        binary = block[_SIZE].startswith(_BINARY)
        if (magic == _GNU and any(block[_PREFIX])) or not (size or binary):
            raise self._differs(block[_NAME])
        return int(size[1], 8) if size else int.from_bytes(block[_SIZE][1:], "big")

    def _fields(self, kind: bytes, content: bytes) -> dict[bytes, bytes]:
        """What an extended header or a long name states."""
        if kind == _LONG_NAME:
            return {_PATH: content.rstrip(b"\0")}
        fields, at = dict[bytes, bytes](), 0
        while at < len(content):
            record = _RECORD.match(content, at)
            end = at + int(record[1]) if record is not None else 0
            if record is None or record[2] in fields or end <= record.end() or content[end - 1 : end] != b"\n":
                raise self._damaged()
            fields[record[2]] = content[record.end() : end - 1]
            at = end
        return fields

    def _member(self, block: bytes, size: int, extended: dict[bytes, bytes]) -> _Header:
        name, prefix = (block[place].split(b"\0")[0] for place in (_NAME, _PREFIX))
        raw = extended.get(_PATH, prefix + b"/" + name if prefix else name)
        kind, sparse = block[_TYPE], any(key.startswith(_SPARSE) for key in extended)
        if sparse or not (kind in {_FILE, _OLD_FILE} or (kind == _FOLDER and size == 0)):
            message = "is a link, a device, sparse or of another special kind"
            raise refusal(self._file, f"the member `{_text(raw)}` {message}", "pack plain files and folders only")
        stated = extended.get(_LENGTH, b"%d" % size)
        long = _LONG.fullmatch(stated) is not None and int(stated) >= _FROM_LONG
        old_folder = kind == _OLD_FILE and name.endswith(b"/")
        if old_folder or b"\0" in raw or not (long or stated == b"%d" % size):
            raise self._differs(raw)
        return _Header(raw.decode("utf-8", "surrogateescape"), int(stated), kind == _FOLDER)

    def _differs(self, raw: bytes) -> GatherError:
        return _refused(self._file, f"the member `{_text(raw)}` is stated in two ways that disagree")

    def _damaged(self) -> GatherError:
        message = "the source bundle is not a tar archive, has a damaged header, or ends without an end mark"
        return _refused(self._file, message)

    def read(self, member: Member) -> bytes:
        """One member, by a pass up to it."""
        stream = self._stream()
        stream.skip(member.at)
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
    """The unpacked tar stream, forward only; every byte counts against the budget."""

    def __init__(self, descriptor: int, file: str, budget: Budget) -> None:
        self.budget = budget
        self.position = 0
        packed = os.pread(descriptor, len(GZIP), 0) == GZIP
        self._stream = (_Gunzipped(descriptor, file) if packed else Part(descriptor, 0, sys.maxsize)).buffered()
        self._file = file

    def take(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        data = self._stream.read(size)
        self.position += len(data)
        self.budget.take(len(data))
        return data

    def pad(self, size: int) -> None:
        """Skip what fills the last block behind `size` bytes."""
        self.take(-size % _BLOCK)

    def skip(self, size: int) -> None:
        """Skip as many bytes."""
        while size > 0 and (data := self.take(min(size, CHUNK))):
            size -= len(data)

    def finish(self) -> None:
        """Read to the end. Raises GatherError unless only padding follows."""
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

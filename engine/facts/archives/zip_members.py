"""Source bundles as `.zip`: read strictly; files in which other readers would see other members are refused.

The zip format states names and sizes twice and lets members overlap or hide between others. Here the
members, the central directory and its end record must tile the file without gaps, and both
statements must agree. The record layouts are those of PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from engine.documents.files import printable
from engine.errors import GatherError
from engine.facts.archives.members import LONGEST_NAME, Budget, Inflated, Member, Names, Part, Stream, hashed, refusal
from engine.settings import ReadLimits

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = struct.Struct("<2H")
_LARGE = struct.Struct("<Q")
_DESCRIPTORS = {
    12: struct.Struct("<3L"),
    16: struct.Struct("<4x3L"),
    20: struct.Struct("<L2Q"),
    24: struct.Struct("<4xL2Q"),
}
"""Data descriptors by their length: without or with a signature, with 4-byte or 8-byte sizes."""

_LONGEST_COMMENT = 0xFFFF
_ZIP64, _UNICODE_PATH, _OLD_UNIX = 1, 0x7075, 0x756E
_UNICODE_PATH_START, _OLD_UNIX_MODE = 5, slice(4, 6)
"""Behind a version and the checksum of the name in the header; behind a checksum."""

_SEE_ZIP64, _SEE_ZIP64_SHORT = 0xFFFFFFFF, 0xFFFF
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_DESCRIPTOR = 0x0008
_PATCHED = 0x0020
_UTF8 = 0x0800
_SPECIAL = "is a link, a device or of another special kind"
_PACK_AGAIN = "pack the folder again with an ordinary zip tool, without a password"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One member as the central directory states it."""

    raw: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    at: int
    mode: int

    @property
    def name(self) -> str:
        return self.raw.decode("utf-8", "surrogateescape")


class ZipMembers:
    """The members of one zip file, whose descriptor stays the caller's."""

    def __init__(self, descriptor: int, file: str, limits: ReadLimits) -> None:
        self._descriptor = descriptor
        self._file = file
        self._limits = limits
        self._entries: dict[int, _Entry] = {}  # by where their data starts

    def scan(self) -> dict[str, Member]:
        """Check every statement of the archive and unpack every member once."""
        end = os.fstat(self._descriptor).st_size
        budget = Budget(self._file, self._limits, packed=end)
        names = Names(self._file, self._limits.files)
        members: dict[str, Member] = {}
        central, entries = self._central_directory(end, budget)
        starts = [*(entry.at for entry in entries), central]
        if starts[0] != 0:
            raise self._refuse("the source bundle has data before its first member")
        for entry, next_start in zip(entries, starts[1:], strict=True):
            at = self._data_start(entry, next_start)
            if self._is_file(entry):
                name = names.file(entry.name)
                self._entries[at] = entry
                sha256, count = hashed(self._unpacked(entry, at).read, name, self._file, self._limits, budget)
                members[name] = Member(sha256, count, at)
            else:
                names.folder(entry.name)
        return members

    def read(self, member: Member) -> bytes:
        """One member, unpacked in memory."""
        return self.open(member).read()

    def open(self, member: Member) -> BinaryIO:
        """One member, unpacked as it is read."""
        return self._unpacked(self._entries[member.at], member.at)

    def close(self) -> None:
        """Nothing is kept beside the caller's descriptor."""

    def _central_directory(self, end: int, budget: Budget) -> tuple[int, list[_Entry]]:
        """Where the central directory starts, and its entries in the order of their data."""
        count, size, start = self._end_record(end)
        stream = Part(self._descriptor, start, size).buffered()
        entries = []
        for _ in range(count):
            budget.member()
            entries.append(self._entry(stream))
        if stream.read(1):
            raise self._refuse("the source bundle has a central directory whose length differs from the stated one")
        return start, sorted(entries, key=lambda entry: entry.at)

    def _end_record(self, end: int) -> tuple[int, int, int]:
        """Number of members, size and start of the central directory; what follows it must fit exactly."""
        first = max(0, end - _END.size - _LONGEST_COMMENT)
        tail = self._pread(end - first, first)
        found = [mark.start() for mark in re.finditer(rb"PK\x05\x06", tail) if _fits(tail, mark.start())]
        if len(found) != 1:
            raise self._refuse("the source bundle is damaged or cut short: it has no end record, or several")
        at = first + found[0]
        fields_of_end = _END.unpack_from(tail, found[0])[1:-1]
        true, after = list(fields_of_end), at
        if at >= _LOCATOR.size and (locator := self._pread(_LOCATOR.size, at - _LOCATOR.size))[:4] == b"PK\6\7":
            after = _LOCATOR.unpack(locator)[2]
            mark, length, _, _, *true = self._record(_END64, after)
            if mark != b"PK\6\6" or after + 12 + length != at - _LOCATOR.size:
                raise self._refuse("the source bundle has an inconsistent end record")
        agree = all(
            value in {other, _SEE_ZIP64_SHORT, _SEE_ZIP64} for value, other in zip(fields_of_end, true, strict=True)
        )
        disk, first_disk, here, count, size, start = true
        if not agree or disk or first_disk or here != count or start + size != after:
            raise self._refuse("the source bundle is one part of several, or has data around its central directory")
        return count, size, start

    def _entry(self, stream: BinaryIO) -> _Entry:
        header = stream.read(_CENTRAL.size)
        if len(header) != _CENTRAL.size or header[:4] != b"PK\1\2":
            raise self._refuse("the source bundle has a damaged central directory")
        fields = _CENTRAL.unpack(header)
        _, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment, disk, _, mode, at = fields
        raw, extra = stream.read(name_length), stream.read(extra_length)
        if len(stream.read(comment)) != comment or len(raw) > 4 * LONGEST_NAME:
            raise self._refuse("the source bundle has a damaged central directory, or a name that is too long")
        size, packed, at = self._large(raw, extra, [size, packed, at])
        entry = _Entry(raw, flags, method, crc, packed, size, at, mode >> 16)
        if flags & (_ENCRYPTED | _PATCHED) or method not in {_STORED, _DEFLATED} or disk:
            raise self._refuse_member(entry.raw, "is encrypted, or packed in a way that is not supported")
        if not raw.isascii() and not flags & _UTF8:
            raise self._refuse_member(entry.raw, "has a name that is not marked as UTF-8")
        return entry

    def _large(self, raw: bytes, extra: bytes, values: list[int]) -> list[int]:
        """The values, replaced in order by those of the zip64 extra field.

        Other extra fields state the name and the mode once more, for readers that prefer them to those of the header.
        """
        large, at = b"", 0
        while len(extra) - at >= _EXTRA.size:
            kind, length = _EXTRA.unpack_from(extra, at)
            at += _EXTRA.size
            content = extra[at : at + length]
            if (kind == _ZIP64 and large) or (kind == _UNICODE_PATH and content[_UNICODE_PATH_START:] != raw):
                raise self._refuse_member(raw, "is stated in two ways that disagree")
            if kind == _OLD_UNIX and stat.S_ISLNK(int.from_bytes(content[_OLD_UNIX_MODE], "little")):
                raise self._refuse_member(raw, _SPECIAL)
            if kind == _ZIP64:
                large = content
            at += length
        for index, value in enumerate(values):
            if value == _SEE_ZIP64 and len(large) >= _LARGE.size:
                (values[index],) = _LARGE.unpack_from(large)
                large = large[_LARGE.size :]
        return values

    def _data_start(self, entry: _Entry, next_start: int) -> int:
        """Where the data of a member starts. Its local header must agree, and it must end at the next."""
        mark, _, flags, method, _, _, crc, packed, size, name_length, extra_length = self._record(_LOCAL, entry.at)
        raw = self._pread(name_length, entry.at + _LOCAL.size)
        extra = self._pread(extra_length, entry.at + _LOCAL.size + name_length)
        size, packed = self._large(raw, extra, [size, packed])
        stated, here = (entry.crc, entry.packed, entry.size), (crc, packed, size)
        if flags & _DESCRIPTOR:  # then the header may be 0, and the true values follow the data
            here = (crc or entry.crc, packed or entry.packed, size or entry.size)
        central = (entry.raw, entry.flags, entry.method)
        if mark != b"PK\3\4" or (raw, flags, method) != central or here != stated:
            raise self._refuse_member(entry.raw, "is stated in two ways that disagree")
        start: int = entry.at + _LOCAL.size + name_length + extra_length
        after = start + entry.packed
        if flags & _DESCRIPTOR:
            layout = _DESCRIPTORS.get(next_start - after)
            if layout is None or self._record(layout, after) != stated:
                raise self._refuse_member(entry.raw, "is stated in two ways that disagree")
        elif next_start != after:
            raise self._refuse_member(entry.raw, "overlaps another, or is followed by hidden data")
        return start

    def _is_file(self, entry: _Entry) -> bool:
        folder = entry.raw.endswith(b"/")
        if stat.S_IFMT(entry.mode) not in {0, stat.S_IFDIR if folder else stat.S_IFREG} or (folder and entry.size):
            raise self._refuse_member(entry.raw, _SPECIAL)
        return not folder

    def _unpacked(self, entry: _Entry, at: int) -> BinaryIO:
        return _Unpacked(Part(self._descriptor, at, entry.packed), entry, self._file).buffered()

    def _record(self, layout: struct.Struct, at: int) -> tuple[Any, ...]:
        return layout.unpack(self._pread(layout.size, at))

    def _pread(self, size: int, at: int) -> bytes:
        data = os.pread(self._descriptor, size, at) if at < 1 << 62 else b""
        if len(data) != size:
            raise self._refuse("the source bundle is damaged or cut short")
        return data

    def _refuse(self, message: str) -> GatherError:
        return refusal(self._file, message, _PACK_AGAIN)

    def _refuse_member(self, raw: bytes, message: str) -> GatherError:
        return self._refuse(f"the member `{printable(raw.decode('utf-8', 'surrogateescape'))}` {message}")


def _fits(tail: bytes, at: int) -> bool:
    """Whether an end record at this place, with its comment, ends the file exactly."""
    return len(tail) - at >= _END.size and at + _END.size + _END.unpack_from(tail, at)[-1] == len(tail)


class _Unpacked(Stream):
    """The content of one member, whose size and checksum are checked at its end."""

    def __init__(self, packed: Part, entry: _Entry, file: str) -> None:
        self._packed = packed
        self._entry = entry
        self._file = file
        self._inflated = None
        if entry.method != _STORED:
            self._inflated = Inflated(packed, -15, self._refused("is damaged"), self._refused("is cut short"))
        self._count = 0
        self._crc = 0

    def chunk(self, most: int) -> bytes:
        data = (self._inflated or self._packed).chunk(most)
        if not data and self._inflated is not None and any(self._inflated.behind()):
            raise self._refused("is followed by hidden data")
        self._count += len(data)
        self._crc = zlib.crc32(data, self._crc)
        mismatch = not data and (self._count, self._crc) != (self._entry.size, self._entry.crc)
        if mismatch or self._count > self._entry.size:
            raise self._refused("has a size or checksum other than stated")
        return data

    def _refused(self, message: str) -> GatherError:
        return refusal(self._file, f"the member `{printable(self._entry.name)}` {message}", _PACK_AGAIN)

"""Policy archives in memory: one canonical packing, size limits, named by the digest of their content.

An archive that is read is repacked and compared, so nothing can hide in it: no link or device, no
duplicate name or path outside of it, no other header, no byte after the end. The
revision is computed from the content whenever an archive is read from disk; the manifest's
statement is compared with it, never trusted.
"""

from __future__ import annotations

import io
import re
import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from engine.documents.canonical import canonical, digest, parse
from engine.documents.files import printable
from engine.errors import GatherError, Location

MANIFEST, SIGNATURES = ".manifest", ".signatures.json"
VALUES_DATA = "policy/data.json"
"""All values, in the archive of values."""

PACKED_BYTES = 16 << 20
"""The largest archive as a file; one of ours has about 10 KiB."""
UNPACKED_BYTES = 64 << 20
"""The largest archive unpacked; the values of one document may have 32 MiB."""

_OF_POINT = re.compile(r"admission/(?:compiled|limits|requirements|added(?!/lib/))/([a-z_]+)")
_REFERENCE = re.compile(rb"\badmission[^a-z]+(?:requirements|limits|added)[^a-z]+(?!lib\b)([a-z_]+)")


class _DamagedError(Exception):
    """An archive is refused; the text names the reason."""


_AGAIN = "get it again from its builder: only archives of `engine policy build` are read"


def pack(files: Mapping[str, bytes]) -> bytes:
    """The archive of these files: sorted names, no times, no owners."""
    return zlib.compress(_tar(files), wbits=31)


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive by name; `name` is for messages. Raises GatherError."""
    try:
        return dict(_files(data))
    except _DamagedError as error:
        raise _refused(name, str(error)) from error


@lru_cache(maxsize=2)  # rules and values: the build and OPA's start read the same two
def _files(data: bytes) -> Mapping[str, bytes]:
    tar = _inflated(data)
    files: dict[str, bytes] = {}
    try:
        for header in _headers(tar):
            title = printable(header.name)
            if header.type != tarfile.REGTYPE:
                raise _DamagedError(f"the member `{title}` is not a regular file")
            if "\\" in header.name or not {"", ".", ".."}.isdisjoint(header.name.split("/")):
                raise _DamagedError(f"the member `{title}` has a path outside the archive")
            if header.name in files:
                raise _DamagedError(f"the member `{title}` occurs twice")
            files[header.name] = tar[header.offset_data : header.offset_data + header.size]
        same = _tar(files) == tar
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise _DamagedError("it is not a tar archive, or is damaged") from error
    if not same:
        raise _DamagedError("it was not packed by this engine, or is damaged")
    return files


def of_points(files: Mapping[str, bytes], points: Collection[str]) -> Mapping[str, bytes]:
    """The files of rules that these decision points need, with those of other points that they refer to.

    All of them where a reference does not name its point.
    """
    known = {_point(name) for name in files}
    needed, kept = {"common", *points}, dict[str, bytes]()
    while fresh := {name: data for name, data in files.items() if name not in kept and _point(name) in {None, *needed}}:
        kept |= fresh
        needed |= {found.decode() for data in fresh.values() for found in _REFERENCE.findall(data)}
    return kept if needed - {"common", *points} <= known else files


def sealed(files: Mapping[str, bytes], stated: Mapping[str, Any]) -> tuple[bytes, str]:
    """`.manifest` for these files, with what it states besides, and the revision in it: the digest of all else."""
    names = {name: digest(data) for name, data in files.items()}
    revision = digest(canonical({"files": names, "manifest": stated}))
    return canonical({**stated, "revision": revision}), revision


def revision(files: Mapping[str, bytes], name: str) -> str:
    """The digest of an archive's content without signatures. Raises GatherError unless its manifest states it."""
    content = {one: data for one, data in files.items() if one not in {MANIFEST, SIGNATURES}}
    try:
        stated = parse(files.get(MANIFEST, b""))
        stated.pop("revision")
        manifest, found = sealed(content, stated)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise _refused(name, "its manifest is not from this engine") from error
    if manifest != files[MANIFEST]:
        raise _refused(name, "its revision is not the digest of its content")
    return found


def _inflated(data: bytes) -> bytes:
    inflate = zlib.decompressobj(31)
    try:
        tar = inflate.decompress(data, UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise _DamagedError("it is not gzip, or is damaged") from error
    if len(tar) > UNPACKED_BYTES:
        raise _DamagedError(f"it unpacks to more than {UNPACKED_BYTES} bytes")
    if not inflate.eof:
        raise _DamagedError("it is truncated")
    if inflate.unused_data:
        raise _DamagedError("it has more data after its end")
    return tar


def _headers(tar: bytes) -> Iterator[tarfile.TarInfo]:
    with tarfile.TarFile(fileobj=io.BytesIO(tar), encoding="utf-8", errors="strict") as reader:
        while (header := reader.next()) is not None:
            if header.size < 0:  # or the next header would be looked for further back, for ever
                raise tarfile.HeaderError
            yield header


def _tar(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _point(name: str) -> str | None:
    """The decision point of a file of rules; None of what belongs to no point."""
    found = _OF_POINT.match(name)
    return None if found is None else found[1]


def _refused(name: str, message: str) -> GatherError:
    return GatherError(message, remedy=_AGAIN, where=Location(name))

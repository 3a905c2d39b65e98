"""Policy archives in memory: packed in one way only, read within bounds, named by the digest of their content.

What is read is packed again and compared, so nothing may hide in an archive: no link or device, no
name that is there twice or leaves it, no header of another kind, no byte after the end. The
revision is computed from the content whenever an archive is taken from a disk; what a manifest
states is compared with it, never believed.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from engine.canonical import canonical, digest, parse
from engine.errors import GatherError, Location
from engine.files import shown

MANIFEST, SIGNATURES = ".manifest", ".signatures.json"
PACKED_BYTES = 16 << 20
"""The largest archive as a file; one of ours has about 10 KiB."""
UNPACKED_BYTES = 64 << 20
"""The largest archive unpacked; the values of one document may have 32 MiB."""

_AGAIN = "get it again from whoever built it: only archives of `engine policy build` are read"


def pack(files: Mapping[str, bytes]) -> bytes:
    """The archive of these files: sorted names, no times, no owners."""
    gzip = zlib.compressobj(9, zlib.DEFLATED, 31)
    return gzip.compress(_tar(files)) + gzip.flush()


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive by name; `name` is for messages. Raises GatherError."""
    tar = _inflated(data, name)
    files: dict[str, bytes] = {}
    try:
        for header in _headers(tar):
            title = shown(header.name)
            if header.type != tarfile.REGTYPE or header.sparse is not None:
                raise _refused(name, f"the member `{title}` is a link, a folder, a device or of another odd kind")
            if "\\" in header.name or not {"", ".", ".."}.isdisjoint(header.name.split("/")):
                raise _refused(name, f"the member `{title}` has a name that leaves the archive")
            if header.name in files:
                raise _refused(name, f"the member `{title}` is there twice")
            files[header.name] = tar[header.offset_data : header.offset_data + header.size]
        same = _tar(files) == tar
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise _refused(name, "it is no tar archive, or is damaged") from error
    if not same:
        raise _refused(name, "it is packed in another way than the engine packs, or is damaged")
    return files


def sealed(files: Mapping[str, bytes], stated: Mapping[str, Any]) -> tuple[bytes, str]:
    """`.manifest` for these files, with what it states besides, and the revision in it: the digest of all else."""
    names = {name: digest(data) for name, data in files.items()}
    revision = digest(canonical({"files": names, "manifest": stated}))
    return canonical({**stated, "revision": revision}), revision


def revision(files: Mapping[str, bytes], name: str) -> str:
    """The digest of what an archive holds, signatures aside. Raises GatherError unless its manifest states it."""
    content = {one: data for one, data in files.items() if one not in {MANIFEST, SIGNATURES}}
    try:
        stated = parse(files.get(MANIFEST, b""))
        stated.pop("revision")
        manifest, found = sealed(content, stated)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise _refused(name, "its manifest is no manifest of ours") from error
    if manifest != files[MANIFEST]:
        raise _refused(name, "its revision is not the digest of its content")
    return found


def _inflated(data: bytes, name: str) -> bytes:
    inflate = zlib.decompressobj(31)
    try:
        tar = inflate.decompress(data, UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise _refused(name, "it is not gzip, or is damaged") from error
    if len(tar) > UNPACKED_BYTES:
        raise _refused(name, f"it unpacks to more than {UNPACKED_BYTES} bytes")
    if not inflate.eof:
        raise _refused(name, "it is cut off: it ends in the middle")
    if inflate.unused_data:
        raise _refused(name, "it holds more data after its end")
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


def _refused(name: str, message: str) -> GatherError:
    return GatherError(message, remedy=_AGAIN, where=Location(name))

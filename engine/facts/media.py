"""Facts about submitted media: readability, size, digest and detected types.

Types are detected from bytes: by signature, or as text if everything is UTF-8. A container such as MP4 has audio or
video, so it has the types of both; some types have several names. Any other content has no type and is refused,
whatever type is declared.
"""

from __future__ import annotations

import binascii
import codecs
import io
import re
from base64 import b64encode
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from engine.documents.canonical import digest
from engine.errors import GatherError
from engine.facts.archives.members import Read, hashed
from engine.facts.archives.walking import Target, find, open_folder
from engine.settings import ReadLimits

HEAD = 16
"""Number of bytes that covers every signature."""

TEXT = "text/*"
"""Stands for every type of plain text: a text does not show which one it is."""

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), ("image/png", "image/x-png")),
    (re.compile(rb"\xff\xd8\xff"), ("image/jpeg", "image/jpg", "image/pjpeg")),
    (re.compile(rb"GIF8[79]a"), ("image/gif",)),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), ("image/webp",)),
    (re.compile(rb"RIFF.{4}WAVE", re.DOTALL), ("audio/wav", "audio/x-wav", "audio/vnd.wave")),
    (re.compile(rb"%PDF-"), ("application/pdf", "application/x-pdf")),
    (re.compile(rb"fLaC"), ("audio/flac", "audio/x-flac")),
    (re.compile(rb"OggS"), ("audio/ogg", "video/ogg")),
    (re.compile(rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]"), ("audio/mpeg", "audio/mp3", "audio/x-mp3")),
    (re.compile(rb".{4}ftyp(?!avi[fs]|he[iv]|mif1|msf1)", re.DOTALL), ("audio/mp4", "audio/x-m4a", "video/mp4")),
    (re.compile(rb"\x1a\x45\xdf\xa3"), ("audio/webm", "video/webm")),
)
_CONTROLS = bytes([*range(9), *range(14, 32), 127])
"""In UTF-8, these bytes are these characters only."""


class Sniffer:
    """Reads a stream for another reader, and knows at its end which types the content has."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = True

    def read(self, size: int, /) -> bytes:
        """The bytes of the stream."""
        data = self._read(size)
        self._head = (self._head + data[:HEAD])[:HEAD]
        if self._text:
            try:
                self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                self._text = False
            else:
                self._text = len(data.translate(None, _CONTROLS)) == len(data)
        return data

    def types(self) -> tuple[str, ...]:
        """The types, after the stream was read to its end; none for a content of no known form."""
        for signature, types in _SIGNATURES:
            if signature.match(self._head):
                return types
        return (TEXT,) if self._text and self._head else ()


@dataclass(frozen=True, slots=True)
class Content:
    """A content as it is; its size in bytes, its digest and the types it has only where it can be read.

    Of a file: whether it is `inside` of the root, which it is without one, and how many `names` (hard links) it has.
    """

    readable: bool
    bytes: int | None = None
    digest: str | None = None
    types: tuple[str, ...] | None = None
    inside: bool | None = None
    names: int | None = None


_UNREADABLE = Content(readable=False)


def base64_content(text: str) -> Content:
    """The content of a base64 text in its only spelling (RFC 4648, section 4): padded, without line breaks."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return _UNREADABLE
    if b64encode(data).decode("ascii") != text:
        return _UNREADABLE
    sniffer = Sniffer(io.BytesIO(data).read)
    while sniffer.read(len(data) or 1):
        pass
    return Content(readable=True, bytes=len(data), digest=digest(data), types=sniffer.types())


def file_content(path: str, root: Path | None, limits: ReadLimits) -> Content:
    """The content of a regular file, below the root where there is one; no link on it leads out of the root.

    Raises GatherError, without a root for a folder that cannot be opened, and for a file beyond
    `limits.content_bytes`.
    """
    found, inside = _found(path, root)
    if found is None or found.file is None:
        return Content(readable=False, inside=inside)
    with found.file as file:
        sniffer = Sniffer(file.read)
        sha256, size = hashed(sniffer.read, path, path, limits)
    return Content(
        readable=True,
        bytes=size,
        digest=f"sha256:{sha256}",
        types=sniffer.types(),
        inside=True,
        names=found.names,
    )


def _found(path: str, root: Path | None) -> tuple[Target | None, bool]:
    """What is at the path, and whether that is below the root."""
    if root is None:
        parent, _, name = path.rpartition("/")
        parent = parent or ("/" if path.startswith("/") else ".")
    elif path.startswith("/") or ".." in path.split("/"):
        return None, False
    else:
        parent, name = ".", path
    try:
        folder = open_folder(parent, root)
    except GatherError:
        if root is None:
            raise
        return None, False  # a server without a root: no file is inside of it
    with closing(folder):
        found = find(folder, name) if name else None
    return found, root is None or found is None or not found.escapes

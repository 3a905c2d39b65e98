"""Which media types a content has by its bytes: those of its signature, or of text that is all UTF-8.

A container such as MP4 holds audio or video, so it has the types of both. A content of any other form has no type:
it is refused, whatever is said about it.
"""

from __future__ import annotations

import codecs
import re
from typing import Protocol

HEAD = 16
"""Bytes that hold every signature."""

TEXT = "text/*"
"""Stands for every type of plain text: nothing in a text says which one it is."""

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), ("image/png",)),
    (re.compile(rb"\xff\xd8\xff"), ("image/jpeg",)),
    (re.compile(rb"GIF8[79]a"), ("image/gif",)),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), ("image/webp",)),
    (re.compile(rb"RIFF.{4}WAVE", re.DOTALL), ("audio/wav",)),
    (re.compile(rb"%PDF-"), ("application/pdf",)),
    (re.compile(rb"fLaC"), ("audio/flac",)),
    (re.compile(rb"OggS"), ("audio/ogg", "video/ogg")),
    (re.compile(rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]"), ("audio/mpeg",)),
    (re.compile(rb".{4}ftyp", re.DOTALL), ("audio/mp4", "video/mp4")),
    (re.compile(rb"\x1a\x45\xdf\xa3"), ("audio/webm", "video/webm")),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


class Reads(Protocol):
    """What is read from."""

    def read(self, size: int, /) -> bytes:
        """So many bytes at most, and none at the end."""
        ...


class Sniffer:
    """Reads a stream for another reader, and knows at its end which types the content has."""

    def __init__(self, stream: Reads) -> None:
        self._stream = stream
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = True

    def read(self, size: int, /) -> bytes:
        """What the stream gives."""
        data = self._stream.read(size)
        self._head = (self._head + data[:HEAD])[:HEAD]
        if self._text:
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                self._text = False
            else:
                self._text = _CONTROLS.search(text) is None
        return data

    def types(self) -> tuple[str, ...]:
        """The types, after the stream was read to its end; none for a content of no known form."""
        for signature, types in _SIGNATURES:
            if signature.match(self._head):
                return types
        return (TEXT,) if self._text and self._head else ()

"""Recognizes text that was taken from another one: digests of blocks of words.

A source is cut into blocks of `WORDS` words, one after the other. Another text is compared at every position, so that
any `2 * WORDS - 1` words in a row of a source contain one of its blocks. Case and punctuation do not count.
"""

from __future__ import annotations

import codecs
import json
import struct
from collections.abc import Container, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Protocol

from engine.documents.strict_json import read_strict
from engine.facts.text.content import keys, texts
from engine.facts.text.quotes import words_of

WORDS = 8
"""Words of a block: fewer are too often the same by chance."""

_PIECE = 1 << 20
_DOCUMENT = 16 << 20
"""Bytes of a JSON document that is read as one; a larger one is read as text, keys included."""

_EMPTY = blake2b(digest_size=8)
"""Copied for each digest: much cheaper than a new one."""


class Stream(Protocol):
    """Bytes that are read in pieces."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


def blocks_of(words: Iterable[str]) -> Iterator[int]:
    """The blocks of a source; a source of fewer words than a block is one."""
    block: list[str] = []
    first = True
    for word in words:
        block.append(word)
        if len(block) == WORDS:
            yield from _digests([_joined(block)])
            block, first = [], False
    if first and block:
        yield from _digests([_joined(block)])


def windows_of(words: tuple[str, ...]) -> tuple[int, ...]:
    """Every run of words of a text that may be a block of a source, in order."""
    each = [word.encode("utf-8", "surrogatepass") for word in words]
    text = b" ".join(each)
    starts = list(accumulate((len(word) + 1 for word in each), initial=0))
    ends = starts[WORDS:] or starts[-1:] if words else ()
    return _digests(text[start : end - 1] for start, end in zip(starts, ends, strict=False))


def apart_from(known: Container[int], windows: Sequence[int]) -> tuple[int, ...]:
    """The windows of a text with a word that is in none of the known blocks, in order."""
    found, reach, bare = [], 0, -1
    for word in range(len(windows) + WORDS - 1):
        if word < len(windows) and windows[word] in known:
            reach = word + WORDS
        if word >= reach:
            bare = word
        if 0 <= (start := word - WORDS + 1) <= bare:
            found.append(windows[start])
    return tuple(found)


def content_words(content: Any) -> tuple[str, ...]:
    """The words of the texts of JSON content."""
    return tuple(word for text in _texts(content) for word in words_of(text))


def _texts(content: Any) -> Iterator[str]:
    """The texts of JSON content, then its keys that are as long as a block, such as questions above their answers."""
    yield from (text for _, text in texts(content))
    yield from (key for key in keys(content) if len(key) >= WORDS and len(words_of(key)) >= WORDS)


def source_texts(stream: Stream) -> Iterator[str]:
    """The texts of a source, in pieces: the strings of JSON and of lines of JSON, else the lines themselves.

    What is no UTF-8, and no UTF-16 with its byte order mark, is left out.
    """
    start = stream.read(_DOCUMENT + 1).removeprefix(codecs.BOM_UTF8)
    whole = _json(start) if len(start) <= _DOCUMENT else None
    if whole is not None:
        yield from whole
        return
    for line in _lines(start, stream):
        found = _json(line)
        yield from (line.decode("utf-8", "ignore"),) if found is None else found


def _lines(start: bytes, stream: Stream) -> Iterator[bytes]:
    """Lines; one that is longer than a piece is cut between words where it has any."""
    held = b""
    for chunk in _chunks(start, stream):
        *lines, held = (held + chunk).split(b"\n")
        yield from lines
        if len(held) > _PIECE:
            piece, _, rest = held.rpartition(b" ")
            yield piece or held
            held = rest if piece else b""
    yield held


def _chunks(start: bytes, stream: Stream) -> Iterator[bytes]:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoded = codecs.iterdecode(_pieces(start, stream), "utf-16", "ignore")
        yield from codecs.iterencode(decoded, "utf-8", "ignore")
    else:
        yield from _pieces(start, stream)


def _pieces(start: bytes, stream: Stream) -> Iterator[bytes]:
    yield from (start[at : at + _PIECE] for at in range(0, len(start), _PIECE))
    while piece := stream.read(_PIECE):
        yield piece


def _json(data: bytes) -> list[str] | None:
    """The strings of a JSON object or list; None for anything else, also what readers disagree on."""
    if not data.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return [*_texts(read_strict(data.decode(json.detect_encoding(data))))]
    except ValueError:
        return None


def _joined(words: Iterable[str]) -> bytes:
    return " ".join(words).encode("utf-8", "surrogatepass")


def _digests(texts: Iterable[bytes]) -> tuple[int, ...]:
    found = []
    for text in texts:
        digest = _EMPTY.copy()
        digest.update(text)
        found.append(digest.digest())
    return struct.unpack(f">{len(found)}q", b"".join(found))

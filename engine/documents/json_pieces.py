"""Whether JSON text has one reading, looked at piece by piece: it takes memory for a piece, however long the text is.

A piece is a run of whole elements, or members, of one container. A container that is longer than a piece is entered,
and of its keys only hashes are kept. A fast reader proves what it can of a piece; `read_strict` decides on the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from engine.documents.canonical import compact, parse
from engine.documents.strict_json import (
    LEVELS,
    MAX_SAFE_INTEGER,
    AmbiguousJsonError,
    NotJsonError,
    RepeatedKeyError,
    deeper_than,
    read_strict,
    too_deep,
    unpaired,
)

_PIECES, _LEAST = 128, 4 << 10
"""Pieces of a text, and bytes of the smallest piece. Reading one takes up to 90 times as much memory."""

_LIST = ord("[")
_CLOSERS = {_LIST: ord("]"), ord("{"): ord("}")}
_SPACE = re.compile(rb"[ \t\n\r]*+")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_PAIRED = re.compile(
    rb'"(?:[^"\\]++|\\[^u]|\\u(?![dD][89a-fA-F])....|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)*+"', re.DOTALL
)
"""A string without half a surrogate pair, if it is one at all."""

_WORD = re.compile(rb"[-+.0-9A-Za-z]++")
_ZEROS = bytes.maketrans(b"123456789E", b"000000000e")
_MANY = b"0" * 16
_UNUSUAL = re.compile(rb"(?<![.0])0{16}|0e(?!-)")
"""Where a number may be out of range, in text whose digits are all zero."""

_ESCAPED_COLON = re.compile(rb"\\u003[aA]")


def check_json(data: bytearray, piece: int | None = None) -> None:
    """Raises NotJsonError or AmbiguousJsonError where `read_strict` would for safe integers; the text is UTF-8."""
    _Check(data, max(_LEAST, len(data) // _PIECES) if piece is None else piece).run()


class _Check:
    """One text, and how far it was read: to the beginning of a member of the innermost container that was entered."""

    def __init__(self, data: bytearray, piece: int) -> None:
        self._data, self._piece = data, piece
        self._at = 0
        self._fresh = False
        """The container was just entered, and may be empty."""
        self._around: list[tuple[int, _Keys]] = []
        """The containers that were entered: their brackets, and the keys that they have so far."""

    def run(self) -> None:
        if self._next() is not None and len(self._data) - self._at <= self._piece:
            _strict(self._data)
            return
        self._value()
        while self._around:
            if not self._similar_elements():
                self._members()
        if self._at < len(self._data):
            raise NotJsonError

    def _similar_elements(self) -> bool:
        """Read to the last comma of the piece that looks like one between elements; False if it is none."""
        mark, start = self._next(), self._at
        if mark is None or self._around[-1][0] != _LIST:
            return False
        last = bytes([_CLOSERS[mark]]) if mark in _CLOSERS else b""
        comma = self._data.rfind(last + b",", start, start + self._piece) + len(last)
        if comma <= start:
            return False
        try:
            _usual(b"[%b]" % self._part(start, comma), self._levels())
        except ValueError:
            return False
        self._at, self._fresh = comma + 1, False
        return True

    def _members(self) -> None:
        """Read what is whole in the next piece, and enter what is not."""
        start = self._at
        ends, opened = self._layout()
        for level, end in enumerate(ends):
            if end is not None:
                self._whole(end)
            if level < len(opened):
                self._key()
                if self._at != opened[level]:
                    raise NotJsonError
                self._enter()
        if self._at == start:
            self._key()
            self._value()

    def _layout(self) -> tuple[list[int | None], list[int]]:
        """Where the last whole member of the next piece ends: here, and in each container that is left open."""
        ends: list[int | None] = [None]
        opened: list[int] = []
        for token in _TOKEN.finditer(self._data, self._at, self._at + self._piece):
            place, mark = token.start(), self._data[token.start()]
            if mark in _CLOSERS:
                opened.append(place)
                ends.append(None)
            elif mark == ord(","):
                ends[-1] = place
            elif mark != ord('"'):
                if not opened:
                    return [place], opened
                opened.pop()
                ends.pop()
            elif token.end() == place + 1:  # a string that ends behind the piece
                break
        return ends, opened

    def _whole(self, end: int) -> None:
        """Read the members before the separator at `end`, and pass it."""
        bracket, keys = self._around[-1]
        text = b"%c%b%c" % (bracket, self._part(self._at, end), _CLOSERS[bracket])
        try:
            members = _usual(text, self._levels())
        except ValueError:
            if deeper_than(text, self._levels()):
                raise too_deep(LEVELS) from None
            members = _strict(text)
        if not members and not (self._fresh and self._data[end] == _CLOSERS[bracket]):
            raise NotJsonError
        if isinstance(members, dict):
            for key in members:
                keys.add(key)
        self._at = end
        self._separator()

    def _separator(self) -> None:
        """Pass the comma behind a member, or the end of its container and what is behind that."""
        while self._around:
            mark = self._next()
            self._at += 1
            if mark == ord(","):
                self._fresh = False
                return
            if mark != _CLOSERS[self._around.pop()[0]]:
                raise NotJsonError
        self._next()

    def _key(self) -> None:
        """Pass the key of a member that is not read as a whole."""
        mark, (bracket, keys) = self._next(), self._around[-1]
        if bracket == _LIST:
            return
        text = _TOKEN.match(self._data, self._at, self._at + self._piece)
        if mark != ord('"') or text is None:
            raise NotJsonError
        if text[0] == b'"':
            raise AmbiguousJsonError(f"has a key of more than {self._piece:,} bytes", "shorten it")
        keys.add(_strict(text[0]))
        self._at = text.end()
        if self._next() != ord(":"):
            raise NotJsonError
        self._at += 1
        self._next()

    def _value(self) -> None:
        """Enter a container, or pass a value whose end is not in the piece."""
        mark = self._next()
        if mark in _CLOSERS:
            self._enter()
            return
        form = _STRING if mark == ord('"') else _WORD
        text = form.match(self._data, self._at, len(self._data) if form is _STRING else self._at + self._piece)
        if text is None:
            raise NotJsonError
        if form is _WORD:
            _strict(text[0])
        elif _PAIRED.match(self._data, self._at) is None:
            raise unpaired()
        self._at = text.end()
        self._separator()

    def _enter(self) -> None:
        if self._levels() == 0:
            raise too_deep(LEVELS)
        self._around.append((self._data[self._at], _Keys()))
        self._at += 1
        self._fresh = True

    def _levels(self) -> int:
        """Levels that a run of members may have, the container around it among them."""
        return LEVELS - len(self._around) + bool(self._around)

    def _part(self, start: int, end: int) -> bytes:
        return bytes(memoryview(self._data)[start:end])

    def _next(self) -> int | None:
        """Pass white space; the byte behind it, None at the end."""
        space = _SPACE.match(self._data, self._at)
        self._at = self._at if space is None else space.end()
        return self._data[self._at] if self._at < len(self._data) else None


class _Keys:
    """The keys of one object, each as 52 bits of its hash: two that share them would refuse, and never pass."""

    def __init__(self) -> None:
        self._seen: defaultdict[int, bytearray] = defaultdict(bytearray)

    def add(self, key: str) -> None:
        number = hash(key) & ((1 << 52) - 1)
        rest, seen = (number >> 12).to_bytes(5, "big"), self._seen[number & 0xFFF]
        if rest in seen:
            raise RepeatedKeyError(key)
        seen += rest


def _usual(text: bytes, levels: int) -> Any:
    """The value of JSON text without unusual numbers. Raises ValueError also for text that only may be ambiguous.

    A key that is there twice is lost, and with it a colon.
    """
    zeros = text.translate(_ZEROS)
    if (_MANY in zeros or b"0e" in zeros) and _UNUSUAL.search(zeros):
        raise ValueError
    value = parse(text)
    colons = _ESCAPED_COLON.sub(b":", text.replace(rb"\\", b"")) if rb"\u" in text else text
    if colons.count(b":") != compact(value).count(b":") or deeper_than(text, levels):
        raise ValueError
    return value


def _strict(text: bytes | bytearray) -> Any:
    return read_strict(str(text, "utf-8"), largest=MAX_SAFE_INTEGER)

"""The places of a text where a pattern can match at all, found by plain search.

Each pattern of secrets needs one of a few words, and nearly all cannot match across a line end. So they are tried only
at such words, or on lines with one. That gives the same matches as the whole text, many times faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import AnyStr

Span = tuple[int, int]

RANDOM_RUN = 33
"""Random-looking text counts from here on: shorter runs are too often ids."""

_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-"
_AROUND_RUNS = b"\t\n\r \"'<>"
"""What is in no run, path, URL or digest, and decides on none."""
_RUNS = bytes(65 if byte in _RUN_CHARACTERS else 32 if byte in _AROUND_RUNS else 120 for byte in range(256))

Matches = Callable[["Lines"], Iterable[re.Match[str]]]


class Lines:
    """A text that is searched for words and runs; `low` is the text as `folded`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = folded(text)

    def places(self, words: tuple[bytes, ...]) -> list[int]:
        """Where one of these words in lower case begins, in order; patterns that ignore case match no other one."""
        low = self.low
        return sorted(place for word in words if word in low for place in _places(low, word))

    def having(self, words: tuple[bytes, ...]) -> Iterator[Span]:
        """The lines that have one of these words in lower case."""
        lines: dict[int, int] = {}
        for word in words:
            at = self.low.find(word)
            while at >= 0:
                start, end = line_at(self.low, at, b"\n")
                lines[start] = end
                at = self.low.find(word, end)
        yield from lines.items()

    def with_runs(self) -> Iterator[Span]:
        """Pieces with a run of `RANDOM_RUN` characters of base64, and what is around it without blanks and quotes."""
        return pieces_with_runs(self.text, _RUNS, RANDOM_RUN)


def pieces_with_runs(text: str, shapes: bytes, least: int) -> Iterator[Span]:
    """Pieces of a text with so many `A` in a row and no blank, when each character is replaced by its shape."""
    shape, run = text.encode("ascii", "replace").translate(shapes), b"A" * least
    at = shape.find(run)
    while at >= 0:
        start, end = line_at(shape, at, b" ")
        yield start, end
        at = shape.find(run, end)


def _places(text: bytes, word: bytes) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def line_at(text: AnyStr, at: int, mark: AnyStr) -> Span:
    """Where the line with this place begins and ends; lines end with the mark."""
    end = text.find(mark, at)
    return text.rfind(mark, 0, at) + 1, len(text) if end < 0 else end


def beginning(
    pattern: re.Pattern[str], words: tuple[bytes, ...], before: int = 0, sign: re.Pattern[str] | None = None
) -> Matches:
    """All matches of a pattern that begins with one of these words, or at most so many characters before it.

    `sign` matches, at the word, whatever the pattern may match from there on, and costs less.
    """

    def matches(lines: Lines) -> Iterable[re.Match[str]]:
        places = lines.places(words)
        return found(lines.text, places) if places else ()

    def found(text: str, places: list[int]) -> Iterator[re.Match[str]]:
        tried = 0
        for place in places:
            if sign is None or sign.match(text, place):
                for at in range(max(tried, place - before), place + 1):
                    if (match := pattern.match(text, at)) is not None:
                        yield match
                        tried = match.end()
                        break
                tried = max(tried, place + 1)

    return matches


def in_lines(pattern: re.Pattern[str], words: tuple[bytes, ...], sign: str) -> Matches:
    """The matches of a pattern in the lines that have one of these words, and this sign."""

    def matches(lines: Lines) -> Iterator[re.Match[str]]:
        for start, end in lines.having(words):
            if lines.text.find(sign, start, end) >= 0:
                yield from pattern.finditer(lines.text, start, end)

    return matches


def folded(text: str) -> bytes:
    """The text in ASCII and lower case, one byte a character: letters as patterns that ignore case see them.

    `?` stands for each other character beyond ASCII.
    """
    if not text.isascii():
        for letter, same in (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"), ("\u212a", "k")):
            text = text.replace(letter, same)
    return text.encode("ascii", "replace").lower()

"""Other readings of a text, and where each of their characters is in the original.

A text as people see it has no invisible characters. JSON that is inside of a text has the characters that its escapes
stand for: behind the escape of a line end begins another word.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

INVISIBLE = re.compile(
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class VisibleText:
    """A text as people see it, and where its characters are in the original."""

    def __init__(self, original: str) -> None:
        self.text = original
        self._before: list[int] = []  # of each invisible character, how many visible ones are before it
        if not original.isascii() and INVISIBLE.search(original) is not None:
            self._before = [match.start() - number for number, match in enumerate(INVISIBLE.finditer(original))]
            self.text = INVISIBLE.sub("", original)

    def spans(self, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Spans of the seen text in the original, with what is hidden inside of them."""
        return ((self._place(start), self._place(end - 1) + 1) for start, end in found)

    def _place(self, at: int) -> int:
        return at + bisect_right(self._before, at)


_ESCAPE = re.compile(r'(?<!\\)\\++(?:u([0-9a-fA-F]{4})|(["/bfnrt]))')
"""One escape, however often it was escaped itself."""

_MEANINGS = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": "\t"}
_SURROGATES = range(0xD800, 0xE000)


class UnescapedText:
    """A text with what the escapes of JSON in it stand for, and where its characters are in the original."""

    def __init__(self, original: str) -> None:
        self._original = self.text = original
        if "\\" in original:
            pieces = _ESCAPE.split(original)
            pieces[1::3] = [_meaning(*escape) for escape in zip(pieces[1::3], pieces[2::3], strict=True)]
            del pieces[2::3]
            self.text = "".join(pieces)

    def spans(self, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Spans of the text in the original; escapes are in them as a whole."""
        return ((self._place(start), self._place(end)) for start, end in found)

    def _place(self, at: int) -> int:
        return at + bisect_right(self._before, at)

    @cached_property
    def _before(self) -> array[int]:
        """Of each character that an escape is longer, how many of the text end before it."""
        before = array("Q")
        for escape in _ESCAPE.finditer(self._original):
            before.extend([escape.start() - len(before) + 1] * (len(escape[0]) - 1))
        return before


def _meaning(code: str | None, letter: str) -> str:
    if code is None:
        return _MEANINGS.get(letter, letter)
    number = int(code, 16)
    return " " if number in _SURROGATES else chr(number)


_ASCII_OF: dict[int, str] = {
    **{0xFF00 + code: chr(0x20 + code) for code in range(1, 0x5F)},
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((*range(0x2010, 0x2014), 0x2212), "-"),
}
"""The characters of ASCII that full-width ones, spaces and dashes look like."""
_LIKE_ASCII = re.compile(f"[{''.join(map(chr, _ASCII_OF))}]+")
_Placed = Callable[[Iterable[tuple[int, int]]], Iterator[tuple[int, int]]]


def readings(text: str) -> Iterator[tuple[str, _Placed]]:
    """A text as it is, as people see it, and without escapes, with what places spans of the reading in the text.

    A hidden character or an escape may divide a secret from the word before it, or the secret itself.
    """
    yield from _visible(text)
    meant = UnescapedText(text)
    if meant.text != text:
        for reading, placed in _visible(meant.text):
            yield reading, partial(_spans_of, meant, placed)


def _spans_of(meant: UnescapedText, placed: _Placed, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return meant.spans(placed(found))


def _visible(text: str) -> Iterator[tuple[str, _Placed]]:
    yield text, iter
    if text.isascii():
        return
    plain = _LIKE_ASCII.sub(lambda run: run[0].translate(_ASCII_OF), text)
    if plain != text:
        yield plain, iter
    seen = VisibleText(plain)
    if seen.text != plain:
        yield seen.text, seen.spans

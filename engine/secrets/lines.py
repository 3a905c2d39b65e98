"""The lines of a text in which a pattern can match at all, found by plain search.

Nearly all patterns of secrets cannot match across a line end, and each needs one of a few words. So only lines with
such a word are matched, which gives the same matches as the whole text, many times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.secrets.forms import Span

RANDOM_RUN = 33
"""Random-looking text counts from here on: shorter runs are too often ids."""

_RUN = b"A" * RANDOM_RUN
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-"
_RUNS = bytes(65 if byte in _RUN_CHARACTERS else 32 for byte in range(256))

_SEED_GAPS = b" " * 11
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_GAPS = bytes(32 if byte in b"\t\n\v\f\r\x1c\x1d\x1e\x1f ," or byte > 127 else 120 for byte in range(256))  # noqa: PLR2004
"""Blanks and commas; beyond ASCII, each byte may be one of a blank."""

Find = Callable[[str], Iterator[Span]]


class Lines:
    """A text, and its lines with the place where each starts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded: str | None = None
        self._lines: list[tuple[int, str, str]] | None = None

    def having(self, words: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """The lines that have one of these words in lower case; patterns that ignore case match no other line."""
        if self._folded is None:
            self._folded = folded(self.text)
        if not any(word in self._folded for word in words):
            return
        for start, line, low in self._each(self._folded):
            if any(word in low for word in words):
                yield start, line

    def with_runs(self) -> Iterator[tuple[int, str]]:
        """The lines that have a run of `RANDOM_RUN` characters of base64."""
        if len(self.text) >= RANDOM_RUN and _has_run(self.text):
            at = 0
            for line in self.text.split("\n"):
                if len(line) >= RANDOM_RUN and _has_run(line):
                    yield at, line
                at += len(line) + 1

    def may_be_seed(self) -> bool:
        """Whether twelve words follow each other with nothing but blanks and commas between them."""
        if len(self.text) < 4 * len(_SEED_GAPS):
            return False
        return _SEED_GAPS in self.text.encode("utf-8", "surrogatepass").translate(_GAPS, _LETTERS)

    def _each(self, low: str) -> list[tuple[int, str, str]]:
        if self._lines is None:
            self._lines, at = [], 0
            for line, small in zip(self.text.split("\n"), low.split("\n"), strict=True):
                self._lines.append((at, line, small))
                at += len(line) + 1
        return self._lines


def in_lines(words: tuple[str, ...], find: Find, signs: tuple[str, ...] = ("",)) -> Callable[[Lines], Iterator[Span]]:
    """What `find` finds in lines that have one of these words, and one of these signs."""

    def found(lines: Lines) -> Iterator[Span]:
        for start, line in lines.having(words):
            if any(sign in line for sign in signs):
                yield from ((start + first, start + end) for first, end in find(line))

    return found


def folded(text: str) -> str:
    """The text in lower case, as patterns that ignore case see its ASCII letters; some others count as those."""
    return text.lower() if text.isascii() else text.casefold().replace("\u0131", "i").replace("\u0307", "")


def _has_run(text: str) -> bool:
    return _RUN in text.encode("utf-8", "surrogatepass").translate(_RUNS)

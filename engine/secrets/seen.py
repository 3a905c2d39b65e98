"""A text as people see it: without invisible characters, and where each of the others is in the original."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

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

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of the seen text in the original, with what is hidden inside of it."""
        if not self._before or start >= end:
            return start, end
        return self._place(start), self._place(end - 1) + 1

    def spans(self, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same for several spans."""
        return (self.span(*one) for one in found)

    def _place(self, at: int) -> int:
        return at + bisect_right(self._before, at)

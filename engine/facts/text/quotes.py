"""How much of one text another one repeats word for word."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text without case and punctuation."""
    return tuple(_WORD.findall(text.casefold()))


def longest_quote(text: tuple[str, ...], source: tuple[str, ...]) -> int:
    """Number of words of the longest run of `source` that `text` contains. Takes n log n steps."""
    low, high = 0, min(len(text), len(source))
    while low < high:
        middle = (low + high + 1) // 2
        if _runs(text, middle) & _runs(source, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _runs(words: tuple[str, ...], length: int) -> set[int]:
    """The hashes of all runs of this length."""
    return {hash(words[at : at + length]) for at in range(len(words) - length + 1)}

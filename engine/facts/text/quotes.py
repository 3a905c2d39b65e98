"""How much of one text another one repeats word for word."""

from __future__ import annotations

import re
import unicodedata

from engine.secrets.seen import Seen

_WITHOUT_SPACES = (
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
"""Scripts that put no spaces between words, such as Thai, Japanese and Chinese."""

_WORD = re.compile(rf"[^\W{_WITHOUT_SPACES}]+|\w")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text without case, punctuation, hidden characters and wide letters.

    In a script without spaces, each letter is a word.
    """
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", Seen(text).text).casefold()))


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

"""How much of one text another one repeats word for word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from engine.secrets.seen import UnescapedText, VisibleText

_WITHOUT_SPACES = (
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
"""Scripts that put no spaces between words, such as Thai, Japanese and Chinese."""

_WORD = re.compile(rf"[^\W_{_WITHOUT_SPACES}]+|[^\W_]")
_BLANKS = {code: letter if (letter := chr(code)).isalnum() else " " for code in range(128)}


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text without case, punctuation, hidden characters and wide letters.

    In a script without spaces, each letter is a word.
    """
    folded = unicodedata.normalize("NFKC", VisibleText(UnescapedText(text).text).text).casefold()
    return tuple(ascii_words(folded) if folded.isascii() else _WORD.findall(folded))


def ascii_words(text: str) -> list[str]:
    """The words of a text in ASCII."""
    return text.translate(_BLANKS).split()


class Runs:
    """Every run of words of a text, as the states of a suffix automaton: made and searched in linear time."""

    def __init__(self, words: Sequence[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._shorter = [-1]
        self._length = [0]
        last = 0
        for word in words:
            last = self._extended(last, word)

    def longest_in(self, source: Sequence[str]) -> int:
        """Number of words of the longest run of `source` that the text contains."""
        longest = length = state = 0
        for word in source:
            while state and word not in self._next[state]:
                state = self._shorter[state]
                length = self._length[state]
            if word in self._next[state]:
                state, length = self._next[state][word], length + 1
                longest = max(longest, length)
        return longest

    def _extended(self, last: int, word: str) -> int:
        added = self._state({}, 0, self._length[last] + 1)
        at = last
        while at >= 0 and word not in self._next[at]:
            self._next[at][word] = added
            at = self._shorter[at]
        if at >= 0:
            self._shorter[added] = self._split(at, word)
        return added

    def _split(self, at: int, word: str) -> int:
        """The state of the runs that end with `word` behind those of `at`, and of no longer ones."""
        found, length = self._next[at][word], self._length[at] + 1
        if self._length[found] == length:
            return found
        own = self._state(dict(self._next[found]), self._shorter[found], length)
        self._shorter[found] = own
        while at >= 0 and self._next[at].get(word) == found:
            self._next[at][word] = own
            at = self._shorter[at]
        return own

    def _state(self, following: dict[str, int], shorter: int, length: int) -> int:
        self._next.append(following)
        self._shorter.append(shorter)
        self._length.append(length)
        return len(self._length) - 1

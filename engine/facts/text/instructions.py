"""Instructions to a model in a text that only informs: phrases and tokens, which are values of the policy.

Case, punctuation, line ends, wide letters and hidden characters do not count. What is found is a sign, never a proof:
no list is complete.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from engine.facts.text.quotes import ascii_words
from engine.secrets.seen import UnescapedText, VisibleText

_BREAK = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=False)
class Markers:
    """The markers of a policy. In a phrase, `a|b` is one word or another, and a word with `?` may be missing."""

    phrases: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> Self:
        """Those of policy/results.yaml."""
        stated: Mapping[str, Sequence[str]] = (values or {}).get("markers", {})
        return cls(tuple(stated.get("phrases", ())), tuple(one.casefold() for one in stated.get("tokens", ())))

    def count(self, text: str) -> int:
        """How many markers a text has."""
        folded = unicodedata.normalize("NFKC", VisibleText(UnescapedText(text).text).text).casefold()
        found = sum(token in folded for token in self.tokens)
        words = _words(folded)
        known, joined = set(words), f" {' '.join(words)} "
        if self._phrases is None or not any(one.found_in(known, joined) for one in self._each):
            return found
        return found + sum(1 for _ in self._phrases.finditer(joined))

    @cached_property
    def _phrases(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(_pattern, self.phrases))) if self.phrases else None

    @cached_property
    def _each(self) -> tuple[_Phrase, ...]:
        return tuple(map(_Phrase, self.phrases))


class _Phrase:
    """One phrase, looked for only in texts that have a choice of each of its words that may not be missing."""

    def __init__(self, phrase: str) -> None:
        self._pattern = re.compile(_pattern(phrase))
        self._needs = [set(word.split("|")) for word in phrase.split() if not word.endswith("?")]

    def found_in(self, words: set[str], joined: str) -> bool:
        """Whether it is in these words, which `joined` has in order."""
        return not any(map(words.isdisjoint, self._needs)) and self._pattern.search(joined) is not None


def _words(text: str) -> list[str]:
    return ascii_words(text) if text.isascii() else _BREAK.sub(" ", text).split()


def _pattern(phrase: str) -> str:
    """A phrase as a pattern over words that are separated by one blank each."""
    each = []
    for word in phrase.split():
        choices = "|".join(re.escape(choice) for choice in word.rstrip("?").split("|"))
        each.append(f"(?: (?:{choices})){'?' if word.endswith('?') else ''}")
    return "".join(each) + "(?= )"

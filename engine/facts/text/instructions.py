"""Instructions to a model in a text that only informs: phrases and tokens, which are values of the policy.

Case, punctuation, line ends, wide letters and hidden characters do not count. What is found is a sign, never a proof:
no list is complete.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

from engine.facts.text.hidden import Seen

_WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"[\W_]+")
_BLANKS = {code: letter if (letter := chr(code)).isalnum() else " " for code in range(128)}


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
        folded = unicodedata.normalize("NFKC", Seen(text).text).casefold()
        found = sum(token in folded for token in self.tokens)
        words = _words(folded)
        pattern = self._pattern(frozenset(words))
        return found if pattern is None else found + sum(1 for _ in pattern.finditer(f" {' '.join(words)} "))

    def _pattern(self, words: frozenset[str]) -> re.Pattern[str] | None:
        """The phrases that a text with these words may have, as one pattern; None if it has none of them."""
        return _any_of(tuple(phrase for phrase, needs in self._needs if all(map(words.intersection, needs))))

    @cached_property
    def _needs(self) -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
        """Each phrase, and the choices for each of its words that may not be missing."""
        return tuple(
            (phrase, tuple(frozenset(word.split("|")) for word in phrase.split() if not word.endswith("?")))
            for phrase in self.phrases
        )


def _words(text: str) -> list[str]:
    return text.translate(_BLANKS).split() if text.isascii() else _BREAK.sub(" ", text).split()


@lru_cache(maxsize=256)
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(_pattern, phrases))) if phrases else None


def _pattern(phrase: str) -> str:
    """A phrase as a pattern over words that are separated by one blank each."""
    each = []
    for word in phrase.split():
        choices = "|".join(re.escape(choice) for choice in word.rstrip("?").split("|"))
        each.append(f"(?: (?:{choices})){'?' if word.endswith('?') else ''}")
    return "".join(each) + "(?= )"

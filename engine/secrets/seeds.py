"""Seed phrases of wallets: words of the English list of BIP 39, or a dozen words that are named as one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from engine.secrets.finder import Finder
from engine.secrets.lines import Lines, Span
from engine.secrets.stand_ins import VERDICTS

SEED = re.compile(r"(?<![A-Za-z])[A-Za-z]{3,8}(?:[\s,]{1,3}[A-Za-z]{3,8}){11,}(?![A-Za-z])")
_LETTERS = re.compile(r"[A-Za-z]+")
_SEED_NAME = (
    r"(?i)(?:seed|mnemonic|recovery|backup)[ _-]?(?:phrase|words?|key)?[\"']?[ \t]{0,4}(?:[:=]|is)\s{0,4}[\"']?"
)
_SEED_NAMED = re.compile(rf"{_SEED_NAME}\Z")
_SEED_BEHIND_NAME = re.compile(rf"{_SEED_NAME}[a-z]{{3,8}}(?:[\s,]{{1,3}}[a-z]{{3,8}}){{11}}")
_SEED_NAMES = (b"seed", b"mnemonic", b"recovery", b"backup")
_SEED_WORDS = 12
"""The words of the shortest seed phrase (BIP 39)."""
_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_GAPS = bytes(32 if byte in b"\t\n\v\f\r\x1c\x1d\x1e\x1f ,?" else 120 for byte in range(256))
"""Blanks and commas; `?` may be a blank beyond ASCII."""
_SEED_CHARACTERS = 4 * _SEED_WORDS - 1
_SEED_REPEATED = 30
"""More words than the longest seed phrase and its neighbours: a longer text with few different words contains none."""
_SEED_DIFFERENT = 10
"""Number of different words in a longer text with a seed phrase; of twelve random words, hardly two are equal."""


def find_seeds(lines: Lines) -> Iterator[Span]:
    """Twelve words or more of the list of seed phrases, or fewer that are named as one."""
    text = lines.text
    for match in SEED.finditer(text) if _may_have_seeds(lines) else ():
        words = match[0].lower().replace(",", " ").split()
        named = _SEED_NAMED.search(text, max(0, match.start() - 40), match.start()) is not None
        if named and VERDICTS.isdisjoint(words[:_SEED_WORDS]):
            yield match.span()
            continue
        words_of_text = _LETTERS.finditer(text, match.start(), match.end())
        for listed, run in groupby(words_of_text, key=lambda word: word[0].lower() in _seed_words()):
            found = list(run)
            few = len(found) <= _SEED_REPEATED
            different = few or len({word[0].lower() for word in found}) >= _SEED_DIFFERENT
            if listed and len(found) >= _SEED_WORDS and different:
                yield found[0].start(), found[-1].end()


def _may_have_seeds(lines: Lines) -> bool:
    """Whether many listed words follow each other, the first and the last perhaps in quotes, or any behind a name."""
    if b" " * (_SEED_WORDS - 1) not in lines.low.translate(_GAPS, _SMALL_LETTERS):
        return False
    words = lines.text.lower().replace(",", " ").split()
    if b"\1" * (_SEED_WORDS - 2) in bytes(map(_seed_words().__contains__, words)):
        return True
    return any(_SEED_BEHIND_NAME.match(lines.text, place) for place in lines.places(_SEED_NAMES))


@cache
def _seed_words() -> frozenset[str]:
    """The English list of BIP 39."""
    return frozenset(Path(__file__).with_name("seed_words.txt").read_text(encoding="utf-8").split())


FINDER = Finder((), find_seeds, find_seeds, _SEED_CHARACTERS)

"""A search for one kind of secret or private data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.secrets.lines import Lines, Matches, Span

Find = Callable[[Lines], Iterable[Span]]


@dataclass(frozen=True, slots=True)
class Finder:
    """`all` finds what must not be written, `secrets` credentials alone: None for private data.

    It searches texts with one of these words (in lower case), or without words, texts of at least so many characters.
    """

    words: tuple[bytes, ...]
    all: Find
    secrets: Find | None
    least: int = 0


def same(words: tuple[bytes, ...], find: Find) -> Finder:
    """A search that finds credentials alone."""
    return Finder(words, find, find)


def spans(matches: Matches) -> Find:
    """Find the spans of all matches."""
    return lambda lines: map(re.Match.span, matches(lines))

"""Keys that are spelled like one that a table does not have: a suggestion for people, never an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

_MOST = 3
_LONGEST = 100
"""Characters of what is looked for; comparing takes the product of both lengths."""
_ALIKE = 0.7
"""Share of equal characters (difflib's ratio) from which two spellings are alike."""
_WORD = re.compile(r"[a-z0-9.+]+")


def nearest(text: str, keys: Collection[str], aliases: Mapping[str, str]) -> tuple[str, ...]:
    """The keys nearest to a text, best first: one that is part of it, else those that it begins, or that look alike.

    `aliases` are other spellings of keys. Letter case and punctuation do not count.
    """
    label = _words(text[:_LONGEST])
    spellings = {_words(alias): key for alias, key in aliases.items() if key in keys}
    spellings |= {_words(key): key for key in keys}
    if not label:
        return ()
    named = sorted((one for one in spellings if f" {one} " in f" {label} "), key=len, reverse=True)
    longer = sorted(sorted((one for one in spellings if one.startswith(f"{label} ")), reverse=True), key=len)
    begins = " ".join(label.split()[:3])  # without what people add to a name
    found = named[:1] or longer[:_MOST] or _alike(label, spellings) or _alike(begins, spellings)
    return tuple(dict.fromkeys(spellings[one] for one in found))


def _alike(label: str, spellings: Collection[str]) -> list[str]:
    return get_close_matches(label, spellings, n=_MOST, cutoff=_ALIKE)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower().replace("licence", "license")))


def did_you_mean(keys: tuple[str, ...]) -> str:
    """Put a suggestion as a question, such as "did you mean `CC-BY-4.0`?"."""
    first, last = ", ".join(f"`{key}`" for key in keys[:-1]), f"`{keys[-1]}`"
    return f"did you mean {first} or {last}?" if first else f"did you mean {last}?"

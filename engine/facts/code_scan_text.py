"""What a text inside of a program is: a web address, a path, a format string that reaches into what it is given."""

from __future__ import annotations

import re
import string

from engine.facts.paths_in_text import names_a_path

_WEB = re.compile(r"https?://")
_WHOLE = re.compile(r"https?://\S*")
_ADDRESS = re.compile(r"(?<![A-Za-z0-9+.-])(?!https?://)[A-Za-z][A-Za-z0-9+.-]{1,15}://")
_DUNDER = re.compile(r"(?<!\w)__[A-Za-z]")
_FIELDS = 200
_PREFIXES = 2


def web_addresses(text: str) -> int:
    """How many web addresses begin in a text, in whatever case (C26)."""
    return sum(1 for _ in _WEB.finditer(text.lower()))


def kinds(text: str) -> set[str]:
    """What a string literal is, beside plain text; http and https are counted by `web_addresses` alone."""
    found = set()
    if _ADDRESS.search(text.lower()):
        found.add("url")
    if names_a_path(_WHOLE.sub(" ", text.lower())):
        found.add("path")
    if _DUNDER.search(text):
        found.add("dunder")
    return found


def reaches(text: str, rounds: int = _PREFIXES) -> bool:
    """Whether `text`, as a format string, would take attributes or items of what it is given.

    A field may stand in the format of another, two deep as `str.format` has it.
    """
    try:
        for count, (_, name, spec, _) in enumerate(string.Formatter().parse(text)):
            if count > _FIELDS:
                return True
            if name is not None and ("." in name or "[" in name):
                return True
            if spec and "{" in spec and (rounds == 0 or reaches(spec, rounds - 1)):
                return True
    except ValueError:
        return False  # no format string: `format` would raise
    return False

"""Names of tools of MCP servers: the local name of each, and names that people or programs could confuse.

A local name is `mcp_<server>__<tool>` in letters that every model provider accepts (B37). It is unambiguous
only if no server id contains `__` or begins or ends with `_`. Look-alikes are compared by the skeleton of Unicode
TS #39 (confusables.txt), of which `_LETTERS` contains the letters that look like ASCII ones in common scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

_LETTERS = {
    "A": "\u0410\u0391",
    "B": "\u0412\u0392",
    "C": "\u0421",
    "E": "\u0415\u0395",
    "G": "\u050c\u050d",
    "H": "\u041d\u0397",
    "J": "\u0408",
    "K": "\u041a\u039a",
    "M": "\u041c\u039c",
    "N": "\u039d",
    "O": "\u041e\u039f0",
    "P": "\u0420\u03a1",
    "Q": "\u051a",
    "S": "\u0405",
    "T": "\u0422\u03a4",
    "W": "\u051c",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u04ae\u03a5",
    "Z": "\u0396",
    "a": "\u0430\u03b1\u0251",
    "b": "\u0185",
    "c": "\u0441",
    "d": "\u0501",
    "e": "\u0435",
    "g": "\u0581\u0261",
    "h": "\u04bb\u0570",
    "i": "\u0456\u03b9\u0131\u0269",
    "j": "\u0458\u0237",
    "k": "\u043a\u03ba",
    "l": "\u04cf\u0406\u03991I|",
    "n": "\u043f\u0578",
    "o": "\u043e\u043e\u03bf\u03c3\u0585",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "r": "\u0433",
    "s": "\u0455",
    "u": "\u03c5\u057d",
    "v": "\u0475\u03bd\u028b",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
}
"""Cyrillic, Greek, Armenian, rarer Latin letters and digits, by the ASCII letter that they look like."""

_LOOKS_LIKE = str.maketrans({other: letter for letter, others in _LETTERS.items() for other in others})
_PAIRS = (("m", "rn"), ("w", "vv"), ("d", "cl"))
"""Letters that look like two of them side by side."""


def local_name(server: str, tool: str) -> str:
    """The name under which agents call a tool of a server; invalid characters become `_`."""
    return f"mcp_{_UNSAFE.sub('_', server)}__{_UNSAFE.sub('_', tool)}"


def unambiguous(server: str) -> bool:
    """Whether local names with this server id cannot be read as those of another server."""
    safe = _UNSAFE.sub("_", server)
    return "__" not in safe and safe == safe.strip("_") and safe != ""


def skeleton(name: str) -> str:
    """The skeleton of a name: equal for names that look alike."""
    letters = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in letters if unicodedata.category(letter) not in {"Cf", "Mn", "Me"})
    plain = plain.translate(_LOOKS_LIKE).casefold()
    for source, target in _PAIRS:
        plain = plain.replace(source, target)
    return plain


def collisions(names: Sequence[str]) -> list[bool]:
    """For each name, whether it occurs more than once."""
    counted = Counter(names)
    return [counted[name] > 1 for name in names]


def confusables(names: Sequence[str]) -> list[bool]:
    """For each name whether there is another one that differs in letter case only, or looks the same."""
    folded: dict[str, set[str]] = {}
    for name in names:
        for key in (f"case {unicodedata.normalize('NFKC', name).casefold()}", f"look {skeleton(name)}"):
            folded.setdefault(key, set()).add(name)
    alike = {name for group in folded.values() if len(group) > 1 for name in group}
    return [name in alike for name in names]

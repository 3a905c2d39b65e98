"""Names of tools that come from MCP servers: the one local name of each, and which of them people or programs confuse.

A local name is `mcp_<server>__<tool>` in letters that every model provider takes (B37). It has one reading
only where no server id has `__` in it or `_` at an end. Look-alikes are compared by the skeleton of Unicode
TS #39 (confusables.txt), of which `_LOOKS_LIKE` holds the letters that stand for ASCII ones in common scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

_LOOKS_LIKE = str.maketrans(
    # Cyrillic, Greek and Armenian letters, and Latin ones beyond ASCII, by the ASCII letter that they look like
    "аеһіјоорѕсѵхуԁԛԝӏгпкАВЕЅІЈКМНОРСТХУҮԌԜԚ"
    "αγικνορσυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
    "օոսհցզԍıɑɡɩʋƅȷ"
    "01I|",
    "aehijoopscvxydqwlrnkABESlJKMHOPCTXYYGWQ"
    "ayikvopouxwABEZHlKMNOPTYX"
    "onuhgqGiagivbj"
    "Olll",
)
_PAIRS = (("m", "rn"), ("w", "vv"), ("d", "cl"))
"""Letters that look like two of them side by side."""


def local_name(server: str, tool: str) -> str:
    """The name under which agents call a tool of a server; what no name may hold becomes `_`."""
    return f"mcp_{_UNSAFE.sub('_', server)}__{_UNSAFE.sub('_', tool)}"


def one_reading(server: str) -> bool:
    """Whether local names with this server id cannot be read as those of another server."""
    safe = _UNSAFE.sub("_", server)
    return "__" not in safe and safe == safe.strip("_") and safe != ""


def skeleton(name: str) -> str:
    """What a name looks like: equal for names that people take for one another, whatever their letters are."""
    letters = unicodedata.normalize("NFKC", name)
    shown = "".join(letter for letter in letters if unicodedata.category(letter) not in {"Cf", "Mn", "Me"})
    shown = shown.translate(_LOOKS_LIKE).casefold()
    for one, two in _PAIRS:
        shown = shown.replace(one, two)
    return shown


def collisions(names: Sequence[str]) -> list[bool]:
    """For each name whether it is there more than once."""
    counted = Counter(names)
    return [counted[name] > 1 for name in names]


def confusables(names: Sequence[str]) -> list[bool]:
    """For each name whether there is another one that differs in letter case only, or looks the same."""
    folded: dict[str, set[str]] = {}
    for name in names:
        for key in (f"case {unicodedata.normalize('NFKC', name).casefold()}", f"look {skeleton(name)}"):
            folded.setdefault(key, set()).add(name)
    alike = {name for held in folded.values() if len(held) > 1 for name in held}
    return [name in alike for name in names]

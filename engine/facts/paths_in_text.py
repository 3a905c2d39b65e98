"""Whether a text that people will read names a file: looked for in every disguise that a reader would undo."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

_ROOTED = re.compile(
    r"(?<![\w:/.])(?:~[\w.-]*|\.{1,2})?/(?=[\w.@~+-])|file:/|\b[A-Za-z]:[\\/]|\\\\|\w\\\w"
    r"|(?<![\w.])\.\.(?![\w.])|(?<![\w.])\.\w+/"
)
_NAME = r"[\w.@~+-]"
_BELOW = re.compile(rf"(?<!{_NAME}){_NAME}+(?:(?:/{_NAME}+){{2,}}|/[\w@~+-]*\.\w+)")
_ROUNDS = 3
"""Times that a text may be percent-encoded; whoever encodes it more often than that is told the same."""


def names_a_path(text: str) -> bool:
    """Whether some part of `text` looks like a path: absolute, of a home, of a drive, or two folders deep.

    Rather once too often: `read/write` is none, `2026/11/21` is one. Percent signs and full-width letters
    are undone first.
    """
    for _ in range(_ROUNDS):
        text = unicodedata.normalize("NFKC", text)
        if _ROOTED.search(text) or _BELOW.search(text):
            return True
        if (plain := unquote(text)) == text:
            return False
        text = plain
    return True

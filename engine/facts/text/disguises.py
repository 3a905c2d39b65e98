"""Text without its disguises, and whether it names a file in any of them.

`undisguised` is what a lenient reader would make of escapes, full-width letters and hidden characters. Nothing is taken
from there as a value. Whatever shows only when the disguise is off is not canonical.
"""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import unquote

ROUNDS = 3
"""How often something may be wrapped into an escape that is still looked through."""

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|/)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WRAPPED = re.compile(r"[%&\\\x00-\x1f\x7f-\x9f]|[^\x00-\x7f]")
_HIDDEN = re.compile(
    r"[\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
"""Invisible characters, and separate accents."""

_DOTS = str.maketrans({"\u3002": ".", "\u2024": ".", "\u2044": "/", "\u2215": "/", "\u29f8": "/", "\u29f5": "\\"})
_LONG = str.maketrans({"\ufdfa": " ", "\ufdfb": " "})
"""Single characters that expand to whole sentences."""


def undisguised(text: str) -> str:
    """The text as the most lenient reader sees it; unchanged if nothing is disguised. Never raises."""
    for _ in range(ROUNDS):
        if _WRAPPED.search(text) is None:
            break
        before, text = text, _unwrapped(text)
        if text == before:
            break
    return text


def _unwrapped(text: str) -> str:
    if "%" in text:
        text = unquote(text, errors="replace")
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    if not text.isascii():
        plain_text = unicodedata.normalize("NFKC", text.translate(_LONG))
        text = _HIDDEN.sub("", plain_text.translate(_DOTS))
    return _CONTROL.sub("", text)


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else "/"


_ROOTS = "bin|boot|dev|etc|home|lib|mnt|opt|proc|root|run|srv|sys|tmp|usr|var|users|windows"
_TAG = rf"(?<=<)/(?!(?i:{_ROOTS})\b)[A-Za-z][A-Za-z0-9]*\s*>"
"""The end of a closing tag, such as `</td>`."""

_UNIT = rf"(?<=[$%€£¥₹°])/(?!(?i:{_ROOTS})\b)|(?<=[+-])/[+-]"
"""Between a unit and another one, as in `€/kWh`, or between signs, as in `+/-`."""

_ROOTED = re.compile(
    rf"(?!{_TAG}|{_UNIT})"
    r"(?<![\w:/.])(?:~[\w.-]*|\.{1,2})?/(?=[\w.@~+-])|(?i:file:/)|\b[A-Za-z]:[\\/]|\\\\|\w\\\w"
    rf"|(?<![\w:/])/{{2,}}(?=(?i:{_ROOTS})\b)"
    r"|(?<![\w.])\.\.(?![\w.])|(?<![\w.])\.\w+/"
)
_NAME = r"[\w.@~+-]"
_CHOICE = r"(?:[A-Z0-9]{1,5}/)+[A-Z0-9]{1,5}(?![\w@~+/-]|\.[\w.])"
"""A date, its form, or alternatives in capitals: `2026/03/07`, `DD/MM/YYYY`, `TCP/IP/UDP`."""

_BELOW = re.compile(rf"(?<!{_NAME})(?!{_CHOICE}){_NAME}+(?:(?:/{_NAME}+){{2,}}|/[\w@~+-]*\.\w+)")


def names_a_path(text: str) -> bool:
    """Whether some part of `text` looks like a path: absolute, of a home, of a drive, or two folders deep.

    Errs on the safe side: `read/write` and `2026/11/21` are no paths, `yes/no/maybe` is one. Percent signs and
    full-width letters are undone first.
    """
    for _ in range(ROUNDS):
        text = unicodedata.normalize("NFKC", text)
        if _ROOTED.search(text) or _BELOW.search(text):
            return True
        if (plain := unquote(text)) == text:
            return False
        text = plain
    return True

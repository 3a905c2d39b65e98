"""Characters that nobody sees: which ones a text has without needing them.

Scripts and emoji need some of them: joiners in Persian and between emoji, marks of direction beside Arabic or Hebrew
letters, selectors behind a symbol, the tags of a flag, soft hyphens between letters, joiners of accents, a byte order
mark at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.secrets.seen import INVISIBLE

_UNSEEN = re.compile(rf"(?:{INVISIBLE.pattern}|[\s\x00-\x1f\x7f-\x9f\u2800])*")
"""What nobody sees, blanks and control characters among it, and the empty pattern of Braille."""

_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FLAG = re.compile(r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")
_JOINED = re.compile(r"[\u0590-\u1cff\ua800-\uabff\ufb50-\ufefc]")
_EMOJI = re.compile(r"[\xa9\xae\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff]")
_SELECTED = re.compile(r"[0-9#*]|[^\x00-\xa8]")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
_SELECTORS = re.compile(r"[\ufe00-\ufe0f]")
_IDEOGRAPHIC = re.compile(r"[\U000e0100-\U000e01ef]")
_MONGOLIAN_OR_KHMER = re.compile(r"[\u1780-\u18af]")
_OF_THEM = re.compile(r"[\u17b4\u17b5\u180b-\u180f]")
_MARKS, _ISOLATES, _JOINERS = "\u200e\u200f\u061c", "\u202a\u202b\u202c\u2066\u2067\u2068\u2069", "\u200c\u200d"


def is_blank(text: str) -> bool:
    """Whether people see nothing of the text: it states nothing."""
    return _UNSEEN.fullmatch(text) is not None


def hidden_in(text: str) -> Iterator[int]:
    """The places of invisible characters that the text does not need, in order."""
    if text.isascii():
        return
    flags = {at for flag in _FLAG.finditer(text) for at in range(flag.start() + 1, flag.end())}
    directed = _RIGHT_TO_LEFT.search(text) is not None
    for match in INVISIBLE.finditer(text):
        at = match.start()
        if at not in flags and not _needed(match[0], text, at, directed=directed):
            yield at


def _needed(letter: str, text: str, at: int, *, directed: bool) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if letter in _MARKS or letter in _ISOLATES:
        needed = directed
    elif letter == "\ufeff":
        needed = at == 0
    elif letter == "\u034f":
        needed = not (before.isascii() and after.isascii())
    elif letter == "\xad":
        needed = before.isalpha() and after.isalpha()
    elif letter in _JOINERS:
        emoji = letter == "\u200d" and bool(_EMOJI.match(before) and _EMOJI.match(after))
        needed = emoji or _JOINED.match(before) is not None
    elif letter == "\u200b":
        needed = bool(_WITHOUT_SPACES.match(before) and _WITHOUT_SPACES.match(after))
    elif _SELECTORS.match(letter):
        needed = _SELECTED.match(before) is not None and INVISIBLE.match(before) is None
    elif _IDEOGRAPHIC.match(letter):
        needed = _IDEOGRAPH.match(before) is not None
    else:
        needed = bool(_OF_THEM.match(letter) and _MONGOLIAN_OR_KHMER.match(before))
    return needed

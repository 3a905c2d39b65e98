"""Fast conservative check: true only if redaction would change nothing in this JSON text.

Text in which the walk over the values (redaction.py) would replace anything must not pass. Each step is therefore
a necessary condition of one kind of finding, and text that is hard to judge is left to the walk: a
backslash (then text and value differ), a character beyond ASCII (then case folding is irregular), much text,
deep nesting. In the remaining text, every string of the value is verbatim between two quotes, and no pattern of
engine/secrets needs to look past a quote.

    kind of finding            cannot be there without
    command in a list          a string that begins with a dash
    name of a secret           its letters, after removing all but letters, digits and quotes
    key of the remote model    its text
    form of a vendor, option   a match of the forms that policy states
    key block, web token       its prefix
    seed phrase                twelve short words in a row, or in a list
    bearer, basic              that word and a space
    header, `password: …`      one of the names of secrets
    assignment                 an equals sign or a short name, and a match of its pattern
    name and value             the word `value`, and a match of their pattern
    password in SQL, PHP       `identified`, `define(`
    user in a URL, DSN, mail   an at sign, and a match of their patterns
    card                       13 to 19 digits on their own, the first 2 to 6; or its groups of digits
    random text                33 letters and digits in a row, and the same judgment as in the walk
"""

from __future__ import annotations

import re

from engine.secrets.forms import UNKNOWN_FORMS, SecretForms
from engine.secrets.lines import RANDOM_RUN
from engine.secrets.passwords import ASSIGNED, DATA_SOURCE, NAMED_OPTION, STATED, USERINFO
from engine.secrets.patterns import known_forms, known_keys
from engine.secrets.personal import MAIL_HOST, SHORTEST_CARD
from engine.secrets.randomness import looks_random
from engine.secrets.redaction import DEPTH
from engine.secrets.seeds import SEED

TEXT_BYTES = 1 << 20
"""Longer text may contain a string that is removed for its length alone."""

_REMEMBERED = 8_192
"""Strings; the names and words of all points are a few hundred."""

_SHORT = 40
"""Characters; longer strings are seldom seen twice."""

_inert: set[str] = set()
"""Strings in which nothing was found, because requests repeat their names and words; never one that was replaced."""

_inert_of: SecretForms = UNKNOWN_FORMS
"""The forms of secrets that were looked for in them."""

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
_NAMES = (
    *("passw", "passphrase", "passcode", "secret", "apikey", "accesskey", "privatekey"),
    *("authorization", "cookie", "credential"),
    *("accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "bearertoken", "apitoken"),
)
_BLOCKS = ("-----BEGIN", "PuTTY", "eyJ")
_WORDS = ("bearer ", "basic ", "identified", "define(")
_SEED_GAPS = 11
_CAPITALS_TOO = _LETTERS + _LETTERS.upper()
_BLANKS = bytes.maketrans(b",", b" ")

_RUN_CHARACTERS = frozenset(_LETTERS + _LETTERS.upper() + _DIGITS + b"+/_=-")
_PLAIN = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))  # noqa: PLR2004 (A to Z)
_NO_LETTER = bytes(sorted(set(range(256)) - set(_LETTERS + _LETTERS.upper() + _DIGITS + b'"')))
_RUNS = bytes(120 if byte in _RUN_CHARACTERS else 32 for byte in range(256))
_GROUPS = bytes(48 if byte in _DIGITS else 45 if byte in b" -" else 120 for byte in range(256))
_RUN = b"x" * RANDOM_RUN
_CARD = b"0" * SHORTEST_CARD
_CARD_GROUPS = (b"0000-0000-0000-0", b"0000-000000-0000")
_LONGEST_CARD = 19
_FIRST = frozenset(b"23456")
_INSIDE = frozenset(_LETTERS + _LETTERS.upper() + _DIGITS + b".")
_AFTER = frozenset(bytes([byte]) for byte in _INSIDE - {ord(".")})
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_is_id = re.compile(r"(?:sha256:)?[0-9a-f]{64}|[0-9a-f]{32}").fullmatch
"""Digests and ids, nearly always new: no pattern has so many lower-case hex digits and nothing else."""

_PIECES = re.compile(rb'"[^"]*"|[\[{]|[\]}]')
_NESTED = DEPTH - 4
"""Less than the depth where the walk stops, because the text may have levels more than the value."""


def clean(text: bytes) -> bool:
    """Whether redaction certainly replaces nothing in the values of this compact JSON text."""
    global _inert_of  # noqa: PLW0603
    if _inert_of is not (forms := known_forms()):
        _inert.clear()
        _inert_of = forms
    if not forms.known or len(text) > TEXT_BYTES or b"\\" in text or not text.isascii() or _deep(text) or _card(text):
        return False
    if b'"-' in text or _phrase(text):  # whether or not each word was seen before: only together are they a secret
        return False
    plain = text.decode("ascii")
    if next(known_keys(plain), None) is not None:
        return False
    pieces = set(plain.split('"')[1::2])  # every other piece is between quotes
    new = [piece for piece in pieces - _inert if not _is_id(piece)]
    if not new:
        return True
    words = '"'.join(new)
    if _has_name(words) or _starts_of(words) or _assigned_or_addressed(words) or _random(words):
        return False
    if len(_inert) > _REMEMBERED:
        _inert.clear()
    _inert.update([word for word in new if len(word) <= _SHORT])
    return True


def _deep(text: bytes) -> bool:
    if text.count(b"{") + text.count(b"[") <= _NESTED:
        return False
    depth = 0
    for piece in _PIECES.findall(text):
        if piece in {b"{", b"["}:
            depth += 1
            if depth > _NESTED:
                return True
        elif piece in {b"}", b"]"}:
            depth -= 1
    return False


def _card(text: bytes) -> bool:
    shape = text.translate(_GROUPS)
    at = shape.find(_CARD)
    while at >= 0:
        end = at + SHORTEST_CARD
        while shape[end : end + 1] == b"0":
            end += 1
        alone = (at == 0 or text[at - 1] not in _INSIDE) and text[end : end + 1] not in _AFTER
        if alone and text[at] in _FIRST and end - at <= _LONGEST_CARD:
            return True
        at = shape.find(_CARD, end)
    return any(groups in shape for groups in _CARD_GROUPS)


def _phrase(text: bytes) -> bool:
    """Whether twelve short words follow each other, in one string or in the strings of a list."""
    joined = text.replace(b'","', b" ")
    if b" " * _SEED_GAPS not in joined.translate(_BLANKS, _CAPITALS_TOO):
        return False
    return SEED.search(joined.decode("ascii")) is not None


def _has_name(words: str) -> bool:
    letters = words.encode("ascii").translate(_PLAIN, _NO_LETTER).decode("ascii")
    for name in _NAMES:  # noqa: SIM110 (a generator costs as much as the search)
        if name in letters:
            return True
    return False


def _starts_of(words: str) -> bool:
    small = words.lower()
    if any(word in small for word in _WORDS) or any(block in words for block in _BLOCKS):
        return True
    if ("oken " in small or "pass " in small) and NAMED_OPTION.search(words) is not None:
        return True
    return not known_forms().none_in(words)


def _assigned_or_addressed(words: str) -> bool:
    small = words.lower()
    if ("=" in words or "oken" in small or "pwd" in small or "_pass" in small) and ASSIGNED.search(words):
        return True
    if "value" in small and STATED.search(words):
        return True
    if "@" not in words:
        return False
    return any(pattern.search(words) is not None for pattern in (MAIL_HOST, USERINFO, DATA_SOURCE))


def _random(words: str) -> bool:
    text = words.encode("ascii")
    shape = text.translate(_RUNS) + b" "
    at = shape.find(_RUN)
    while at >= 0:
        end = shape.find(b" ", at)
        run = text[at:end]
        if not _DIGEST.fullmatch(run):
            touched = text[at - 1 : at] == b":" or text[end : end + 1] == b":"  # perhaps a digest with its name
            if touched or looks_random(run.decode("ascii")):
                return True
        at = shape.find(_RUN, end)
    return False

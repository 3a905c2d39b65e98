"""Takes secrets and private data out of values before they reach a record, a message or a log line.

What is taken out leaves `[redacted:…]` with twelve hex digits of its SHA-256, so that equal values can be
recognised as equal. A digest does not hide what can be guessed (a card number, a short password): whoever
may read the record may try.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from engine.record.patterns import find_secrets, is_card

TEXT_CHARACTERS = 1 << 20
"""Longer strings are taken out whole: no id, alias or fact is that long, and reading them costs time."""

DEPTH = 64
"""Values nested deeper are taken out whole; readers of requests stop at half of this."""

_REDACTED = re.compile(r"\[redacted:[0-9a-f]{12}\]")
_CLEAN = re.compile(r"(?:sha256:)?[0-9a-f]{64}|[a-z_]{0,32}|\[redacted:[0-9a-f]{12}\]")

_REMEMBERED = 64  # characters; repeated strings are names and words
_NAME_CHARACTERS = 128
_SEPARATORS = re.compile(r"[^a-z0-9]")
_PASSWORDS = ("password", "passwd", "passphrase")
_SECRETS = (
    *_PASSWORDS,
    *("secret", "apikey", "secretkey", "accesskey", "privatekey"),
    *("authorization", "cookie", "credential", "credentials"),
    *("accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "bearertoken", "apitoken"),
)
"""Ends of the names whose strings are secrets whatever they look like: `db_password`, `X-Api-Key`."""


def redacted(text: str) -> str:
    """What stands in the record in place of `text`."""
    return f"[redacted:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}]"


def redact(value: Any) -> tuple[Any, tuple[str, ...]]:
    """A copy of a JSON value without secrets, and the sorted dotted paths of what was replaced.

    A string with a secret in it is replaced whole; so are secret object keys and card numbers. The
    path of a value in a list has the index: `records.2.url`. Never raises on JSON values.
    """
    walk = _Walk()
    clean = walk.value(value, (), "", 0)
    return clean, tuple(sorted(".".join(path) for path in walk.paths))


def redact_text(text: str) -> str:
    """A message with every secret in it replaced; the words around stay."""
    if len(text) > TEXT_CHARACTERS:
        return redacted(text)
    pieces: list[str] = []
    position = 0
    for start, end in _merged(text):
        pieces += (text[position:start], redacted(text[start:end]))
        position = end
    return "".join((*pieces, text[position:]))


def _merged(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in sorted(find_secrets(text)):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


class _Walk:
    """One pass over one value; remembers short strings, because records repeat them."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, ...]] = []
        self._known: dict[str, str] = {}

    def value(self, value: Any, path: tuple[str, ...], name: str, depth: int) -> Any:
        if isinstance(value, str):
            clean = self._secret(value) if name.endswith(_SECRETS) else self._text(value)
            return value if clean == value else self._replaced(clean, path)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            return self._number(value, path, name)
        if depth >= DEPTH:
            return self._replaced("[redacted:too deep]", path)
        if isinstance(value, Mapping):
            return self._object(value, path, depth)
        return [self.value(item, (*path, str(index)), name, depth + 1) for index, item in enumerate(value)]

    def _object(self, value: Mapping[str, Any], path: tuple[str, ...], depth: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for name, item in value.items():
            key = self._text(name)
            while key in clean or (key != name and key in value):  # two names, one replacement: keep both
                key += "+"
            if key != name:
                self.paths.append((*path, key))
            plain = _SEPARATORS.sub("", name[-_NAME_CHARACTERS:].lower())
            clean[key] = self.value(item, (*path, key), plain, depth + 1)
        return clean

    def _number(self, value: Any, path: tuple[str, ...], name: str) -> Any:
        if isinstance(value, int) and 10**12 <= value < 10**19 and is_card(str(value)):
            return self._replaced(redacted(str(value)), path)
        if name.endswith(_PASSWORDS):
            return self._replaced(redacted(value.hex() if isinstance(value, float) else hex(value)), path)
        return value

    def _secret(self, text: str) -> str:
        return text if not text or _REDACTED.fullmatch(text) else redacted(text)

    def _text(self, text: str) -> str:
        if _CLEAN.fullmatch(text):
            return text
        known = self._known.get(text)
        if known is None:
            dirty = len(text) > TEXT_CHARACTERS or next(iter(find_secrets(text)), None) is not None
            known = redacted(text) if dirty else text
            if len(text) <= _REMEMBERED:
                self._known[text] = known
        return known

    def _replaced(self, clean: str, path: tuple[str, ...]) -> str:
        self.paths.append(path)
        return clean

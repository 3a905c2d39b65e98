"""Redacts secrets and private data in values before they reach a record, a message or a log line.

What is taken out leaves `[redacted:…]` with twelve hex digits of its SHA-256, so that equal values can be
recognised as equal. A digest does not hide what can be guessed (a card number, a short password): an attacker who
may read the record may try.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any

from engine.secrets.lines import Span
from engine.secrets.names import FreeNames
from engine.secrets.patterns import find_secrets, find_secrets_across, known_keys
from engine.secrets.personal import is_card

TEXT_CHARACTERS = 1 << 20
"""Longer strings are taken out whole: no id, alias or fact is that long, and reading them costs time."""

DEPTH = 64
"""Values nested deeper are taken out whole; readers of requests stop at half of this."""

REDACTED = re.compile(r"\[redacted:[0-9a-f]{12}\]")
_CLEAN = re.compile(
    r"(?:sha256:)?[0-9a-f]{64}|[a-z_]{0,32}|\[redacted:[0-9a-f]{12}\]|"
    r"(?:(?:approvals|stops|memories|asked|agents|children)/)?[0-9a-f]{32}"
)

_NAME_CHARACTERS = 128
_SEPARATORS = re.compile(r"[^a-z0-9]")
_PASSWORDS = ("password", "passwd", "passphrase")
_SECRETS = (
    *_PASSWORDS,
    *("secret", "apikey", "secretkey", "accesskey", "privatekey"),
    *("authorization", "cookie", "credential", "credentials"),
    *("accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "bearertoken", "apitoken"),
)
"""Name suffixes whose values are always secrets: `db_password`, `X-Api-Key`."""


def redacted(text: str) -> str:
    """The replacement for `text` in the record."""
    return f"[redacted:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}]"


def is_secret_name(name: str) -> bool:
    """Whether any string under this name is a secret."""
    return _plain(name).endswith(_SECRETS)


def redact(value: Any) -> tuple[Any, tuple[str, ...]]:
    """A copy of a JSON value without secrets, and the sorted dotted paths of replaced values.

    A string with a secret in it is replaced whole; so are secret object keys and card numbers. The
    path of a value in a list has the index: `records.2.url`. Never raises on JSON values.
    """
    walk = _Walk()
    clean = walk.value(value, "")
    return clean, tuple(sorted(walk.paths))


def redact_text(text: str) -> str:
    """A message with every secret replaced by its mark; the rest stays."""
    return redacted(text) if len(text) > TEXT_CHARACTERS else replaced(text, find_secrets(text), redacted)


def replaced(text: str, spans: Iterable[Span], mark: Callable[[str], str]) -> str:
    """A text with a mark in place of each of the spans."""
    pieces: list[str] = []
    position = 0
    for start, end in merged(spans):
        pieces += (text[position:start], mark(text[start:end]))
        position = end
    return "".join((*pieces, text[position:]))


def merged(found: Iterable[Span]) -> list[Span]:
    """The spans in order, those that overlap or touch as one."""
    spans: list[Span] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name[-_NAME_CHARACTERS:].lower())


def _across(items: Sequence[Any]) -> set[int]:
    """The words of a list that together form a secret: `--password`, `x`."""
    if len(items) < 2 or not all(isinstance(item, str) for item in items):  # noqa: PLR2004 (a word and its secret)
        return set()
    found: set[int] = set()
    spans = list(find_secrets_across(items))
    end = -1
    for index, item in enumerate(items):
        start, end = end + 1, end + 1 + len(item)
        if item and any(first < end and start < last for first, last in spans):
            found.add(index)
    return found


class _Walk:
    """One pass over one value; caches strings, because records repeat them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._way: list[str] = []
        self._known: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def value(self, value: Any, name: str) -> Any:
        """A clean copy of `value`, which has the name `name` at the current path."""
        if isinstance(value, str):
            clean = self._known.get(value) or self._text(value)
            if name.endswith(_SECRETS) and value and not REDACTED.fullmatch(value):
                clean = redacted(value)
            return value if clean == value else self._replaced(clean)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value, name)
        if not isinstance(value, (dict, list, tuple)):
            return value  # true, false, null; and what has no JSON form, which the encoder refuses
        if len(self._way) >= DEPTH:
            return self._replaced("[redacted:too deep]")
        if isinstance(value, dict):
            return self._object(value)
        across = _across(value)
        return [
            self._taken_out(str(index), item) if index in across else self._below(str(index), item, name)
            for index, item in enumerate(value)
        ]

    def _taken_out(self, step: str, item: str) -> str:
        self._way.append(step)
        clean = self._replaced(redacted(item))
        self._way.pop()
        return clean

    def _below(self, step: str, value: Any, name: str) -> Any:
        self._way.append(step)
        clean = self.value(value, name)
        self._way.pop()
        return clean

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        names = FreeNames(value)
        for name, item in value.items():
            key = self._known.get(name) or self._text(name)
            if key != name:
                key = names.of(key)  # two names may have one replacement
            self._way.append(key)
            if key != name:
                self._replaced(key)
            clean[key] = self.value(item, self._names.get(name) or self._name(name))
            self._way.pop()
        return clean

    def _name(self, name: str) -> str:
        plain = self._names[name] = _plain(name)
        return plain

    def _number(self, value: Any, name: str) -> Any:
        if isinstance(value, int) and 10**12 <= value < 10**19 and is_card(str(value)):
            return self._replaced(redacted(str(value)))
        if name.endswith(_PASSWORDS):
            return self._replaced(redacted(value.hex() if isinstance(value, float) else hex(value)))
        return value

    def _text(self, text: str) -> str:
        clean = text
        if not _CLEAN.fullmatch(text) or next(known_keys(text), None) is not None:
            dirty = len(text) > TEXT_CHARACTERS or next(iter(find_secrets(text)), None) is not None
            clean = redacted(text) if dirty else text
        self._known[text] = clean
        return clean

    def _replaced(self, clean: str) -> str:
        self.paths.append(".".join(self._way))
        return clean

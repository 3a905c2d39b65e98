"""What the result of a tool contains, and the result without what a permit takes out.

Text is searched as it is; of JSON, every string and every key. What is shown is made of exactly what was searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.documents.strict_json import read_strict
from engine.facts.text.content import MARK, rewritten
from engine.facts.text.hidden import hidden_in
from engine.facts.text.instructions import Markers
from engine.facts.text.links import MOST, Link, links_in
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import find_credentials, is_secret
from engine.secrets.redaction import is_secret_name, merged
from engine.secrets.seen import UnescapedText, VisibleText

DEPTH = 200
"""Levels of JSON that are looked at; deeper JSON, and JSON that readers disagree on, is looked at as text."""

_ENCODED = ("audio", "image")
"""Blocks of MCP whose `data` is a file in base64: random by nature, and no text. Other text in it is searched."""

_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*+={0,2}[\r\n]*+")


@dataclass(slots=True)
class _Piece:
    """A string of the result, and the spans of what was found in it."""

    secrets: list[tuple[int, int]] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    links: list[tuple[Link, int, int]] = field(default_factory=list)


class ResultContent:
    """What was found in a result. `links` has each distinct link once.

    `complete`: there were few enough to list them.
    """

    def __init__(self, text: str, media: str, forms: SecretForms, markers: Markers) -> None:
        self._text, self._forms, self._markers = text, forms, markers
        self._value: Any = _parsed(text) if media == "json" else None
        self._pieces: list[_Piece] = []
        self.instructions = 0
        strings = list(self._strings())
        for at in range(0, len(strings), _TOGETHER):
            self._look_at(strings[at : at + _TOGETHER])
        self.secrets = sum(len(one.secrets) for one in self._pieces)
        self.hidden = sum(len(one.hidden) for one in self._pieces)
        found = dict.fromkeys(link for one in self._pieces for link, _, _ in one.links)
        self.links: tuple[Link, ...] = tuple(found)[:MOST]
        self.complete = len(found) <= MOST

    def without(self, *, secrets: bool, hidden: bool, links: Collection[str]) -> tuple[str, dict[str, int]]:
        """The result without these, and how many of each were taken out; `links` by their numbers."""
        gone = {self.links[int(number)] for number in links}
        counts = {"secrets": 0, "hidden_characters": 0, "links": 0}
        clean: list[str] = []
        for (original, _), piece in zip(self._strings(), self._pieces, strict=True):
            spans = [(start, end, MARK) for start, end in piece.secrets if secrets]
            spans += [(start, end, MARK) for link, start, end in piece.links if link in gone]
            counts["secrets"] += len(piece.secrets) if secrets else 0
            counts["links"] += sum(link in gone for link, _, _ in piece.links)
            spans += [(at, at + 1, "") for at in piece.hidden if hidden]
            counts["hidden_characters"] += len(piece.hidden) if hidden else 0
            clean.append(_without(original, spans))
        if not any(counts.values()):
            return self._text, {}
        taken = {name: count for name, count in counts.items() if count}
        if self._value is None:
            return clean[0], taken
        rest = iter(clean)
        return json.dumps(rewritten(self._value, lambda _: next(rest)), ensure_ascii=False, allow_nan=False), taken

    def _strings(self) -> Iterator[tuple[str, str]]:
        """Each string with the key that it is under."""
        if self._value is None:
            yield self._text, ""
        else:
            yield from _strings(self._value, "")

    def _look_at(self, strings: list[tuple[str, str]]) -> None:
        """Look at strings; first at all of them as one text, because most have neither secrets nor instructions."""
        searched = _APART.join(text for text, name in strings if name != _ENCODED_DATA)
        secrets = is_secret(searched, self._forms)
        instructions = self._markers.count(_APART.join(text for text, _ in strings)) > 0
        for text, name in strings:
            self._pieces.append(self._look(text, name, secrets=secrets))
            self.instructions += self._markers.count(text) if instructions else 0

    def _look(self, text: str, name: str, *, secrets: bool) -> _Piece:
        found = _Piece(hidden=list(hidden_in(text)), links=_links_in(text))
        if name != _ENCODED_DATA:
            if secrets:
                found.secrets = merged(find_credentials(text, self._forms))
            if text and is_secret_name(name):
                found.secrets = [(0, len(text))]
        return found


def _links_in(text: str) -> list[tuple[Link, int, int]]:
    """The links of a text as people see it, and of JSON in it; a link of both once."""
    meant = UnescapedText(text)
    readings: list[VisibleText | UnescapedText] = [VisibleText(text), *([] if meant.text == text else [meant])]
    found = (
        (link, *span)
        for reading in readings
        for link, start, end in links_in(reading.text)
        for span in reading.spans([(start, end)])
    )
    return list(dict.fromkeys(found))


_TOGETHER = 64
"""Strings that are looked at as one text."""

_APART = "\n\0\n"
"""Between strings: nothing that is found in one of them needs it or hides behind it."""

_ENCODED_DATA = "\0"
"""Stands for the key of a file in base64."""


def _parsed(text: str) -> Any:
    """An object or a list; None for what is looked at as text."""
    try:
        value = read_strict(text, levels=DEPTH)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _strings(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield value, name
    elif isinstance(value, dict):
        media = value.get("type") in _ENCODED
        for key, one in value.items():
            yield key, ""
            encoded = media and key == "data" and isinstance(one, str) and _BASE64.fullmatch(one)
            yield from _strings(one, _ENCODED_DATA if encoded else key)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one, name)


def _without(text: str, spans: list[tuple[int, int, str]]) -> str:
    """The text with each span replaced; of spans that overlap, all are gone."""
    pieces, position, marked = [], 0, False
    for start, end, mark in sorted(spans):
        if start >= position:
            pieces.append(text[position:start])
            marked = False
        if mark and not marked:
            pieces.append(mark)
            marked = True
        position = max(position, end)
    pieces.append(text[position:])
    return "".join(pieces)

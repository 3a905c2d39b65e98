"""Links and images in a text that can carry data to a host: in Markdown, HTML, styles, and as plain addresses.

What is loaded without a click is an `image`, whatever it is; `link` needs a click; `text` is an address that some
programs turn into a link. An address is read as a browser reads it: escapes undone, blanks and backslashes forgiven.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.secrets.lines import folded
from engine.secrets.randomness import looks_random

Kind = Literal["image", "link", "text"]

MOST = 2_000
"""Distinct links with data that are listed; a text with more is not read to its end."""

_BACK = 1_000
"""Characters in which the start of a link's text is looked for."""

_COVERED = 64
"""Characters from the start of an address in which no other one begins; behind them, one may be in its query."""

_INLINE = re.compile(r"\]\(\s{0,8}(<[^<>\n]{0,4096}>|[^\s()]{0,4096}(?:\([^\s()]{0,1024}\)[^\s()]{0,4096}){0,4})")
_REFERENCE = re.compile(r"(?m)^[ >\t]{0,16}\[([^\[\]\n]{1,200})\]:\s{0,8}(<[^<>\n]{0,4096}>|\S{1,4096})")
_REFERRED = re.compile(r"(?:(\])|!)(?=\[([^\[\]\n]{0,200})\])")
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9:-]{0,30})((?:\"[^\"]*\"|'[^']*'|[^'\">])*)")
_ATTRIBUTE = re.compile(r"(?i)([a-z:-]{1,20})\s{0,8}=\s{0,8}(\"[^\"]*\"|'[^']*'|[^\s\"'>]+)")
_STYLE = re.compile(r"(?i)(?:\burl\(\s{0,8}|@import\s{1,8})([\"']?)([^\"')\s]{1,4096})")
_PLAIN = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,15}:[/\\]{2}[^\s<>\"'`]{1,8192}")
_SLASHES, _SCHEME = re.compile(r":[/\\]{2}"), 16
_CLICKED = {"href": ("a", "area"), "action": ("form",), "formaction": ("button", "input"), "cite": ("blockquote", "q")}
_LOADED = frozenset(
    ("src", "srcset", "href", "xlink:href", "poster", "background", "data", "ping", "action", "formaction", "cite")
)
_LISTS = ("srcset", "ping")
_ADDRESS = re.compile(
    r"(?i)(?:(https?):[/\\]*|([a-z][a-z0-9+.-]{1,15}):[/\\]{2,}|[/\\]{2,})([^/\\?#]*)([^?#]*)(.*)", re.DOTALL
)
_CANONICAL = re.compile(r"(https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]{1,5})?)(?:[/?#]|\Z)")
_OPEN = re.compile(r"[{}\[\]<>$*]|(?i:%7b|%5b|%3c)")
_SHORTEST_DATA, _LONGEST_SEGMENT = 33, 64
_LONG = re.compile(rf"[A-Za-z0-9+_=-]{{{_SHORTEST_DATA},}}")


@dataclass(frozen=True, slots=True)
class Link:
    """A link that can carry data. `origin` only where it has one spelling; `data` in characters.

    `open`: it has a place where a model would fill in data.
    """

    kind: Kind
    origin: str | None
    data: int
    open: bool


def links_in(text: str) -> Iterator[tuple[Link, int, int]]:
    """Every link with data, and where its address starts and ends. The address of one may be part of another's."""
    if ":" not in text and "//" not in text and "\\\\" not in text:
        return
    for kind, start, end in _addresses(text):
        link = _link(kind, text[start:end])
        if link is not None:
            yield link, start, end


def _addresses(text: str) -> Iterator[tuple[Kind, int, int]]:
    within: list[tuple[int, int]] = []

    def found(kind: Kind, start: int, end: int) -> tuple[Kind, int, int]:
        within.append((start, end))
        return kind, start, end

    for number, match in enumerate(_INLINE.finditer(text)):
        image = number >= MOST or _is_image(text, match.start())
        yield found("image" if image else "link", *match.span(1))
    used = _image_labels(text)
    for match in _REFERENCE.finditer(text) if "]:" in text else ():
        yield found("image" if _label(match[1]) in used else "link", *match.span(2))
    for match in _TAG.finditer(text):
        if match[1].lower() in {"http", "https"} or ":" in match[1]:
            continue  # an address between pointed brackets
        yield from (found(*one) for one in _attributes(match))
    low = folded(text)
    for match in _STYLE.finditer(text) if b"url(" in low or b"@import" in low else ():
        yield found("image", *match.span(2))
    covered = {at for start, end in within for at in range(start, min(end, start + _COVERED))}
    for match in _plain(text):
        if match.start() not in covered:
            yield "text", *match.span()


def _plain(text: str) -> Iterator[re.Match[str]]:
    """The matches of `_PLAIN`; no more than a scheme is matched before each colon with slashes."""
    end = 0
    while (colon := _SLASHES.search(text, end)) is not None:
        match = _PLAIN.search(text, max(end, colon.start() - _SCHEME))
        if match is None:
            return
        yield match
        end = match.end()


def _is_image(text: str, closing: int) -> bool:
    """Whether the bracket that closes here belongs to an image; in doubt it does."""
    depth = 0
    for at in range(closing, max(-1, closing - _BACK), -1):
        letter = text[at]
        if letter not in "[]" or (at != closing and text[at - 1 : at] == "\\"):
            continue
        depth += 1 if letter == "]" else -1
        if depth == 0:
            return text[at - 1 : at] == "!" if at else False
    return True


def _image_labels(text: str) -> set[str]:
    """The labels of references that images use."""
    if "![" not in text:
        return set()
    labels = set()
    for number, match in enumerate(_REFERRED.finditer(text)):
        if match[1] is None or number >= MOST or _is_image(text, match.start(1)):
            labels.add(_label(match[2]))
    return labels


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


def _attributes(tag: re.Match[str]) -> Iterator[tuple[Kind, int, int]]:
    name, at = tag[1].lower(), tag.start(2)
    for attribute in _ATTRIBUTE.finditer(tag[2]):
        key = attribute[1].lower()
        if key not in _LOADED:
            continue
        kind: Kind = "link" if name in _CLICKED.get(key, ()) else "image"
        start, end = (at + place for place in attribute.span(2))
        if attribute[2][0] in "\"'":
            start, end = start + 1, end - 1
        if key not in _LISTS:
            yield kind, start, end
            continue
        for one in re.finditer(r"[^\s,]\S*", tag.string[start:end]):
            yield kind, start + one.start(), start + one.end()


def _link(kind: Kind, stated: str) -> Link | None:
    """The facts of an address; None for one that reaches no host or carries nothing."""
    url = html.unescape(stated.strip("<>") if kind != "text" else stated.rstrip(".,;:!?)]}'\""))
    url = url.replace("\t", "").replace("\r", "").replace("\n", "").strip()
    match = _ADDRESS.match(url)
    if match is None or not match[3]:
        return None
    host, path, rest = match[3], match[4], match[5]
    query = rest.partition("#")[0] if kind == "image" else rest  # what loads an image sends no fragment
    data = max(0, len(query) - 1) + _carried(host) + _carried(path)
    if "@" in host:
        data += len(host.rpartition("@")[0])
    is_open = _OPEN.search(f"{host}{path}{query}") is not None
    if not data and not is_open:
        return None
    canonical = _CANONICAL.match(url)
    named = canonical is not None and not _carried(host)
    return Link(kind, canonical[1] if canonical is not None and named else None, data, is_open)


def _carried(part: str) -> int:
    """Characters of a host or path that look like data and not like names."""
    if len(part) < _SHORTEST_DATA:
        return 0
    found = sum(len(run) for run in _LONG.findall(part) if looks_random(run))
    return found + sum(
        len(one) for one in re.split(r"[/.\\]", part) if len(one) > _LONGEST_SEGMENT and not _LONG.search(one)
    )

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

_LONGEST = 2_048
"""Characters of an address from which on all of it counts as data; what is behind them is not always read."""

_HEAD, _START = 256, 32
"""Characters that are looked at first, and how many of them show whether this is an address."""

_MAYBE = re.compile(r"[:&]|[/\\]{2}")
_QUOTATION = re.compile(r"(?m)^[ \t]*+>.*(?:\n(?=.*\S).*)+")
_QUOTING = re.compile(r"(?m)^[ \t>]+")
_LABEL = r"\[((?:[^\[\]\\]|\\.){1,999})\]"
_INLINE = re.compile(r"\]\(\s*+(<[^<>\n]{0,4096}>|[^\s()]{0,4096}(?:\([^\s()]{0,1024}\)[^\s()]{0,4096}){0,4})")
_REFERENCE = re.compile(
    rf"(?ms)^(?:[ \t>]|[-+*][ \t]|[0-9]{{1,9}}[.)][ \t])*+{_LABEL}:\s*+(<[^<>\n]{{0,4096}}>|\S{{1,4096}})"
)
_REFERRED = re.compile(rf"(?s)(?:(\])|!)(?={_LABEL})")
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9-]{0,30})(?![A-Za-z0-9:-])")
_QUOTE_OR_END = re.compile(r"=\s*[\"']|>")
"""What decides where a tag ends: quotes count only where a value begins."""

_AGAIN = 16
"""How often all of a text may be read to find the ends of tags; those that begin then are taken as never ended."""

_ATTRIBUTE = re.compile(
    r"(?i)(?<![a-z0-9_:-])(src|srcset|href|xlink:href|poster|background|data|ping|action|formaction|cite)\s*+="
)
_VALUE = re.compile(r"\s*+(?:\"([^\"]{1,2048})|'([^']{1,2048})|([^\s\"'>][^\s>]{0,2047}))")
_STYLE = re.compile(
    r"(?i)(?:\b(?:url|image-set|src)\(|@import(?!\s*+url\()|[;,]\s*+url\s*+=)(?:\s|/\*[^*]{0,1000}\*/)*+"
    r"(?:[\"']|&quot;|&apos;|&#0{0,5}3[49];|&#x0{0,5}2[27];){0,2}([^\"')\s]{1,4096})"
)
"""What styles load, and the address that a page goes on to: `<meta http-equiv=refresh content="0;url=…">`."""

_STYLE_WORDS = (b"url", b"src(", b"@import", b"image-set(")

_PLAIN = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,15}:[/\\]{2}[^\s<>\"'`]{1,8192}")
_SLASHES, _SCHEME = re.compile(r":[/\\]{2}"), 16
_CLICKED = {"href": ("a", "area"), "action": ("form",), "formaction": ("button", "input"), "cite": ("blockquote", "q")}
_CLICKABLE = frozenset(name for names in _CLICKED.values() for name in names)
_LISTS = ("srcset", "ping")
_ADDRESS = re.compile(
    r"(?i)(?:(https?):[/\\]*|([a-z][a-z0-9+.-]{1,15}):[/\\]{2,}|[/\\]{2,})([^/\\?#]*)([^?#]*)(.*)", re.DOTALL
)
_CANONICAL = re.compile(r"(https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]{1,5})?)(?:[/?#]|\Z)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
"""What Markdown takes as it is behind a backslash."""

_EDGES = "".join(map(chr, range(33)))
"""Blanks and control characters, which browsers leave out around an address."""

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
    if _MAYBE.search(text) is None:
        return
    for reading in dict.fromkeys((text, _QUOTATION.sub(_without_quoting, text))):
        covered: set[int] = set()
        for kind, start, end in _addresses(reading):
            link = _link(kind, reading[start:end])
            if link is not None:
                covered.update(range(start, min(end, start + _COVERED)))
                yield link, start, end
        for match in _plain(reading):
            link = None if match.start() in covered else _link("text", match[0])
            if link is not None:
                yield link, *match.span()


def _without_quoting(lines: re.Match[str]) -> str:
    """Lines of a quotation in Markdown, with blanks in place of what marks them."""
    return _QUOTING.sub(lambda marks: " " * len(marks[0]), lines[0])


def _addresses(text: str) -> Iterator[tuple[Kind, int, int]]:
    for number, match in enumerate(_INLINE.finditer(text)):
        image = number >= MOST or _is_image(text, match.start())
        yield "image" if image else "link", *match.span(1)
    used = _image_labels(text)
    for match in _REFERENCE.finditer(text) if "]:" in text else ():
        yield "image" if _label(match[1]) in used else "link", *match.span(2)
    yield from _attributes(text)
    low = folded(text)
    for match in _STYLE.finditer(text) if any(word in low for word in _STYLE_WORDS) else ():
        yield "image", *match.span(1)


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
    """Whether the bracket that closes here belongs to an image; in doubt, as with brackets in code, it does."""
    depth = 0
    for at in range(closing, max(-1, closing - _BACK), -1):
        letter = text[at]
        if letter not in "[]" or (at != closing and text[at - 1 : at] == "\\"):
            continue
        depth += 1 if letter == "]" else -1
        if depth == 0:
            inner = text[at:closing]
            return text[max(0, at - 1) : at] == "!" or ("![" in inner and ("`" in inner or "<" in inner))
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


def _attributes(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Attributes with an address. One may be of several tags, as readers differ on which `<` begins one."""
    ends: dict[str, int] = {}
    left = _AGAIN * len(text)
    tags = list(_TAG.finditer(text))
    for tag, following in zip(tags, [*(one.start() for one in tags[1:]), len(text)], strict=False):
        end, read = _end_of_tag(text, tag.end()) if left > 0 else (len(text), 0)
        left -= read
        name = tag[1].lower() if tag[1].lower() in _CLICKABLE else ""
        ends[name] = max(end, ends.get(name, 0))
        stop = min(following, max(ends.values()))
        for attribute in _ATTRIBUTE.finditer(text, tag.end(), stop):
            owners = [name for name, end in ends.items() if end > attribute.start()]
            yield from _values(text, attribute, owners)


def _values(text: str, attribute: re.Match[str], owners: list[str]) -> Iterator[tuple[Kind, int, int]]:
    """The addresses of an attribute of one of these tags."""
    value, key = _VALUE.match(text, attribute.end()), attribute[1].lower()
    if value is None:
        return
    kind: Kind = "link" if all(name in _CLICKED.get(key, ()) for name in owners) else "image"
    start, end = value.span(value.lastindex or 0)
    if key not in _LISTS:
        yield kind, start, end
        return
    for one in re.finditer(r"[^\s,]\S*", text[start:end]):
        yield kind, start + one.start(), start + one.end()


def _end_of_tag(text: str, at: int) -> tuple[int, int]:
    """Where the tag whose name ends here ends, and how many characters were read for that."""
    start, read = at, 0
    while (found := _QUOTE_OR_END.search(text, at)) is not None:
        if found[0] == ">":
            return found.end(), read + found.end() - start
        closing = text.find(found[0][-1], found.end())
        read += 0 if closing >= 0 else len(text) - found.end()
        at = closing + 1 if closing >= 0 else found.end()
    return len(text), read + len(text) - start


def _link(kind: Kind, stated: str) -> Link | None:
    """The facts of an address; None for one that reaches no host or carries nothing."""
    stated = stated.strip("<>") if kind != "text" else stated.rstrip(".,;:!?)]}'\"")
    head = _as_read(stated[:_HEAD])
    if len(head) > _START and _matched(head) is None:
        return None
    match = _matched(_as_read(stated))
    if match is None or not match[3]:
        return None
    host, path, rest = match[3], match[4], match[5]
    query = rest.partition("#")[0] if kind == "image" else rest  # what loads an image sends no fragment
    data = max(0, len(query) - 1) + _carried(host) + _carried(path)
    if len(stated) >= _LONGEST:
        data = len(stated)
    if "@" in host:
        data += len(host.rpartition("@")[0])
    is_open = _OPEN.search(f"{host}{path}{query}") is not None
    if not data and not is_open:
        return None
    canonical = _CANONICAL.match(match[0])
    named = canonical is not None and not _carried(host)
    return Link(kind, canonical[1] if canonical is not None and named else None, data, is_open)


def _as_read(text: str) -> str:
    """An address as a browser reads it, but for what Markdown undoes."""
    return html.unescape(text).replace("\t", "").replace("\r", "").replace("\n", "").strip(_EDGES)


def _matched(url: str) -> re.Match[str] | None:
    return _ADDRESS.match(url) or _ADDRESS.match(_ESCAPED.sub(r"\1", url))


def _carried(part: str) -> int:
    """Characters of a host or path that look like data and not like names."""
    if len(part) < _SHORTEST_DATA:
        return 0
    found = sum(len(run) for run in _LONG.findall(part) if looks_random(run))
    return found + sum(
        len(one) for one in re.split(r"[/.\\]", part) if len(one) > _LONGEST_SEGMENT and not _LONG.search(one)
    )

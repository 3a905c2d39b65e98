"""Destinations in text: every URL and host, canonical or not, including disguised ones.

Only `https` and `http` URLs have a canonical form (`engine.facts.net.urls`). Everything else that a client might accept
as an address is a destination without parts:
another scheme, `//host`, `https:host`, a backslash, an escape, letters of full width, a user before the host.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from itertools import islice

from engine.facts.net.hosts import FILE_ENDINGS, bare_host
from engine.facts.net.urls import LONGEST, REFUSED, OriginFacts, reached
from engine.facts.text.disguises import undisguised

MOST = 1_000
"""Most destinations of one text; far more than a reviewer can judge."""

_SCHEME = 32
"""Characters of a scheme that are looked for before its colon; registered ones have up to 27."""

_SCHEME_CHARACTERS = string.ascii_letters + string.digits + "+.-"
_HINT = re.compile(r"[:/\\.@%&]|[^\x00-\x7f]|[0-9]{8}|0[xX]|localhost", re.IGNORECASE)
_START = re.compile(
    r"(?P<colon>:[\t\r\n]{0,8}[/\\])"
    r"|(?<![A-Za-z0-9+.-])(?i:https?|wss?|ftp|file|javascript|vbscript|blob|mailto|view-source|jar|intent):(?=\S)"
    r"|(?<![A-Za-z0-9+.-])(?i:data):(?=[\w/+.;=-]{0,128},)"
    r"(?!(?:image/(?:png|jpeg|gif|webp)|audio/\w{1,16});base64,[A-Za-z0-9+/]*={0,2}(?![\w+/=,]))"
    r"|(?<![:/\\\w])(?<!\w\+)[/\\][\t\r\n]{0,8}[/\\](?=[^\s/\\])"
)
"""A scheme and a slash; schemes that clients follow without one; two slashes that begin an address.

Pixels and sound in a `data` URL lead nowhere; `a+//b` is base64.
"""

_TWO_SLASHES = re.compile(r":[\t\r\n]{0,8}[/\\][\t\r\n]{0,8}[/\\]")
_LENIENT = frozenset(
    (
        *("http", "https", "ws", "wss", "ftp", "ftps", "sftp", "scp", "tftp", "file", "gopher", "gophers", "dict"),
        *("ldap", "ldaps", "imap", "imaps", "pop3", "pop3s", "smtp", "smtps", "smb", "smbs", "telnet", "mqtt", "mqtts"),
        *("rtsp", "rtmp", "rtmps", "git", "ssh", "svn", "rsync"),
    )
)
"""Schemes that clients also accept with one slash. In a word, `src:/app` is a folder or another host."""

_RUN = re.compile(r"[^\s\"<>`]*")
_PUNCTUATION = ".,;:!?)]}'*_|"
_HEAD = re.compile(r"[^/?#\s]*:?[/\\]{0,3}[^/\\?#\s\"<>`]*")


def url_destinations(text: str) -> list[OriginFacts]:
    """A text that is declared as a URL: the URL itself, then any others in its query."""
    return [reached(text), *(_origin(run) for start, run in _found(text) if start != 0)]


def destinations(text: str, endings: frozenset[str] = FILE_ENDINGS) -> list[OriginFacts]:
    """The host that a text is, then all URLs in it; `endings` are those of file names. Never raises."""
    host = whole_host(text, endings)
    return [*([] if host is None else [host]), *urls(text, endings)]


def whole_host(text: str, endings: frozenset[str]) -> OriginFacts | None:
    """The host that a text is as a whole, without a scheme, also in disguise; None for any other text."""
    if _HINT.search(text) is None:
        return None
    stripped = text.strip()
    if (host := bare_host(stripped, endings)) is not None:
        return host
    plain = undisguised(stripped)
    return REFUSED if plain != stripped and bare_host(plain.strip(), endings) is not None else None


def urls(text: str, endings: frozenset[str] = FILE_ENDINGS) -> list[OriginFacts]:
    """All URLs in a text, and nothing that is only a host."""
    return [_origin(run) for _, run in _found(text, endings)] if _HINT.search(text) else []


def without_urls(text: str, endings: frozenset[str] = FILE_ENDINGS) -> str:
    """The text with a space in the place of each URL."""
    pieces, position = [], 0
    for start, run in islice(_runs(text, endings), MOST):
        if start >= position:
            pieces.append(text[position:start])
            position = start + len(run)
    return " ".join((*pieces, text[position:]))


def _origin(run: str | None) -> OriginFacts:
    """The origin of a URL in a text, without the punctuation of the sentence behind it."""
    if run is None or (found := reached(run)).canonical:
        return REFUSED if run is None else found
    return reached(run.rstrip(_PUNCTUATION))


def _found(text: str, endings: frozenset[str] = FILE_ENDINGS) -> list[tuple[int, str | None]]:
    """Each URL once, with its place; None for one that shows only without its disguise, or that is too many."""
    runs = list(islice(_runs(text, endings), MOST))
    found: dict[str, int] = {}
    for start, run in runs:
        found.setdefault(run, start)
    heads = {_head(run) for run in found}
    plain = undisguised(text)
    hidden = plain != text and any(_head(run) not in heads for _, run in islice(_runs(plain, endings), MOST))
    rest: list[tuple[int, str | None]] = [(-1, None)] if hidden or len(runs) == MOST else []
    return [*((start, run) for run, start in found.items()), *rest]


def _runs(text: str, endings: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where URLs begin, and each as far as one can reach; one in the query of another is one too."""
    for match in _START.finditer(text):
        start = match.start()
        if match["colon"]:
            before = text[max(0, start - _SCHEME) : start]
            scheme = before[len(before.rstrip(_SCHEME_CHARACTERS)) :].lstrip(string.digits + "+.-")
            lenient = endings is FILE_ENDINGS or scheme.lower() in _LENIENT
            if not scheme or not (lenient or _TWO_SLASHES.match(text, start)):
                continue
            start -= len(scheme)
        run = _RUN.match(text, start, start + LONGEST + 1)
        yield start, "" if run is None else run[0]


def _head(run: str) -> str:
    match = _HEAD.match(run)
    return "" if match is None else match[0].lower()

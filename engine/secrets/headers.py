"""Credentials in HTTP headers, web tokens, and blocks of private keys."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from engine.secrets.finder import Finder, same, spans
from engine.secrets.lines import Lines, Span, beginning
from engine.secrets.stand_ins import DOTTED, OPERATORS, PLACEHOLDER, REFERENCE, VERDICTS, stands_in

_KEY, _KEY_BODY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?!\s{0,40}\.{3}\s{0,40}-----END )",
    r"(?:.*?-----END [A-Z0-9 ]{1,60}-----|.*)",
)
_KEY_BLOCK = re.compile(rf"{_KEY}{_KEY_BODY}|PuTTY-User-Key-File-[0-9].*", re.DOTALL)
_KEY_ALONE = r"[\"'`](?![\s,+]{0,40}[\"'`][A-Za-z0-9+/\\]{16})"
"""The end of the first line of a key, if it is a text of its own in a program and no other text continues the key."""
_KEY_NOT_NAMED = re.compile(rf"{_KEY}(?!{_KEY_ALONE}){_KEY_BODY}|PuTTY-User-Key-File-[0-9].*", re.DOTALL)
_WEB_TOKEN = re.compile(
    r"eyJ(?<![A-Za-z0-9]eyJ)"
    r"(?:[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*)?|(?P<other>[A-Za-z0-9_-]*+))"
)
"""A token, or another word, which is not searched for a token again at each of its characters."""
_HEADER = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:proxy-)?authorization[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?(?!\[redacted:)"
    r"(?:(?:bearer|basic|digest|token)[ \t]{1,8}\\?[\"'](?=[a-z0-9]))?[^\r\n\"']+"
    r"|(?<![A-Za-z0-9-])(?:set-)?cookie[\"']?[ \t]{0,8}:[ \t]{0,8}(?!\[redacted:)[^\r\n\"']+"
)
_CREDENTIALS = re.compile(
    r"(?i)[^:=]{0,40}[:=][ \t]{0,8}(?P<quote>[\"']?)[ \t\"']{0,8}"
    r"(?P<scheme>(?:bearer|basic|digest|token)[ \t]{1,8}(?:\\?[\"'](?=[a-z0-9]))?)?"
    r"(?!(?:bearer|basic|digest|token)(?:[ \t`]|\Z)|https?://|[a-z]{1,20}-(?:bearer|token)[ \t]{1,8}[$<{%])"
    r"(?P<value>[a-z0-9+/._~-]{2}[^\s\"',;`\\]*)"
)
_WORD = r"(?:\(?[A-Za-z][A-Za-z-]*\)?|[0-9.]{1,4})"
_PROSE = re.compile(rf"{_WORD}(?: {_WORD}){{3,}}(?:,|[ \t.;|]*(?![^\r\n]))")
"""Four words or more, as in `Authorization: role-based access control only`; a header has a scheme and a credential."""
_COOKIE = re.compile(r"[^\s=]=(?![$<{%*])[^\s=]")
_BEARER = re.compile(r"(?i)(?<![A-Za-z0-9])bearer[ \t]{1,8}(?:\\?[\"'])?([A-Za-z0-9._~+/=-]{6,})")
_BASIC = re.compile(r"(?ai)(?<![A-Za-z0-9])basic[ \t]{1,8}(?:\\?[\"'])?([A-Za-z0-9+/]{4,}={0,2})")
_CAPITALIZED = re.compile(r"[A-Z]?[a-z]+")
"""A word of a title such as `Basic Concepts`."""
_OPAQUE = 20
"""Characters from which a word after `Bearer` is a token even without a digit."""
_HEADERS = beginning(_HEADER, (b"authorization", b"cookie"), before=len("proxy-"))
_BEARERS = beginning(_BEARER, (b"bearer",))
_BASICS = beginning(_BASIC, (b"basic",))


def _web_tokens(lines: Lines) -> Iterator[Span]:
    return (match.span() for match in _WEB_TOKEN.finditer(lines.text) if match["other"] is None)


def _bearers(lines: Lines) -> Iterator[Span]:
    for match in _BEARERS(lines):
        token = match[1].rstrip(".=-")
        digits = any(character.isdigit() for character in token)
        if PLACEHOLDER.fullmatch(token) is None and (digits or (len(token) >= _OPAQUE and not stands_in(token))):
            yield match.span()


def _basics(lines: Lines) -> Iterator[Span]:
    for match in _BASICS(lines):
        padded = match[1].rstrip("=")
        if _CAPITALIZED.fullmatch(match[1]):
            continue
        try:
            decoded = base64.b64decode(padded + "=" * (-len(padded) % 4))
        except binascii.Error:
            continue
        if b":" in decoded and (decoded.decode("latin-1").isprintable() or _is_utf8(decoded)):
            yield match.span()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(lines: Lines) -> Iterator[Span]:
    """Headers, except statements about cookies: a real cookie has a name and a value."""
    for match in _HEADERS(lines):
        if _COOKIE.search(match[0]) if "cookie" in match[0][:10].lower() else _has_credentials(match[0]):
            yield match.span()


def _has_credentials(header: str) -> bool:
    """Whether the value of a header is a credential, and no example, call or name in code."""
    match = _CREDENTIALS.match(header)
    if match is None or PLACEHOLDER.fullmatch(match["value"]):
        return False
    if match["scheme"] and match["value"][2:] and stands_in(match["value"]):
        return False
    if match["quote"] or match["scheme"]:
        return True
    if REFERENCE.match(header, match.start("value")) or _PROSE.match(header, match.start("value")):
        return False
    bare, behind = match["value"].rstrip(")]}"), header[match.end() :].split()
    alone = not behind or not behind[0][0].isalnum() or behind[0] in OPERATORS
    in_code = bare != match["value"] or header[match.end() :].startswith(",") or " = " in header[: match.start("value")]
    return not (alone and DOTTED.fullmatch(bare) and (in_code or "." in bare or bare.lower() in VERDICTS))


FINDERS = (
    Finder(
        (b"-----begin", b"putty"),
        spans(lambda lines: _KEY_BLOCK.finditer(lines.text)),
        spans(lambda lines: _KEY_NOT_NAMED.finditer(lines.text)),
    ),
    same((b"eyj",), _web_tokens),
    Finder((b"auth", b"cookie"), spans(_HEADERS), _headers),
    same((b"bearer",), _bearers),
    same((b"basic",), _basics),
)

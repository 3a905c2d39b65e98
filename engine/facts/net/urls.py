r"""Facts about URLs and service addresses: one that is not canonical has no parts; nothing is repaired.

The text is matched by our own grammar, then parsed by httpx (which connects) and by urllib, and
all three must agree. Parsers differ on hostile input (`https://evil.org\@good.org/` has two hosts),
so where any of them would have to guess there is no host that a rule could compare.

Services are named by `https` URLs, and on the same machine also by `http` to the loopback interface. No query:
it would carry secrets into records. httpx is imported here only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from urllib.parse import urlsplit

from engine.facts.net.addresses import is_isatap
from engine.model import Model

LONGEST = 2_048
"""Characters (all ASCII) of a URL; what the strictest common servers and proxies accept."""

_LONGEST_HOST = 253
"""Characters of a host name in text form (RFC 1035, 255 octets on the wire)."""

_DEFAULT_PORT, _LAST_PORT = 443, 65_535
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# The last label starts with a letter: this refuses every IPv4 spelling (`127.1`, `0x7f.1`, `2130706433`).
_HOST = re.compile(rf"(?:{_LABEL}\.)+(?=[a-z]){_LABEL}")
_CHARACTER = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2}"
_URL = re.compile(
    r"(?P<scheme>https)://(?P<host>[a-z0-9.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?"
    rf"(?P<target>(?P<path>/(?:{_CHARACTER})*)(?:\?(?P<query>(?:{_CHARACTER}|\?)+))?)"
)
_ESCAPE = re.compile(r"%([0-9A-F]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class UrlFacts(Model):
    """The facts of a URL; `scheme`, `host` and `port` only if it is canonical."""

    canonical: bool
    scheme: str | None = None
    host: str | None = None
    port: int | None = None


_REFUSED = UrlFacts(canonical=False)


def url_facts(text: str) -> UrlFacts:
    """The parts of a canonical `https` URL, else `canonical=False` and nothing more. Never raises.

    An absent port is 443; a written `:443` is not canonical. Which ports are allowed is policy.
    """
    if len(text) > LONGEST or (match := _URL.fullmatch(text)) is None:
        return _REFUSED
    port = int(match["port"] or _DEFAULT_PORT)
    if port > _LAST_PORT or (match["port"] is not None and port == _DEFAULT_PORT):
        return _REFUSED
    if any(segment in {".", ".."} for segment in match["path"].split("/")):
        return _REFUSED
    if any(chr(int(code, 16)) in _UNRESERVED for code in _ESCAPE.findall(match["target"])):
        return _REFUSED
    if not canonical_host(match["host"]) or not _parsers_agree(text, match):
        return _REFUSED
    return UrlFacts(canonical=True, scheme=match["scheme"], host=match["host"], port=port)


_HOST_ALONE = re.compile(r"(?i:https)://(?P<host>[a-z0-9.-]+)(?::443)?(?:[/?#][^\\@\x00-\x20\x7f]*)?")


def plain_host(text: str) -> str | None:
    """The host of a URL that is not canonical only beside its host: to explain a refusal, never to connect."""
    match = _HOST_ALONE.fullmatch(text) if len(text) <= LONGEST else None
    return match["host"] if match is not None and canonical_host(match["host"]) else None


def canonical_host(text: str) -> bool:
    """Whether this is a host name in its only spelling: lower-case labels, at least two, no address.

    International names are written as `xn--` labels that survive being decoded and encoded again.
    """
    if len(text) > _LONGEST_HOST or _HOST.fullmatch(text) is None:
        return False
    return all(_label_survives(label) for label in text.split(".") if label.startswith("xn--"))


def _label_survives(label: str) -> bool:
    import httpx

    ascii_name = f"{label}.example"
    try:
        unicode_name = httpx.URL(f"https://{ascii_name}/").host
        reencoded = httpx.URL(f"https://{unicode_name}/").raw_host
    except (httpx.InvalidURL, ValueError):
        return False
    return unicode_name != ascii_name and reencoded == ascii_name.encode("ascii")


def _parsers_agree(text: str, match: re.Match[str]) -> bool:
    import httpx

    scheme, host, port, target = match.group("scheme", "host", "port", "target")
    try:
        url, split = httpx.URL(text), urlsplit(text)
    except (httpx.InvalidURL, ValueError):
        return False
    by_httpx = (url.scheme, url.raw_host, url.port, url.raw_path, url.userinfo, url.fragment)
    number, authority = (None, host) if port is None else (int(port), f"{host}:{port}")
    by_us = (scheme, host.encode("ascii"), number, target.encode("ascii"), b"", "")
    return by_httpx == by_us and split == (scheme, authority, match["path"], match["query"] or "", "")


_HTTP_PORT = 80
_LOOPBACK = re.compile(
    r"(?P<origin>http://(?:localhost|127\.0\.0\.1|\[::1\])(?::(?P<port>[1-9][0-9]{0,4}))?)"
    r"(?P<path>/(?:[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*/?)?)"
)


_NO_PATH = re.compile(r"https?://[^/?#]+")


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """The facts of an address; `origin` (scheme, host, port if not the default) only if it is canonical.

    `path` only where it has one reading, whatever a server decodes or removes.
    """

    canonical: bool
    origin: str | None = None
    path: str | None = None


REFUSED = OriginFacts(canonical=False)
"""The facts of an address that is not canonical."""


def origin_facts(text: str) -> OriginFacts:
    """The origin of a service's address, else `canonical=False` and nothing more. Never raises.

    An empty path is the path `/` (RFC 3986, section 6.2.3).
    """
    if len(text) > LONGEST or "?" in text:
        return REFUSED
    if _NO_PATH.fullmatch(text) is not None:
        text = f"{text}/"
    if (match := _LOOPBACK.fullmatch(text)) is not None:
        return _loopback(match)
    return https_origin(text)


def https_origin(text: str) -> OriginFacts:
    """The origin of an `https` URL, with a query or without. Never raises."""
    facts = url_facts(text)
    if not facts.canonical:
        return REFUSED
    port = "" if facts.port == _DEFAULT_PORT else f":{facts.port}"
    return OriginFacts(canonical=True, origin=f"{facts.scheme}://{facts.host}{port}")


def _loopback(match: re.Match[str]) -> OriginFacts:
    port = None if match["port"] is None else int(match["port"])
    if port == _HTTP_PORT or (port is not None and port > _LAST_PORT):
        return REFUSED
    if any(segment in {".", ".."} for segment in match["path"].split("/")):
        return REFUSED
    return OriginFacts(canonical=True, origin=match["origin"])


_REACHED = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:]+\])(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<target>(?P<path>/[^?#]*)?(?:\?[^#]*)?(?:#.*)?)"
)
_NO_TARGET = re.compile(r"[\s\\\"<>`]")
_DEFAULT_PORTS = {"http": _HTTP_PORT, "https": _DEFAULT_PORT}
_PLAIN_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)+")
_MAPPED, _NAT64 = 0xFFFF, 0x0064_FF9B << 64
"""Bits above the last 32 of IPv6 addresses that contain an IPv4 address (RFC 4291, RFC 6052)."""

_LOOSE_ESCAPES = frozenset("%/\\")
"""Characters whose escapes some servers decode before they look for the parts of a path."""


def reached(text: str) -> OriginFacts:
    """Where a client would connect to for a URL, whatever its path, query and fragment are. Never raises.

    The host is a canonical name, an address in its only spelling, or `localhost`; the scheme is `https` or `http`.
    """
    if len(text) > LONGEST or (match := _REACHED.fullmatch(text)) is None:
        return REFUSED
    scheme, host, port, target, path = match.group("scheme", "host", "port", "target", "path")
    number = None if port is None else int(port)
    if number is not None and (number > _LAST_PORT or number == _DEFAULT_PORTS[scheme]):
        return REFUSED
    if _NO_TARGET.search(target) is not None or not target.isprintable():
        return REFUSED
    if not (host == "localhost" or canonical_host(host) or _canonical_address(host)):
        return REFUSED
    if not _clients_agree(text, scheme, host, number):
        return REFUSED
    origin = f"{scheme}://{host}" if port is None else f"{scheme}://{host}:{port}"
    return OriginFacts(canonical=True, origin=origin, path=_one_reading(path or "/"))


def _canonical_address(host: str) -> bool:
    """Whether this is an address in its only spelling; one that contains another address is not."""
    try:
        address = ip_address(host[1:-1] if host.startswith("[") else host)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return str(address) == host
    embedded = int(address) >> 32 in {0, _MAPPED, _NAT64} and int(address) > 1
    holds_another = embedded or address.sixtofour is not None or address.teredo is not None or is_isatap(address)
    return f"[{address}]" == host and not holds_another


def _clients_agree(text: str, scheme: str, host: str, port: int | None) -> bool:
    import httpx

    try:
        url, split = httpx.URL(text), urlsplit(text)
        found = (split.scheme, split.netloc, split.port)
    except (httpx.InvalidURL, ValueError):
        return False
    authority = host if port is None else f"{host}:{port}"
    by_httpx = (url.scheme, url.raw_host, url.port, url.userinfo)
    return by_httpx == (scheme, host.strip("[]").encode("ascii"), port, b"") and found == (scheme, authority, port)


def _one_reading(path: str) -> str | None:
    """The path of a URL, unless parts of it may be decoded, removed or joined on the way."""
    segments = path[1:].split("/")
    plain = _PLAIN_PATH.fullmatch(path) is not None and all(segments[:-1])
    dotted = any(segment.partition(";")[0] in {".", ".."} for segment in segments)
    decoded = {chr(int(code, 16)) for code in _ESCAPE.findall(path)}
    loose = any(one in _UNRESERVED or one in _LOOSE_ESCAPES or not one.isprintable() for one in decoded)
    return path if plain and not dotted and not loose else None

"""Facts about the address of a service: its origin, or nothing when it is not exactly canonical.

Services are named by `https` URLs, as `engine.facts.urls` reads them, and on the same machine also by
`http` to the loopback interface. No query: it would carry secrets into records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.facts.urls import LONGEST, url_facts

_HTTPS_PORT, _HTTP_PORT, _LAST_PORT = 443, 80, 65_535
_LOOPBACK = re.compile(
    r"(?P<origin>http://(?:localhost|127\.0\.0\.1|\[::1\])(?::(?P<port>[1-9][0-9]{0,4}))?)"
    r"(?P<path>/(?:[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*/?)?)"
)


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """What an address says; `origin` (scheme, host, port if not the usual one) only when it is canonical."""

    canonical: bool
    origin: str | None = None


_REFUSED = OriginFacts(canonical=False)


def origin_facts(text: str) -> OriginFacts:
    """The origin of a service's address, else `canonical=False` and nothing more. Never raises."""
    if len(text) > LONGEST or "?" in text:
        return _REFUSED
    if (match := _LOOPBACK.fullmatch(text)) is not None:
        return _loopback(match)
    return https_origin(text)


def https_origin(text: str) -> OriginFacts:
    """The origin of an `https` URL, with a query or without. Never raises."""
    facts = url_facts(text)
    if not facts.canonical:
        return _REFUSED
    port = "" if facts.port == _HTTPS_PORT else f":{facts.port}"
    return OriginFacts(canonical=True, origin=f"{facts.scheme}://{facts.host}{port}")


def _loopback(match: re.Match[str]) -> OriginFacts:
    port = None if match["port"] is None else int(match["port"])
    if port == _HTTP_PORT or (port is not None and port > _LAST_PORT):
        return _REFUSED
    if any(segment in {".", ".."} for segment in match["path"].split("/")):
        return _REFUSED
    return OriginFacts(canonical=True, origin=match["origin"])

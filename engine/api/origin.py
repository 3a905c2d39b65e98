"""How a request came here: the host it was sent to, the site that sent it, a proxy in between.

A browser on this machine is a caller that any site can use, and a proxy on this machine makes each of its clients
look like a caller on this machine. So both are recognized before anything else of a request counts.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address

from engine.api.headers import HeaderError
from engine.api.messages import Head, Peer

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD"})
_OWN_SITE = frozenset({b"same-origin", b"none"})
_PROXY = frozenset({b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"true-client-ip", b"cf-connecting-ip"})


@dataclass(frozen=True, slots=True)
class Site:
    """The names under which a listener answers: this machine's, its own address, and `names` from the command line.

    An address is as good as a name where the listener is reached by others: no site can make a browser send it.
    """

    host: str = "127.0.0.1"
    loopback: bool = True
    names: frozenset[str] = frozenset()
    _known: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        own = {"localhost", self.host.lower(), socket.gethostname().lower()}
        object.__setattr__(self, "_known", frozenset({*own, *(name.lower() for name in self.names)}))

    def check(self, head: Head, peer: Peer) -> None:
        """Refuse another host, another site, and a body for which two readers could find different ends.

        Raises HeaderError.
        """
        headers = head.headers
        host = headers.get(b"host", b"")
        name, address = _parsed(host)
        if not name or b"host" in head.repeated:
            raise HeaderError("host", "must occur once, with a name", remedy="send one `Host` header")
        if not (name in self._known or address == "loopback" or (address and not self.loopback)):
            raise HeaderError(
                "host",
                "names a host that this engine does not serve",
                remedy="use 127.0.0.1 or localhost, or start with `engine serve --server-name NAME`",
                code="engine.host_unknown",
            )
        coding = headers.get(b"transfer-encoding")
        if coding is not None and (coding.lower() != b"chunked" or head.version != "1.1"):
            raise HeaderError("transfer-encoding", "is not supported", remedy="send `chunked` alone, in HTTP/1.1")
        if head.method not in _SAFE:
            _check_site(head, host, tls=peer.tls)


def is_forwarded(head: Head) -> bool:
    """Whether a proxy forwarded this request, as far as its headers show."""
    return any(name in _PROXY or name.startswith(b"x-forwarded") for name in head.headers)


def check_direct(head: Head) -> None:
    """Refuse a request that a proxy forwarded, where being on this machine identifies the caller.

    Raises HeaderError.
    """
    if is_forwarded(head):
        raise HeaderError(
            "forwarded",
            "or a similar header shows that this request came through a proxy; without a token, every client of "
            "the proxy would count as a caller on this machine",
            remedy="set a token: `engine tokens issue`, or the variable AGENTA_AGENT_RUNNER_TOKEN",
            code="engine.forwarded",
        )


def _check_site(head: Head, host: bytes, *, tls: bool) -> None:
    site, origin = head.headers.get(b"sec-fetch-site"), head.headers.get(b"origin")
    own = {b"https://" + host.lower()} if tls else {b"http://" + host.lower(), b"https://" + host.lower()}
    if (site is None or site.lower() in _OWN_SITE) and (origin is None or origin.lower() in own):
        return
    raise HeaderError(
        "origin" if origin is not None else "sec-fetch-site",
        "shows that this request came from a web page of another site",
        remedy="send the request from a program, or from this engine's page /docs",
        code="engine.origin_foreign",
    )


@lru_cache(maxsize=256)
def _parsed(host: bytes) -> tuple[str, str]:
    """The name in lower case, empty if invalid; and for an address `loopback` or `other`, otherwise nothing."""
    found = _HOST.fullmatch(host.strip())
    if found is None:
        return "", ""
    name = found[1].decode("ascii").lower()
    try:
        address = ip_address(name.strip("[]"))
    except ValueError:
        return ("" if name.startswith("[") else name), ""
    return name, "loopback" if address.is_loopback else "other"

"""Facts about the address a listener would bind: parsed here, never resolved, never taken on trust.

Only the exact word `localhost` and addresses in their own notation say where they are. Every other
text is a name, and a name says nothing: `127.1`, `localhost.` and `0x7f000001` are names too.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Literal

Reach = Literal["loopback", "unspecified", "private", "shared", "link_local", "global", "name", "other"]
"""Who can reach a listener there. `unspecified` is every interface, `shared` is RFC 6598, `name` is unknown."""

_LOCALHOST = "localhost"
_SHARED = IPv4Network("100.64.0.0/10")


@dataclass(frozen=True, slots=True)
class AddressFacts:
    """A host to bind as it will be used, and who can reach it there."""

    host: str
    reach: Reach


def address_facts(text: str) -> AddressFacts:
    """The facts of a host as it was written. Never raises; an address comes back in its only spelling.

    An IPv4 address inside an IPv6 one is the IPv4 address: the kernel binds exactly that.
    """
    if text == _LOCALHOST:
        return AddressFacts(text, "loopback")
    try:
        address = ip_address(text)
    except ValueError:
        return AddressFacts(text, "name")
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return AddressFacts(str(address), _reach(inner or address))


def _reach(address: IPv4Address | IPv6Address) -> Reach:
    kinds: tuple[tuple[Reach, bool], ...] = (  # the first that holds: link-local addresses are private too, for one
        ("unspecified", address.is_unspecified),
        ("loopback", address.is_loopback),
        ("other", address.is_multicast or address.is_reserved),
        ("link_local", address.is_link_local),
        ("shared", isinstance(address, IPv4Address) and address in _SHARED),
        ("private", address.is_private),
        ("global", address.is_global),
    )
    return next((kind for kind, holds in kinds if holds), "other")

"""Facts about addresses: of a listener, parsed and never resolved, and of a host name, from a lookup.

For binding, only the exact word `localhost` and addresses in standard notation are classified. Every other
text is a name with an unknown address: `127.1`, `localhost.` and `0x7f000001` are names too.

Which ranges of addresses may be reached is policy. An address with a scope id means something on one link of
one machine only, and an ISATAP address contains an IPv4 address at a position that no address range covers.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from socket import AF_INET, AF_INET6, inet_ntop
from typing import Literal

from engine.model import Model

Reach = Literal["loopback", "unspecified", "private", "shared", "link_local", "global", "name", "other"]
"""Who can reach a listener there. `unspecified` is every interface, `shared` is RFC 6598, `name` is unknown."""

_LOCALHOST = "localhost"
_SHARED = IPv4Network("100.64.0.0/10")


def bound_address(text: str) -> tuple[str, Reach]:
    """A host to bind as it will be used, and who can reach it there. Never raises.

    An address comes back in its only spelling. An IPv4 address inside an IPv6 one is the IPv4 address: the kernel
    binds exactly that.
    """
    if text == _LOCALHOST:
        return text, "loopback"
    try:
        address = ip_address(text)
    except ValueError:
        return text, "name"
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address), _reach(inner or address)


def _reach(address: IPv4Address | IPv6Address) -> Reach:
    kinds: tuple[tuple[Reach, bool], ...] = (  # the first match: link-local addresses are also private, for example
        ("unspecified", address.is_unspecified),
        ("loopback", address.is_loopback),
        ("other", address.is_multicast or address.is_reserved),
        ("link_local", address.is_link_local),
        ("shared", isinstance(address, IPv4Address) and address in _SHARED),
        ("private", address.is_private),
        ("global", address.is_global),
    )
    return next((kind for kind, holds in kinds if holds), "other")


_V4 = 4
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""Bits 64 to 95 of an ISATAP address (RFC 5214, section 6.1)."""


class HostAddress(Model):
    """One address. `text` is present only if it is in canonical form and has no scope id."""

    id: str
    family: Literal["ipv4", "ipv6", "unknown"]
    isatap: bool
    scoped: bool
    text: str | None = None


def host_addresses(answers: tuple[str, ...]) -> tuple[HostAddress, ...]:
    """The facts of every answer of a lookup, in a fixed order and each once. Never raises."""
    return tuple(_facts(text, index) for index, text in enumerate(sorted(set(answers))))


def is_isatap(address: IPv6Address) -> bool:
    """Whether an address contains an IPv4 address as ISATAP does."""
    return (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP


def _facts(text: str, index: int) -> HostAddress:
    try:
        address = ip_address(text)
    except ValueError:
        return HostAddress(id=f"#{index}", family="unknown", isatap=False, scoped="%" in text)
    scoped = isinstance(address, IPv6Address) and address.scope_id is not None
    plain = not scoped and inet_ntop(AF_INET if address.version == _V4 else AF_INET6, address.packed) == text
    return HostAddress(
        id=text if plain else f"#{index}",
        family="ipv6" if isinstance(address, IPv6Address) else "ipv4",
        isatap=isinstance(address, IPv6Address) and is_isatap(address),
        scoped=scoped,
        text=text if plain else None,
    )

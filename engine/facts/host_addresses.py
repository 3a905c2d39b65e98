"""Facts about the addresses that a host name has: of which family, in their only spelling, and what no range can say.

Which ranges of addresses may be reached is policy. An address with a scope id means something on one link of
one machine only, and an ISATAP address holds an IPv4 address at a place that no range of addresses covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6, inet_ntop
from typing import Literal

_V4 = 4
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""Bits 64 to 95 of an ISATAP address (RFC 5214, section 6.1)."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """One address. `text` is there only when it is in the spelling of the system, and without a scope id."""

    id: str
    family: Literal["ipv4", "ipv6", "unknown"]
    isatap: bool
    scoped: bool
    text: str | None = None


def host_addresses(answers: tuple[str, ...]) -> tuple[HostAddress, ...]:
    """The facts of every answer of a lookup, in a fixed order and each once. Never raises."""
    return tuple(_facts(text, index) for index, text in enumerate(sorted(set(answers))))


def _facts(text: str, index: int) -> HostAddress:
    try:
        address = ip_address(text)
    except ValueError:
        return HostAddress(f"#{index}", "unknown", isatap=False, scoped="%" in text)
    scoped = isinstance(address, IPv6Address) and address.scope_id is not None
    plain = not scoped and inet_ntop(AF_INET if address.version == _V4 else AF_INET6, address.packed) == text
    return HostAddress(
        id=text if plain else f"#{index}",
        family="ipv6" if isinstance(address, IPv6Address) else "ipv4",
        isatap=isinstance(address, IPv6Address) and (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP,
        scoped=scoped,
        text=text if plain else None,
    )

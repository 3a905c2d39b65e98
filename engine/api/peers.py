"""The other end of a connection: the user at the control socket, a client certificate, an address."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from engine.administration.users import user_of
from engine.api.messages import Peer
from engine.model import Caller, Via

_SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The names of RFC 4514, section 3."""


PeerOf = Callable[[asyncio.BaseTransport], Peer | None]
"""The peer at the other end of a transport; None if it has already disconnected."""


def network_peer(transport: asyncio.BaseTransport) -> Peer | None:
    """The peer of a TCP connection, None if it has disconnected; a caller if its certificate was verified."""
    name = transport.get_extra_info("peername")
    if not name:
        return None
    certificate = transport.get_extra_info("peercert")
    caller = None
    if certificate and (principal := subject(certificate.get("subject", ()))):
        caller = Caller(via=Via.CERTIFICATE, principal=principal)
    address = str(name[0])
    tls = transport.get_extra_info("ssl_object") is not None
    loopback = is_loopback(address)
    account = f"{address} {name[1]}" if loopback else _network(address)
    return Peer(address=address, loopback=loopback, account=account, tls=tls, caller=caller)


def control_peer(transport: asyncio.BaseTransport) -> Peer:
    """The peer of the control socket: the user whom the kernel names, when it is ours or root."""
    uid = _uid(transport)
    caller = Caller(via=Via.CONTROL, principal=user_of(uid)) if uid in {0, os.getuid()} else None
    name = f"uid:{uid}"
    return Peer(address=name, loopback=False, account=name, control=caller is not None, caller=caller)


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _network(address: str) -> str:
    """What one caller has of addresses: one of IPv4, a /64 of IPv6 (RFC 6177)."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv4Address) or found.ipv4_mapped is not None:
        return address
    return str(IPv6Address(int(found) >> 64 << 64))


def subject(names: Any) -> str:
    """A distinguished name from `ssl`, in the form of RFC 4514: last part first, escaped."""
    return ",".join(
        "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in relative)
        for relative in reversed(names)
    )


def _escaped(value: str) -> str:
    text = "".join(f"\\{character}" if character in '"+,;<>\\' else character for character in value)
    text = text.replace("\0", "\\00")
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if len(value) > 1 and value.endswith(" ") else text


def _uid(transport: asyncio.BaseTransport) -> int:
    peer = transport.get_extra_info("socket")
    with socket.socket(fileno=os.dup(peer.fileno())) as own:
        credentials = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", credentials)[1]
    return uid

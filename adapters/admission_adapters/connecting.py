"""Connects to exactly one address that was decided on; nothing is resolved."""

from __future__ import annotations

import socket
from collections.abc import Callable


def connected(address: str, port: int, seconds: float, opened: Callable[[socket.socket], None]) -> socket.socket:
    """A socket that is connected to this address; `opened` gets it before it connects. Raises OSError."""
    own = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        opened(own)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own.settimeout(seconds)
        own.connect((address, port))
        peer = own.getpeername()
    except BaseException:
        own.close()
        raise
    if peer[:2] != (address, port):
        own.close()
        raise ConnectionError("another peer")
    return own

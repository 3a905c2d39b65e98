"""Connects to addresses that were decided on; nothing is resolved."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence


def connected(
    addresses: Sequence[str], port: int, left: Callable[[], float], opened: Callable[[socket.socket], None]
) -> socket.socket:
    """A socket that is connected to the first of these addresses that answers, in their order.

    `left` is how many seconds all of them have together; `opened` gets each socket before it connects. Raises OSError,
    and what both raise.
    """
    for number, address in enumerate(addresses, 1):
        try:
            return _connected(address, port, left() / (len(addresses) - number + 1), opened)
        except OSError:
            if number == len(addresses):
                raise
    raise ConnectionError("no address")


def _connected(address: str, port: int, seconds: float, opened: Callable[[socket.socket], None]) -> socket.socket:
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

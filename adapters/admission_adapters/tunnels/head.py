"""The head of a request to the proxy: where it leads, and whether it asks for a tunnel.

Nothing is repaired: a destination that is not canonical is decided on as it was written, and refused.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass

HEAD_BYTES = 8 << 10
"""Bytes of a head; clients send some hundred."""

_END = b"\r\n\r\n"
_CONNECT = re.compile(rb"CONNECT ([!-~]{1,512}) HTTP/1\.[01]")
_OTHER = re.compile(rb"[A-Z]{1,16} ([a-z]{1,16}://[^/?#\s]{1,512})[!-~]* HTTP/1\.[01]")
_DEFAULT_PORT = ":443"


@dataclass(frozen=True, slots=True)
class Head:
    """`url` is where a request leads, without path and query; None if that cannot be read. `rest` came after it."""

    tunnel: bool = False
    url: str | None = None
    rest: bytes = b""


def read_head(client: socket.socket, deadline: float) -> Head:
    """Read a head; whatever is none, is too long or comes too late leads nowhere."""
    data = b""
    while _END not in data:
        try:
            client.settimeout(max(0.001, deadline - time.monotonic()))
            piece = client.recv(HEAD_BYTES + 1 - len(data))
        except OSError:
            return Head()
        data += piece
        if not piece or len(data) > HEAD_BYTES:
            return Head()
    head, _, rest = data.partition(_END)
    line = head.split(b"\r\n", 1)[0]
    if (match := _CONNECT.fullmatch(line)) is not None:
        authority = match[1].decode("ascii").lower().removesuffix(_DEFAULT_PORT)
        return Head(tunnel=True, url=f"https://{authority}/", rest=rest)
    if (match := _OTHER.fullmatch(line)) is not None:
        return Head(url=f"{match[1].decode('ascii').lower()}/")
    return Head()

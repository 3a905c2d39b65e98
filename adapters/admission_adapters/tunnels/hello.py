"""The beginning of a TLS connection: the name that the client asks its server for (RFC 8446, RFC 6066).

The whole ClientHello has to be in one record. A hello that hides its name (ECH) is refused: it would not be known
which host of a shared front it is for. A server may ask for a second hello (HelloRetryRequest); it is held to the same.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

_RECORD_HEAD, _RECORD_BYTES = 5, 1 << 14
_HANDSHAKE, _CLIENT_HELLO, _SERVER_HELLO, _MAJOR = 0x16, 0x01, 0x02, 0x03
_SERVER_NAME, _ENCRYPTED_HELLO = 0x0000, 0xFE0D
_HOST_NAME = 0
_RANDOM_AND_VERSION = 34
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a server hello that asks for a second hello: the SHA-256 of `HelloRetryRequest`."""
_COMPATIBLE = bytes((0x14, 0x03, 0x03, 0x00, 0x01, 0x01))
"""A record that a client may send before its second hello, for middleboxes (RFC 8446, D.4)."""

ALERT = bytes((0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x70))
"""A fatal alert, `unrecognized_name`: the client reports why its connection ends."""


class HelloError(Exception):
    """The connection does not begin with a hello for one named host; the text is a stable word."""


def read_hello(client: socket.socket, came: bytes, host: str, deadline: float) -> tuple[bytes, bytes]:
    """The hello of a client for this host, and what came after it; `came` was read before.

    Raises HelloError, and OSError.
    """
    try:
        hello, rest = _record(client, came, deadline)
    except ConnectionAbortedError:
        raise HelloError("no_hello") from None
    if server_name(hello).lower() != host:
        raise HelloError("other_name")
    return hello, rest


def read_second_hello(client: socket.socket, came: bytes, host: str, deadline: float) -> bytes:
    """What a client sends once it is asked for a second hello, which is for this host too. Raises as `read_hello`."""
    with suppress(ConnectionAbortedError):
        while len(came) < len(_COMPATIBLE) and _COMPATIBLE.startswith(came):
            came += _piece(client, deadline)
    before = _COMPATIBLE if came.startswith(_COMPATIBLE) else b""
    hello, rest = read_hello(client, came[len(before) :], host, deadline)
    return before + hello + rest


def read_answer(server: socket.socket, deadline: float) -> tuple[bytes, bool]:
    """What a server answers to a hello, at least its first record, and whether it asks for a second hello.

    Until then, nothing but the first hello may reach it: it would take what was sent too early for the second one.
    Raises HelloError for what is no answer to a hello, and OSError.
    """
    data = _piece(server, deadline)
    if data[0] != _HANDSHAKE:
        return data, False  # an alert, or no TLS
    record, rest = _record(server, data, deadline)
    hello = _Reader(record[_RECORD_HEAD:])
    if hello.number(1) != _SERVER_HELLO:
        raise HelloError("malformed")
    return record + rest, hello.vector(3).take(_RANDOM_AND_VERSION)[2:] == _RETRY


def _record(source: socket.socket, data: bytes, deadline: float) -> tuple[bytes, bytes]:
    """One whole record of a handshake, and what came after it; `data` was read before."""
    while len(data) < _RECORD_HEAD or len(data) < _RECORD_HEAD + _length(data):
        data += _piece(source, deadline)
    end = _RECORD_HEAD + _length(data)
    return data[:end], data[end:]


def _piece(source: socket.socket, deadline: float) -> bytes:
    source.settimeout(max(0.001, deadline - time.monotonic()))
    piece = source.recv(_RECORD_BYTES)
    if not piece:
        raise ConnectionAbortedError
    return piece


def _length(data: bytes) -> int:
    length = int.from_bytes(data[3:5], "big")
    if data[0] != _HANDSHAKE or data[1] != _MAJOR or not 0 < length <= _RECORD_BYTES:
        raise HelloError("not_tls")
    return length


class _Reader:
    """Reads fields of bytes in order. Raises HelloError past their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) < count:
            raise HelloError("malformed")
        self._at += count
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> _Reader:
        return _Reader(self.take(self.number(size)))

    def more(self) -> bool:
        return self._at < len(self._data)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


def server_name(data: bytes) -> str:
    """The one host name that the hello in this record states. Raises HelloError."""
    record = _Reader(data[_RECORD_HEAD : _RECORD_HEAD + _length(data)])
    if record.number(1) != _CLIENT_HELLO:
        raise HelloError("no_hello")
    hello = record.vector(3) if record.more() else _Reader(b"")
    if record.more():
        raise HelloError("malformed")
    hello.take(_RANDOM_AND_VERSION)
    for size in (1, 2, 1):  # session, cipher suites, compression methods
        hello.vector(size)
    if not hello.more():
        raise HelloError("no_name")
    extensions = hello.vector(2)
    if hello.more():
        raise HelloError("malformed")
    names: list[str] = []
    while extensions.more():
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _ENCRYPTED_HELLO:
            raise HelloError("encrypted_hello")
        if kind == _SERVER_NAME:
            names.append(_name(content))
    if len(names) != 1:
        raise HelloError("malformed" if names else "no_name")
    return names[0]


def _name(extension: _Reader) -> str:
    entries = extension.vector(2)
    kind, name = entries.number(1), entries.vector(2).rest()
    if extension.more() or entries.more() or kind != _HOST_NAME:
        raise HelloError("malformed")
    return name.decode("latin-1")

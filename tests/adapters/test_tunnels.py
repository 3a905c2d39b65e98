"""The proxy of tunnels: what it reads of a client, and what comes of it, against a real engine and a TLS server."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest

from admission_adapters.tunnels.head import HEAD_BYTES, Head, read_head
from admission_adapters.tunnels.hello import HelloError, read_answer, read_hello, read_second_hello, server_name

FAR = time.monotonic() + 3_600


def hello(name: str | None = "good.example.org") -> bytes:
    """A real ClientHello for this name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(into, out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def record(body: bytes, kind: int = 0x16) -> bytes:
    return bytes((kind, 3, 1)) + len(body).to_bytes(2, "big") + body


def handshake(extensions: bytes | None, kind: int = 1) -> bytes:
    """A ClientHello with these extensions."""
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += b"" if extensions is None else len(extensions).to_bytes(2, "big") + extensions
    return record(bytes((kind,)) + len(body).to_bytes(3, "big") + body)


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content


def names(*entries: tuple[int, bytes]) -> bytes:
    listed = b"".join(bytes((kind,)) + len(name).to_bytes(2, "big") + name for kind, name in entries)
    return extension(0, len(listed).to_bytes(2, "big") + listed)


GOOD = names((0, b"good.example.org"))


def test_the_name_of_a_real_hello_is_read_in_any_number_of_pieces() -> None:
    data = hello()
    assert server_name(data) == "good.example.org"
    with pair() as (here, there):
        for at in range(0, len(data), 7):
            there.sendall(data[at : at + 7])
        assert read_hello(here, b"", "good.example.org", FAR) == (data, b"")
    assert server_name(handshake(GOOD)) == "good.example.org"


HELLOS: dict[str, tuple[bytes, str]] = {
    "no name": (hello(None), "no_name"),
    "no extensions": (handshake(None), "no_name"),
    "encrypted hello": (handshake(GOOD + extension(0xFE0D, b"x")), "encrypted_hello"),
    "name twice": (handshake(GOOD + GOOD), "malformed"),
    "two names": (handshake(names((0, b"good.example.org"), (0, b"other.example.org"))), "malformed"),
    "another kind of name": (handshake(names((1, b"good.example.org"))), "malformed"),
    "empty list": (handshake(names()), "malformed"),
    "extension cut off": (handshake(GOOD[:-1]), "malformed"),
    "hello in two records": (record(hello()[5:105]) + record(hello()[105:]), "malformed"),
    "more in the record": (record(handshake(GOOD)[5:] + b"\0"), "malformed"),
    "server hello": (handshake(GOOD, kind=2), "no_hello"),
    "empty handshake": (record(b"\x01"), "malformed"),
}


@pytest.mark.parametrize("case", HELLOS)
def test_a_hello_without_exactly_one_plain_name_is_refused(case: str) -> None:
    data, reason = HELLOS[case]
    with pytest.raises(HelloError, match=f"^{reason}$"):
        server_name(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not_tls"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not_tls"),
        (record(b"\x01", kind=0x17), "not_tls"),
        (record(b""), "not_tls"),
        (b"\x16\x03\x01\xff\xff" + bytes(1 << 16), "not_tls"),
        (hello()[:-1], "no_hello"),
        (b"", "no_hello"),
    ],
)
def test_an_incomplete_or_malformed_hello_is_refused(data: bytes, reason: str) -> None:
    with pair() as (here, there):
        there.settimeout(5)
        there.sendall(data)
        there.close()
        with pytest.raises(HelloError, match=f"^{reason}$"):
            read_hello(here, b"", "good.example.org", FAR)


COMPATIBLE = b"\x14\x03\x03\x00\x01\x01"


@pytest.mark.parametrize("before", [b"", COMPATIBLE])
@pytest.mark.parametrize("came", [0, 3, 50])
def test_a_second_hello_is_read_across_any_early_bytes(before: bytes, came: int) -> None:
    data = before + hello()
    with pair() as (here, there):
        there.sendall(data[came:] + b"more")
        assert read_second_hello(here, data[:came], "good.example.org", FAR) == data + b"more"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (hello("evil.example.org"), "other_name"),
        (COMPATIBLE + hello("evil.example.org"), "other_name"),
        (COMPATIBLE + COMPATIBLE + hello(), "not_tls"),
        (record(b"x" * 40, kind=0x17) + hello(), "not_tls"),
        (COMPATIBLE, "no_hello"),
        (COMPATIBLE[:3], "no_hello"),
        (b"", "no_hello"),
    ],
)
def test_a_malformed_or_mismatched_second_hello_is_refused(data: bytes, reason: str) -> None:
    with pair() as (here, there):
        there.sendall(data)
        there.close()
        with pytest.raises(HelloError, match=f"^{reason}$"):
            read_second_hello(here, b"", "good.example.org", FAR)


RETRY = sha256(b"HelloRetryRequest").digest()


def server_hello(random: bytes, kind: int = 2) -> bytes:
    body = b"\x03\x03" + random + b"\x00\x13\x01\x00"
    return record(bytes((kind,)) + len(body).to_bytes(3, "big") + body)


@pytest.mark.parametrize(
    ("data", "again"),
    [
        (server_hello(RETRY) + COMPATIBLE, True),
        (server_hello(bytes(32)) + COMPATIBLE, False),
        (b"\x15\x03\x01\x00\x02\x02\x70", False),
        (b"220 smtp.example.org\r\n", False),
    ],
)
def test_a_server_that_asks_for_a_second_hello_is_noticed_in_any_pieces(data: bytes, again: bool) -> None:  # noqa: FBT001
    with pair() as (here, there):
        there.sendall(data)
        assert read_answer(here, FAR) == (data, again)
    with pair() as (here, there):
        there.sendall(data[:8])
        there.sendall(data[8:])
        assert read_answer(here, FAR)[1] == again


@pytest.mark.parametrize("data", [record(server_hello(RETRY)[5:40]), server_hello(RETRY, kind=11), record(b"\x02")])
def test_an_answer_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pair() as (here, there):
        there.sendall(data)
        with pytest.raises(HelloError, match=r"^malformed$"):
            read_answer(here, FAR)


URL = "https://good.example.org/"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"CONNECT good.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", Head(tunnel=True, url=URL)),
        (b"CONNECT GOOD.example.org:443 HTTP/1.0\r\n\r\nabc", Head(tunnel=True, url=URL, rest=b"abc")),
        (b"CONNECT good.example.org:8443 HTTP/1.1\r\n\r\n", Head(tunnel=True, url="https://good.example.org:8443/")),
        (b"CONNECT a@b:443 HTTP/1.1\r\n\r\n", Head(tunnel=True, url="https://a@b/")),
        (b"GET http://good.example.org/a?key=canary HTTP/1.1\r\n\r\n", Head(url="http://good.example.org/")),
        (b"GET / HTTP/1.1\r\nHost: good.example.org\r\n\r\n", Head()),
        (b"CONNECT  HTTP/1.1\r\n\r\n", Head()),
        (b"CONNECT good.example.org:443 HTTP/1.1\n\n", Head()),
        (b"CONNECT good.example.org:443 HTTP/2\r\n\r\n", Head()),
        (b"CONNECT g\xc3\xb6od.example.org:443 HTTP/1.1\r\n\r\n", Head()),
        (b"\x05\x01\x00", Head()),
        (hello(), Head()),
        (b"CONNECT good.example.org:443 HTTP/1.1\r\n" + b"a" * HEAD_BYTES, Head()),
        (b"", Head()),
    ],
)
def test_a_request_head_has_at_most_one_destination(data: bytes, wanted: Head) -> None:
    with pair() as (here, there):
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        assert read_head(here, FAR) == wanted

"""The proxy of a run against hostile bytes: a real engine decides, a real TLS server must not see them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from admission_adapters.tunnels.server import TunnelServer
from engine.points.sandbox import EgressLimits
from engine.settings import Settings
from engine.shell import tunnel_server
from tests.adapters.gates import AGENT
from tests.adapters.test_tunnels import GOOD, extension, handshake, names, record
from tests.processes import until
from tests.sources.https import BODY, HOST, Authority, response
from tests.sources.world import World, at_world, authority

__all__ = ["authority"]

LIMITS = EgressLimits(at_once=2, most=20, sent_bytes=10_000, received_bytes=100_000)


@pytest.fixture(scope="module")
def world(module_settings: Settings, authority: Authority) -> Iterator[World]:
    with at_world(module_settings, authority, f"networks.tunnels.hosts=[{HOST}]") as found:
        yield found


@contextmanager
def proxied(world: World, limits: EgressLimits = LIMITS) -> Iterator[tuple[TunnelServer, tuple[str, int]]]:
    """The proxy on a listener of this machine, as it serves that of a sandbox."""
    world.server.answers(response())
    server = tunnel_server((HOST,), limits, world.engine.opened, AGENT)
    listener = socket.create_server(("127.0.0.1", 0))
    server.begin(listener)
    try:
        yield server, listener.getsockname()
    finally:
        server.end(cancelled=False)


def asked(place: tuple[str, int], head: bytes) -> socket.socket:
    client = socket.create_connection(place, timeout=20)
    client.sendall(head)
    return client


def connect(world: World) -> bytes:
    return f"CONNECT {HOST}:{world.server.port} HTTP/1.1\r\n\r\n".encode()


def rest(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(65_536):
        data += piece
    return data


def opened(world: World, place: tuple[str, int]) -> socket.socket:
    client = asked(place, connect(world))
    assert client.recv(1_000).startswith(b"HTTP/1.1 200 ")
    return client


def outcomes(server: TunnelServer, connections: int = 1) -> list[str]:
    """How the connections ended, as soon as there are so many."""
    until(lambda: len(server.connections) == connections)
    return [one.outcome for one in server.connections]


def got(world: World, client: socket.socket, more: bytes = b"") -> None:
    """Fetch the file of the server through this tunnel."""
    context = ssl.create_default_context(cafile=str(world.authority.path))
    with context.wrap_socket(client, server_hostname=HOST) as secured:
        secured.sendall(b"GET / HTTP/1.1\r\n\r\n" + more)
        assert secured.recv(65_536).endswith(BODY) or rest(secured).endswith(BODY)


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (b"GET / HTTP/1.1\r\nHost: data.example.org\r\n\r\n", "not_tls"),
        (b"SSH-2.0-x\r\n", "not_tls"),
        (handshake(GOOD), "other_name"),
        (handshake(None), "no_name"),
        (handshake(names((0, HOST.encode())) + extension(0xFE0D, b"x")), "encrypted_hello"),
        (record(handshake(names((0, HOST.encode())))[5:40]) + record(b"x"), "malformed"),
    ],
)
def test_nothing_reaches_the_host_before_a_hello_that_names_it(data: bytes, outcome: str, world: World) -> None:
    with proxied(world) as (server, place), opened(world, place) as client:
        client.sendall(data)
        assert rest(client) == b"\x15\x03\x01\x00\x02\x02\x70"
        assert outcomes(server) == [outcome]
    assert world.server.requests == []


def test_a_hello_in_small_pieces_opens_a_tunnel_and_a_second_request_stays_in_it(world: World) -> None:
    with proxied(world) as (server, place), opened(world, place) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        got(world, client, b"CONNECT other.example.org:443 HTTP/1.1\r\n\r\n")
        assert outcomes(server) == ["closed"]


EVIL = "evil.example.org"


@contextmanager
def retrying(world: World) -> Iterator[list[str | None]]:
    """The server has no key for the first hello of a client and asks for a second one; the names that both state."""
    kept, context, seen = world.server.context, world.authority.context(), list[str | None]()
    context.set_ecdh_curve("secp384r1")
    context.sni_callback = lambda _, name, __: seen.append(name)
    world.server.context = context
    try:
        yield seen
    finally:
        world.server.context = kept


def hellos(context: ssl.SSLContext) -> tuple[bytes, bytes]:
    """The two hellos of a client that such a server makes it send: the first for the host, the second for another."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(to_client, to_server, server_hostname=HOST)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    found = []
    for side in (client, server, client):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
        if side is client:
            found.append(to_server.read())
            to_server.write(found[0])
    assert all(HOST.encode() in one for one in found)
    return found[0], found[1].replace(HOST.encode(), EVIL.encode())


def test_a_second_hello_that_the_server_asks_for_opens_a_tunnel(world: World) -> None:
    with retrying(world) as seen, proxied(world) as (server, place), opened(world, place) as client:
        got(world, client)
        assert (outcomes(server), seen) == (["closed"], [HOST, HOST])


@pytest.mark.parametrize("early", [False, True])
def test_a_second_hello_for_another_name_does_not_reach_the_server(early: bool, world: World) -> None:  # noqa: FBT001
    """Straight to the server it does, also if it does not wait to be asked."""

    def send(client: socket.socket) -> None:
        client.sendall(first + second if early else first)
        if not early:
            assert client.recv(65_536)
            client.sendall(second)

    with retrying(world) as seen:
        first, second = hellos(world.server.context)
        seen.clear()
        with socket.create_connection(("127.0.0.1", world.server.port), timeout=20) as client:
            send(client)
            until(lambda: len(seen) > 1)
        assert seen == [HOST, EVIL]
        seen.clear()
        with proxied(world) as (server, place), opened(world, place) as client:
            send(client)
            assert rest(client).endswith(b"\x15\x03\x01\x00\x02\x02\x70")
            assert (outcomes(server), seen) == (["other_name"], [HOST])


@pytest.mark.parametrize("head", [b"\x05\x01\x00", b"\x16\x03\x01\x00\x02\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b""])
def test_a_request_that_is_not_connect_is_refused_and_recorded(head: bytes, world: World) -> None:
    with proxied(world) as (server, place), asked(place, head) as client:
        client.shutdown(socket.SHUT_WR)
        assert rest(client).startswith(b"HTTP/1.1 403 url_count_not_admitted")
        until(lambda: server.connections)
        assert [(one.url, one.outcome) for one in server.connections] == [(None, "refused")]


def test_a_client_that_says_nothing_is_ended_at_the_deadline(settings: Settings, authority: Authority) -> None:
    values = (f"networks.tunnels.hosts=[{HOST}]", "networks.tunnels.seconds=3")
    with at_world(settings, authority, *values) as world, proxied(world) as (server, place):
        with opened(world, place) as client:
            rest(client)
        assert outcomes(server) == ["deadline"]


def test_a_connection_beyond_the_limit_waits_for_a_free_slot(world: World) -> None:
    with proxied(world) as (server, place):
        first, second = opened(world, place), opened(world, place)
        with second, asked(place, connect(world)) as third:
            third.settimeout(0.2)
            with pytest.raises(TimeoutError):
                third.recv(1)
            first.close()
            third.settimeout(20)
            assert third.recv(1_000).startswith(b"HTTP/1.1 200 ")
    assert len(server.connections) == 3


def test_a_tunnel_that_the_program_has_closed_is_not_cut(world: World) -> None:
    context = ssl.create_default_context(cafile=str(world.authority.path))
    with proxied(world) as (server, place):
        with opened(world, place) as client, context.wrap_socket(client, server_hostname=HOST) as secured:
            secured.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert secured.recv(1)
        server.end(cancelled=False)
        assert outcomes(server) == ["closed"]


def test_the_end_of_the_run_closes_what_is_open(world: World) -> None:
    with proxied(world) as (server, place), opened(world, place) as client:
        server.end(cancelled=False)
        assert rest(client) == b""
        assert outcomes(server) == ["cut"]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place, timeout=20)


def test_the_limit_of_sent_bytes_covers_all_connections_together(world: World) -> None:
    context = ssl.create_default_context(cafile=str(world.authority.path))
    with proxied(world, LIMITS.model_copy(update={"sent_bytes": 1_500})) as (server, place):
        for _ in range(2):
            with (
                suppress(OSError),
                opened(world, place) as client,
                context.wrap_socket(client, server_hostname=HOST) as secured,
            ):
                secured.sendall(b"x" * 2_000)
                rest(secured)
        assert outcomes(server, 2) == ["sent_limit", "sent_limit"]
    assert world.server.requests == []

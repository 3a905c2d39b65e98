"""What a client may do to a connection: break it, drip, hang up, flood; others are served all the while."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.serving import ALLOWED, Serving, read_all, serving, until
from tests.conftest import BUNDLES

BODY = json.dumps(ALLOWED).encode()
HEAD = b"POST /v1/decide/license HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    """A server that never finds out what a point reads: that takes 60 MiB for a moment, and memory is measured here."""
    with serving(tmp_path_factory.mktemp("serving"), cache, "--root", BUNDLES, "--shared-answers", "0") as running:
        yield running


def connect(api: Serving) -> socket.socket:
    return socket.create_connection((api.host, api.port), timeout=30)


def alive(api: Serving) -> None:
    assert api.decide("license", ALLOWED).json["outcome"] == "allow"


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

BROKEN = {
    "no_http": (b"hello\r\n\r\n", 400),
    "tls_hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100, 400),
    "two_lengths": (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400),
    "length_and_chunks": (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "negative_length": (HEAD + b"Content-Length: -1\r\n\r\n", 400),
    "space_before_colon": (b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
    "bare_newline_in_header": (b"GET /health HTTP/1.1\r\nX-A: a\nX-B: b\r\n\r\n", 400),
    "long_header": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"x" * (17 << 10) + b"\r\n\r\n", 431),
    "endless_header": (b"GET /health HTTP/1.1\r\nX-A: " + b"x" * (400 << 10), 431),
    "long_target": (b"GET /" + b"x" * (400 << 10), 431),
    "many_headers": (
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
        + b"".join(b"X-%d: 1\r\n" % number for number in range(65))
        + b"\r\n",
        431,
    ),
    "chunked_for_ever": (CHUNKED + b"10000\r\n" + (b"x" * 65536 + b"\r\n10000\r\n") * 70, 413),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_malformed_or_oversized_request_is_refused_and_its_connection_closed(api: Serving, name: str) -> None:
    data, wanted = BROKEN[name]
    with connect(api) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # answered and closed before all was sent
            assert name in {"endless_header", "long_target", "chunked_for_ever"}
        answer = read_all(connection)
    if answer:
        assert status(answer) == wanted
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == wanted
        assert b"connection: close" in answer
    else:
        assert name in {"endless_header", "long_target", "chunked_for_ever"}
    alive(api)


def has_read(api: Serving, connection: socket.socket) -> bool:
    """Whether the engine has read all that has arrived at its end of a connection."""
    port = f":{connection.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = [row for row in rows if row[1].endswith(f":{api.port:04X}") and row[2].endswith(port)]
    return any(int(row[4].partition(":")[2], 16) == 0 for row in ends)  # while others come and go, one may be left out


def test_a_body_that_arrives_with_the_head_does_not_count_as_head(api: Serving) -> None:
    body = BODY + b" " * (60 << 10)
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for first in (1, 20, len(HEAD), len(whole) - len(body), len(whole) - len(body) + 1):
        with connect(api) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(whole[:first])
            until(lambda: has_read(api, connection))
            connection.sendall(whole[first:])
            connection.shutdown(socket.SHUT_WR)
            assert status(read_all(connection)) == 200


def test_repeated_headers_that_matter_are_refused(api: Serving) -> None:
    for header in (b"Content-Type: application/json", b"X-Run-ID: a", b"X-Request-ID: a"):
        twice = WHOLE.replace(b"\r\n", b"\r\n" + header + b"\r\n" + header + b"\r\n", 1).replace(
            b"\r\nContent-Length", b"\r\nConnection: close\r\nContent-Length"
        )
        answer = api.raw(twice)
        assert status(answer) == 400, header
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["decision"]["outcome"] == "deny"


def test_requests_sent_ahead_are_answered_in_order(api: Serving) -> None:
    ahead = b"".join(WHOLE.replace(b"Host:", b"X-Request-ID: n%d\r\nHost:" % number) for number in range(20))
    last = WHOLE.replace(b"Host:", b"X-Request-ID: end\r\nConnection: close\r\nHost:")
    answer = api.raw(ahead + last)
    ids = [line for line in answer.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert ids == [b"x-request-id: n%d" % number for number in range(20)] + [b"x-request-id: end"]
    assert answer.count(b'"outcome":"allow"') == 21


@pytest.mark.full
def test_excess_pipelined_requests_close_the_connection_after_the_first_answers(api: Serving) -> None:
    with connect(api) as connection:
        connection.sendall(WHOLE * 200)
        answer = read_all(connection)
    assert 64 <= answer.count(b'"outcome":"allow"') < 200
    assert answer.count(b"connection: close") == 1
    alive(api)


def test_http_1_0_and_connection_close_end_the_connection(api: Serving) -> None:
    for data in (WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"), WHOLE.replace(b"Host:", b"Connection: close\r\nHost:")):
        answer = api.raw(data)
        assert status(answer) == 200
        assert b"connection: close" in answer


def test_a_chunked_body_is_a_body(api: Serving) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, BODY[at : at + 1]) for at in range(len(BODY)))
    answer = api.raw(CHUNKED.replace(b"Host:", b"Connection: close\r\nHost:") + chunks + b"0\r\n\r\n")
    assert b'"outcome":"allow"' in answer


ENDLESS = {
    "one_trailer": (b"0\r\nX-A: ", b"x" * 65536),
    "many_trailers": (b"0\r\n", b"X-A: xxxxxxxxxxxxxxxx\r\n" * 3000),
    "one_extension": (b"1;x=", b"x" * 65536),
    "extensions": (b"", b"1;x=xxxxxxxxxxxxxxxxxx\r\n \r\n" * 2500),
    "tiny_chunks": (b"", b"1\r\n \r\n" * 10_000),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("path", [b"license", b"nothing"], ids=["taken", "refused"])
def test_the_framing_of_a_chunked_body_is_bounded(api: Serving, name: str, path: bytes) -> None:
    first, more = ENDLESS[name]
    before, answer = _resident(api), b""
    with connect(api) as connection:
        try:
            connection.sendall(CHUNKED.replace(b"license", path) + first)
            for _ in range(48):  # MiB: 3
                connection.sendall(more)
            answer = connection.recv(65536)
        except OSError:
            pass  # answered and closed before all was sent
        if answer:
            assert status(answer) == (413 if path == b"license" else 404)
        else:
            assert path == b"nothing"
        assert _resident(api) - before < 8 << 20
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)
    alive(api)


def test_trailers_are_ignored_for_this_and_the_next_request(api: Serving) -> None:
    chunked = CHUNKED + b"%x\r\n%b\r\n0\r\nX-Request-ID: trailer\r\nX-Run-ID: \xff\r\n\r\n" % (len(BODY), BODY)
    answer = api.raw(chunked + chunked + WHOLE.replace(b"Host:", b"Connection: close\r\nHost:"))
    assert answer.count(b'"outcome":"allow"') == 3
    assert b"x-request-id: trailer" not in answer


def test_the_memory_of_a_body_in_small_chunks_is_bounded(api: Serving) -> None:
    before = _resident(api)
    with ExitStack() as stack:
        held = [stack.enter_context(connect(api)) for _ in range(4)]
        for connection in held:
            connection.sendall(CHUNKED)
            for _ in range(40):
                connection.sendall(b"8\r\n        \r\n" * 5_000)
        until(lambda: api.metric("engine_http_body_bytes") == 4 * 40 * 5_000 * 8)
        assert _resident(api) - before < 24 << 20
    until(lambda: api.metric("engine_http_body_bytes") == 0)


def test_expect_100_is_answered_for_a_body_that_is_taken_and_only_then(api: Serving) -> None:
    with connect(api) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert b'"outcome":"allow"' in connection.recv(10_000)
    with connect(api) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (5 << 20))
        assert status(connection.recv(10_000)) == 413


def test_an_upgrade_is_not_taken_up(api: Serving) -> None:
    upgrade = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert status(api.raw(upgrade)) == 200


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nHost:"


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("pieces", [1, 2, 40])
def test_the_body_of_a_request_that_offers_an_upgrade_is_read(api: Serving, pieces: int, *, chunked: bool) -> None:
    whole = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY) if chunked else WHOLE
    whole = whole.replace(b"Host:", OFFER)
    size = -(-len(whole) // pieces)
    with connect(api) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(whole), size):
            connection.sendall(whole[at : at + size])
        answer = read_all(connection)
    assert b'"outcome":"allow"' in answer
    assert b"connection: close" in answer


def test_a_client_disconnected_before_accept_is_not_logged_as_unauthorized(api: Serving) -> None:
    os.kill(api.process.pid, signal.SIGSTOP)
    try:
        for _ in range(5):
            with connect(api) as connection:
                connection.sendall(WHOLE.replace(b"Host:", b"X-Request-ID: gone\r\nHost:"))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    finally:
        os.kill(api.process.pid, signal.SIGCONT)
    api.decide("license", ALLOWED, X_Request_ID="after")
    until(lambda: [line for line in api.log_lines() if line.get("request_id") == "after"])
    lines = [line for line in api.log_lines() if line.get("request_id") == "gone"]
    assert [line for line in lines if "unauthorized" in line.get("codes", [])] == []


HANG_UPS = {
    "at_once": b"",
    "in_the_request_line": b"POST /v1/dec",
    "in_the_headers": HEAD,
    "before_the_body": HEAD + b"Content-Length: 100\r\n\r\n",
    "in_the_body": HEAD + b"Content-Length: 100\r\n\r\n{",
    "in_a_chunk": CHUNKED + b"5\r\nab",
    "before_the_answer": WHOLE,
    "in_an_archive": HEAD.replace(b"license", b"source").replace(b"application/json", b"application/zip")
    + b"Content-Length: 9000000\r\n\r\n"
    + b"x" * 3_000_000,
}


@pytest.mark.parametrize("name", HANG_UPS)
@pytest.mark.parametrize("reset", [False, True], ids=["end", "reset"])
def test_a_disconnected_client_leaves_no_resources_behind(api: Serving, name: str, reset: object) -> None:
    for _ in range(3):
        with connect(api) as connection:
            connection.sendall(HANG_UPS[name])
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    alive(api)
    until(lambda: api.metric("engine_http_connections") <= 1)
    until(lambda: api.metric("engine_http_body_bytes") == 0)
    until(lambda: api.metric("engine_decisions_in_flight") == 0)
    until(lambda: not (api.state / "uploads").exists() or not list((api.state / "uploads").iterdir()))


def test_half_closed_clients_get_their_answer(api: Serving) -> None:
    with connect(api) as connection:
        connection.sendall(WHOLE)
        connection.shutdown(socket.SHUT_WR)
        assert b'"outcome":"allow"' in read_all(connection)


def test_a_thousand_connections_are_held_and_others_served(api: Serving) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4_096:
        pytest.skip(f"THIS MACHINE LACKS FILE DESCRIPTORS: {hard} a process, 4096 are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_096), hard))
    before = _resident(api)
    with ExitStack() as stack:
        held = [stack.enter_context(connect(api)) for _ in range(1_000)]
        for connection in held[:500]:
            connection.sendall(HEAD)
        for connection in held[500:]:
            connection.sendall(WHOLE)
        for connection in held[500:]:
            assert status(connection.recv(10_000)) == 200
        alive(api)
        assert api.metric("engine_http_connections") >= 1_000
        assert _resident(api) - before < 64 << 20
    until(lambda: api.metric("engine_http_connections") <= 1)
    alive(api)


def _resident(api: Serving) -> int:
    pages = Path(f"/proc/{api.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")

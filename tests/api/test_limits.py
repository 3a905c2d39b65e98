"""Limits of time, size and number, made small: what is over is refused, and nothing is left behind."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.serving import ALLOWED, Serving, issue, read_all, serving, until
from tests.api.test_connection import CHUNKED, HEAD, WHOLE, status

BRIEF = {"head_seconds": 0.5, "body_seconds": 0.8, "idle_seconds": 0.5, "write_seconds": 0.8, "linger_seconds": 0.5}
LONG = {"head_seconds": 60, "body_seconds": 60, "idle_seconds": 60}
SMALL = {
    "connections": 20,
    "body_bytes": 4096,
    "all_bodies_bytes": 5000,
    "upload_bytes": 2_000_000,
    "uploads": 1,
    "running": 1,
    "waiting": 2,
}


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("brief"), cache, limits=BRIEF) as running:
        yield running


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("small"), cache, limits=SMALL | LONG) as running:
        yield running


def connect(api: Serving) -> socket.socket:
    return socket.create_connection((api.host, api.port), timeout=20)


def drip(connection: socket.socket, data: bytes, each: float = 0.1) -> bytes:
    """Send byte by byte, slower and slower than allowed, until the other end has enough."""
    connection.settimeout(each)
    for at in range(len(data)):
        try:
            connection.sendall(data[at : at + 1])
            if found := connection.recv(65536):
                connection.settimeout(20)
                return found + read_all(connection)
        except TimeoutError:
            continue
        except OSError:
            break
    return b""


@pytest.mark.full
def test_headers_that_drip_are_cut_off(brief: Serving) -> None:
    with connect(brief) as connection:
        assert status(drip(connection, HEAD * 3)) == 408  # of which everything would take half a minute


def test_a_body_that_drips_is_a_recorded_deny(brief: Serving) -> None:
    with connect(brief) as connection:
        connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n")
        answer = drip(connection, b" " * 500)
    assert status(answer) == 408
    document = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert [finding["code"] for finding in document["decision"]["findings"]] == ["engine.body_timeout"]


def test_chunks_that_never_end_are_cut_off(brief: Serving) -> None:
    with connect(brief) as connection:
        connection.sendall(CHUNKED)
        assert status(drip(connection, b"1\r\n \r\n" * 200, 0.02)) in {408, 413}


def test_idle_connections_are_closed(brief: Serving) -> None:
    with connect(brief) as connection:
        assert read_all(connection) == b""
    with connect(brief) as connection:
        connection.sendall(WHOLE)
        assert status(read_all(connection)) == 200


def test_a_client_that_reads_no_answer_is_cut_off(brief: Serving) -> None:
    with connect(brief) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(60):
            try:
                connection.sendall(ask)
            except OSError:
                break
        until(lambda: _connections(brief) <= 1)


def _connections(api: Serving) -> float:
    return api.metric("engine_http_connections")


def test_a_connection_over_the_limit_gets_503(small: Serving) -> None:
    until(lambda: _connections(small) <= 1)
    held = [connect(small) for _ in range(SMALL["connections"])]
    try:
        with connect(small) as one_more:
            answer = read_all(one_more)
        assert status(answer) == 503
        assert b"engine.overloaded" in answer
    finally:
        for connection in held:
            connection.close()
    until(lambda: _connections(small) <= 1)


def test_bodies_share_one_budget_of_memory(small: Serving) -> None:
    with connect(small) as first, connect(small) as second:
        first.sendall(HEAD + b"Content-Length: 2000\r\n\r\n" + b" " * 1500)
        until(lambda: small.metric("engine_http_body_bytes") == 1500)
        second.sendall(HEAD + b"Content-Length: 4000\r\n\r\n" + b" " * 3600)
        answer = second.recv(65536)
        assert status(answer) == 503
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["decision"] is None
        first.sendall(b" " * 500)
        assert status(first.recv(65536)) == 400
    until(lambda: small.metric("engine_http_body_bytes") == 0)


SHARED = {"body_bytes": 100_000, "all_bodies_bytes": 400_000, "uploads": 4, "body_seconds": 60}


@pytest.mark.full
def test_slow_bodies_and_archives_of_one_caller_leave_room_for_others(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, limits=SHARED) as api, ExitStack() as stack:
        greedy, other = (issue(api.state, name, ("license", "source")) for name in ("greedy", "other"))
        until(lambda: api.decide("license", ALLOWED).status == 401)
        head = HEAD + f"Authorization: Bearer {greedy}\r\nContent-Length: 100000\r\n\r\n".encode()
        archive = head.replace(b"license", b"source").replace(b"application/json", b"application/zip")
        archive = archive.replace(b"100000", b"300000")
        held = [stack.enter_context(connect(api)) for _ in range(33)]
        for connection in held:
            connection.sendall(head + b" " * 90_000)
        uploads = [stack.enter_context(connect(api)) for _ in range(4)]
        for connection in uploads:
            connection.sendall(archive + b"x")
        until(lambda: len(_answered(uploads)) == 2)
        until(lambda: len(_answered(held)) >= 30)
        assert {status(one.recv(65536)) for one in _answered([*uploads, *held])} == {503}
        own = {"Authorization": f"Bearer {other}"}
        assert api.decide("license", ALLOWED, **own).json["outcome"] == "allow"
        padded = json.dumps(ALLOWED).encode() + b" " * 80_000
        assert api.ask("POST", "/v1/decide/license", padded, own).json["outcome"] == "allow"
        zipped = {**own, "Content-Type": "application/zip"}
        assert api.ask("POST", "/v1/decide/source", b"no archive", zipped).status == 400


def _answered(connections: Sequence[socket.socket]) -> list[socket.socket]:
    return select.select(connections, [], [], 0)[0]


def test_an_archive_over_its_limit_is_refused_and_removed(small: Serving) -> None:
    head = HEAD.replace(b"license", b"source").replace(b"application/json", b"application/zip")
    with connect(small) as connection:
        connection.sendall(head + b"Content-Length: 2000001\r\n\r\n")
        assert status(connection.recv(65536)) == 413
    with connect(small) as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(40):
            connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        assert status(connection.recv(65536)) == 413
    until(lambda: list((small.state / "uploads").iterdir()) == [])


def test_only_so_many_archives_are_received_at_once(small: Serving) -> None:
    head = HEAD.replace(b"license", b"source").replace(b"application/json", b"application/zip")
    with connect(small) as first, connect(small) as second:
        first.sendall(head + b"Content-Length: 1000\r\n\r\n" + b"x")
        until(lambda: (small.state / "uploads").exists() and list((small.state / "uploads").iterdir()))
        second.sendall(head + b"Content-Length: 1000\r\n\r\n" + b"x" * 1000)
        assert status(second.recv(65536)) == 503
    until(lambda: list((small.state / "uploads").iterdir()) == [])


def test_an_overloaded_engine_answers_503_and_decides_correctly(small: Serving) -> None:
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda _: small.decide("license", ALLOWED), range(120)))
    busy = [reply for reply in replies if reply.status == 503]
    assert {reply.status for reply in replies} <= {200, 503}
    assert all(reply.json["outcome"] == "allow" for reply in replies if reply.status == 200)
    assert all(reply.json["decision"] is None and reply.headers["retry-after"] == "1" for reply in busy)
    assert small.decide("license", ALLOWED).status == 200


@pytest.mark.parametrize(("soft", "hard", "connections"), [(1024, 4096, 2048), (1024, 1024, 768), (100, 100, 50)])
def test_connections_leave_open_files_for_the_record(soft: int, hard: int, connections: int) -> None:
    """In a process of its own: a hard limit is not raised again."""
    program = (
        "import resource; from engine.api.limits import ApiLimits; from engine.api.server import within_descriptors\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "print(within_descriptors(ApiLimits()).connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.split() == [str(connections), str(min(hard, 2048 + 256))]

"""The client against servers that misbehave: every fault is a DecideError with its code, in time."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import DecideError
from engine.opa.client import Client
from engine.settings import OpaLimits

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A unix socket whose one connection is handled by `talk` after the request was read."""
    with tempfile.TemporaryDirectory(prefix="opa-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "s")
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                try:
                    talk(connection)
                except OSError:
                    return  # the client hung up, which is what it should do

        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        thread.join()


def body(text: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def drip(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b" ")
        time.sleep(0.05)


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):  # until the client hangs up
        continue


FAULTS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "hangs_up": (lambda _: None, "engine.opa_unavailable"),
    "garbage": (lambda connection: connection.sendall(b"\x00\xff" * 100), "engine.opa_unavailable"),
    "not_json": (lambda connection: connection.sendall(body(b"<html>")), "engine.opa_unavailable"),
    "deep_json": (lambda connection: connection.sendall(body(b"[" * 90_000)), "engine.opa_unavailable"),
    "not_an_object": (lambda connection: connection.sendall(body(b"[1]")), "engine.answer_malformed"),
    "half_an_answer": (
        lambda connection: connection.sendall(HEAD + b"Content-Length: 99\r\n\r\n{"),
        "engine.opa_unavailable",
    ),
    "http_500": (
        lambda connection: connection.sendall(b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\n{}"),
        "engine.opa_error",
    ),
    "redirects": (
        lambda connection: connection.sendall(b"HTTP/1.1 302 f\r\nLocation: /\r\nContent-Length: 2\r\n\r\n{}"),
        "engine.opa_unavailable",
    ),
    "too_large": (lambda connection: connection.sendall(body(b'"' + b"x" * 300_000 + b'"')), "engine.answer_malformed"),
    "silent": (silent, "engine.opa_timeout"),
    "drips": (drip, "engine.opa_timeout"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_a_refusal_in_time(name: str) -> None:
    talk, code = FAULTS[name]
    with serving(talk) as path:
        client = Client(path, OpaLimits(answer_seconds=0.4, answer_bytes=100_000))
        started = time.monotonic()
        with pytest.raises(DecideError) as caught:
            client.ask("decision", {})
        assert caught.value.code == code
        assert time.monotonic() - started < 5  # seconds; a drip of 1,000 bytes would take 50
        client.close()


def test_a_proxy_in_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving(lambda connection: connection.sendall(body(b'{"result": 1}'))) as path:
        client = Client(path, OpaLimits(answer_seconds=2))
        assert client.ask("decision", {}).result == 1
        client.close()


def test_nothing_listens() -> None:
    client = Client("/nonexistent/socket", OpaLimits(answer_seconds=1))
    with pytest.raises(DecideError) as caught:
        client.ask("decision", {})
    assert caught.value.code == "engine.opa_unavailable"

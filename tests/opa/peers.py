"""What stands in OPA's place at the other end of a unix socket, and misbehaves."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Talk = Callable[[socket.socket], None]


class Peer:
    """Speaks `talk` after each request that it read; counts connections and requests."""

    def __init__(self, talk: Talk, path: str) -> None:
        self.talk = talk
        self.path = path
        self.connections = 0
        self.requests: list[bytes] = []
        self.under_way = 0
        self.most = 0
        self.hung_up = threading.Event()
        self._lock = threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client hung up, which is what it should do
            while (request := read(connection)) is not None:
                with self._lock:
                    talk = self.talk  # as it is when the request is seen
                    self.requests.append(request)
                    self.under_way += 1
                    self.most = max(self.most, self.under_way)
                try:
                    talk(connection)
                finally:
                    with self._lock:
                        self.under_way -= 1
        self.hung_up.set()


def read(connection: socket.socket) -> bytes | None:
    """One request with its body; None when the client hung up."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += (more := connection.recv(65536))
        if not more:
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < length:
        body += connection.recv(65536)
    return body


@contextmanager
def serving(talk: Talk) -> Iterator[Peer]:
    """A peer on a socket of its own; all its threads have ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="opa-") as folder, socket.socket(socket.AF_UNIX) as listener:
        peer = Peer(talk, str(Path(folder) / "s"))
        listener.bind(peer.path)
        listener.listen()
        threads: list[tuple[threading.Thread, socket.socket]] = []

        def accept() -> None:
            with suppress(OSError):  # shut down below
                while True:
                    connection, _ = listener.accept()
                    peer.connections += 1
                    thread = threading.Thread(target=peer.serve, args=(connection,))
                    threads.append((thread, connection))
                    thread.start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield peer
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread, connection in threads:
                with suppress(OSError):  # it has ended
                    connection.shutdown(socket.SHUT_RDWR)
                thread.join()


def body(text: bytes) -> bytes:
    """A whole response with this body."""
    return HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def says(response: bytes) -> Talk:
    """Sends this and waits for the next request."""
    return lambda connection: connection.sendall(response)


ONE = says(body(b'{"result": 1}'))


class Held:
    """Says that on demand."""

    def __init__(self) -> None:
        self.answer = threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        self.answer.wait(20)
        ONE(connection)


def hangs_up(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def drips(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b" ")
        time.sleep(0.05)


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):  # until the client hangs up
        continue


def half(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 99\r\n\r\n{")
    connection.shutdown(socket.SHUT_WR)


LARGE = body(b'{"result": "%s"}' % (b"x" * 300_000))

FAULTS: dict[str, tuple[Talk, str]] = {
    "hangs_up": (hangs_up, "policy_unavailable"),
    "garbage": (says(b"\x00\xff" * 100), "policy_unavailable"),
    "http_of_another_kind": (says(b"SIP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "policy_unavailable"),
    "half_an_answer": (half, "policy_unavailable"),
    "silent": (silent, "policy_unavailable"),
    "drips": (drips, "policy_unavailable"),
    "not_json": (says(body(b"<html>")), "engine.answer_malformed"),
    "no_body": (says(body(b"")), "engine.answer_malformed"),
    "not_utf8": (says(body(b'{"result": "\xff\xfe\xff"}')), "engine.answer_malformed"),
    "deep_json": (says(body(b"[" * 90_000)), "engine.answer_malformed"),
    "not_an_object": (says(body(b"[1]")), "engine.answer_malformed"),
    "too_large": (says(LARGE), "engine.answer_malformed"),
    "http_500": (says(b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\n{}"), "engine.opa_error"),
    "http_400": (says(b"HTTP/1.1 400 no\r\nContent-Length: 2\r\n\r\n{}"), "engine.opa_error"),
    "redirects": (says(b"HTTP/1.1 302 f\r\nLocation: /\r\nContent-Length: 2\r\n\r\n{}"), "engine.opa_error"),
}
"""What the peer does, and the code of the refusal that comes of it."""

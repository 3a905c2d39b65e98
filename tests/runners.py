"""A real agent runner on this machine, as far as HTTP shows it, that does what a test tells it to."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OUTPUT = {"ok": True, "output": "done", "usage": {"tokens": 12}}
Behavior = Callable[["Handler"], None]


@dataclass(frozen=True, slots=True)
class Received:
    """One request that got here."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(slots=True)
class LoopbackRunner:
    """Keeps what it receives and answers by `behavior`; `released` lets go of those that it holds."""

    port: int
    behavior: Behavior
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"

    @property
    def origin(self) -> str:
        return self.address.rstrip("/")


class Handler(BaseHTTPRequestHandler):
    """Speaks for one LoopbackRunner."""

    protocol_version = "HTTP/1.1"
    runner: LoopbackRunner

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.runner.received.append(Received(self.command, self.path, list(self.headers.items()), body))
        with suppress(OSError):
            self.runner.behavior(self)
        self.close_connection = True

    def do_GET(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        """Say nothing."""


def answering(document: Any = OUTPUT, status: int = 200, **headers: str) -> Behavior:
    """Answer with a JSON document, or with these bytes."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()

    def behave(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return behave


def raw(data: bytes) -> Behavior:
    """Answer with exactly these bytes, HTTP or not."""
    return lambda handler: void(handler.wfile.write(data))


def holding(handler: Handler) -> None:
    """Answer once it is released."""
    handler.runner.released.wait(60)
    answering()(handler)


def dripping(first: bytes) -> Behavior:
    """Send this, then a byte now and then, until it is released or nobody listens."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(first)
        while not handler.runner.released.wait(0.05):
            handler.wfile.write(b"x")

    return behave


def streaming(*parts: bytes, media: str = "application/x-ndjson") -> Behavior:
    """Answer in parts; before the last one, wait until it is released."""

    def behave(handler: Handler) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nTransfer-Encoding: chunked\r\n\r\n"
        handler.wfile.write(head.encode())
        for part in parts[:-1]:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        handler.runner.released.wait(60)
        handler.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(parts[-1]), parts[-1]))

    return behave


def flooding(handler: Handler) -> None:
    """Send chunks without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not handler.runner.released.is_set():
        handler.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")


def void(_: object) -> None:
    """Nothing."""


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that hangs up is nothing to tell."""


@contextmanager
def running(behavior: Behavior | None = None, context: ssl.SSLContext | None = None) -> Iterator[LoopbackRunner]:
    """A runner on any free port of this machine."""

    class Own(Handler):
        pass

    server = _Quiet(("127.0.0.1", 0), Own)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    runner = LoopbackRunner(server.server_address[1], behavior or answering(), "http" if context is None else "https")
    Own.runner = runner
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield runner
    finally:
        runner.released.set()
        server.shutdown()
        server.server_close()
        thread.join()

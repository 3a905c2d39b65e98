"""The control socket of a program that embeds the engine; it accepts administrative acts only.

The command line prefers a running engine, so that the act is decided under the policy that it serves.
`engine serve` has its whole API at the same path; here one thread answers `POST /v1/administration`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.administration.unix_socket import bind_unix
from engine.administration.users import unauthorized, user_of
from engine.errors import EngineError, GatherError, Location
from engine.model import Caller, Via

_HEAD_BYTES = 16 << 10
_BODY_BYTES = 64 << 10
"""An act is some hundred bytes; the longest prefix that may be approved is shorter."""
_SECONDS = 10.0
"""For a request of this machine to arrive whole."""
_PATH = b"POST /v1/administration "

_PAUSE_SECONDS = 0.1
"""After a connection that could not be taken, such as without a free descriptor."""

Act = Callable[[bytes | EngineError, Caller, str | None], tuple[int, dict[str, Any]]]
"""Called with the body (or the error from reading it), the user and the token; returns status and answer."""


class Control:
    """Listens until `close`. Raises GatherError when it cannot."""

    def __init__(self, path: Path, act: Act) -> None:
        self._path = path
        self._act = act
        self._closing = threading.Event()
        self._current: socket.socket | None = None
        self._turn = threading.Lock()  # another connection is current, or none
        self._owner = os.getpid()
        self._bound = bind_unix(path)
        self._bound.setblocking(True)  # noqa: FBT003  (its signature)
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._unbind()  # a client would wait for an answer that never comes
            raise GatherError(
                "the control socket cannot be served: no thread can be started",
                remedy="raise the limit of threads, or end other processes, and open the engine again",
                where=Location(str(path)),
            ) from error

    def close(self) -> None:
        """Stop listening; an act in progress is finished, a request that is not whole is dropped.

        Nothing in a forked process.
        """
        if os.getpid() != self._owner:
            return
        self._closing.set()
        with suppress(OSError):
            self._bound.shutdown(socket.SHUT_RDWR)  # wakes the thread
        with self._turn, suppress(OSError):
            if self._current is not None:
                self._current.shutdown(socket.SHUT_RD)
        self._thread.join()
        self._unbind()

    def _unbind(self) -> None:
        self._bound.close()
        with suppress(OSError):
            self._path.unlink()

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._bound.accept()
            except OSError:
                self._closing.wait(_PAUSE_SECONDS)
                continue
            with connection, suppress(Exception):  # one request; the next one may be better
                self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        with self._turn:
            self._current = connection
        try:
            if not self._closing.is_set():
                status, document = self._answer(connection)
                body = json.dumps(document).encode("ascii")
                head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.settimeout(_SECONDS)
                connection.sendall(head.encode("ascii") + body)
        finally:
            with self._turn:
                self._current = None

    def _answer(self, connection: socket.socket) -> tuple[int, dict[str, Any]]:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        uid: int = struct.unpack("3i", credentials)[1]
        head, body = _read(connection)
        if not head.startswith(_PATH):
            return 404, {"detail": "this engine accepts only administrative acts here"}
        bearer = _header(head, b"authorization")
        token = None if bearer is None else bearer.partition(b" ")[2].strip().decode("latin-1")
        request = body if uid in {0, os.getuid()} else unauthorized()
        return self._act(request, Caller(via=Via.CONTROL, principal=user_of(uid)), token)


def _read(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of one request. Raises ValueError if it is not valid, OSError if it does not arrive in time."""
    found, deadline = b"", time.monotonic() + _SECONDS
    while b"\r\n\r\n" not in found:
        if len(found) > _HEAD_BYTES:
            raise ValueError
        found += _receive(connection, 4096, deadline)
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(_header(head, b"content-length") or b"0")
    if not 0 <= length <= _BODY_BYTES:
        raise ValueError
    while len(body) < length:
        body += _receive(connection, length - len(body), deadline)
    return head, body


def _receive(connection: socket.socket, most: int, deadline: float) -> bytes:
    connection.settimeout(max(deadline - time.monotonic(), 0.001))
    part = connection.recv(most)
    if not part:
        raise ValueError
    return part


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None

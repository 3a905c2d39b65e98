"""The control socket of a program with the engine inside of it: it takes administrative acts and nothing else.

Only the engine that holds the record of a state folder can record an act, so the command line asks that one.
`engine serve` has its whole API at the same path; here one thread answers `POST /v1/administration`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.model import Caller, Via
from engine.unix_socket import bind_unix
from engine.users import user_of

_HEAD_BYTES = 16 << 10
_BODY_BYTES = 64 << 10
"""An act is some hundred bytes; the longest prefix that may be approved is shorter."""
_SECONDS = 10.0
"""For a request of this machine to arrive whole."""
_PATH = b"POST /v1/administration "

Act = Callable[[bytes, Caller, str | None], tuple[int, dict[str, Any]]]
"""Takes the body, the user at the socket and the token that was presented; gives status and answer."""


class Control:
    """Listens until `close`. Raises GatherError when it cannot."""

    def __init__(self, path: Path, act: Act) -> None:
        self._path = path
        self._act = act
        self._bound = bind_unix(path)
        self._bound.setblocking(True)  # noqa: FBT003  (its signature)
        self._owner = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; an act under way is finished. Nothing in a forked process."""
        if os.getpid() != self._owner:
            return
        with suppress(OSError):
            self._bound.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._bound.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._bound.accept()
            except OSError:
                return
            with connection, suppress(OSError, ValueError):
                connection.settimeout(_SECONDS)
                status, document = self._answer(connection)
                body = json.dumps(document).encode("ascii")
                head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode("ascii") + body)

    def _answer(self, connection: socket.socket) -> tuple[int, dict[str, Any]]:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        uid: int = struct.unpack("3i", credentials)[1]
        head, body = _read(connection)
        if uid not in {0, os.getuid()}:
            return 403, {"detail": "the control socket is for the user who runs the engine"}
        if not head.startswith(_PATH):
            return 404, {"detail": "this engine takes administrative acts only"}
        bearer = _header(head, b"authorization")
        token = None if bearer is None else bearer.partition(b" ")[2].strip().decode("latin-1")
        return self._act(body, Caller(via=Via.CONTROL, principal=user_of(uid)), token)


def _read(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of one request. Raises ValueError for what is none, OSError when it does not arrive."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(4096)
        if not part or len(found) > _HEAD_BYTES:
            raise ValueError
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(_header(head, b"content-length") or b"0")
    if not 0 <= length <= _BODY_BYTES:
        raise ValueError
    while len(body) < length:
        part = connection.recv(length - len(body))
        if not part:
            raise ValueError
        body += part
    return head, body


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None

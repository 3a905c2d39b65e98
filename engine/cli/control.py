"""Asks the running server of a state folder, over the control socket in it."""

from __future__ import annotations

import http.client
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.files import shown
from engine.settings import CONTROL

_SECONDS = 300.0
"""The longest answer: a build of a large policy and the start of an OPA take about 10."""
_ANSWER_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered: HTTP status and the JSON object of the body."""

    status: int
    document: dict[str, Any]


class NotServedError(EngineError):
    """Nothing listens on the control socket."""

    code = "engine.server_unavailable"


def post(
    state: Path, path: str, body: dict[str, Any] | None = None, token: str | None = None, seconds: float = _SECONDS
) -> Reply:
    """POST a JSON object or nothing, as this user or as the principal of a token.

    Raises EngineError, exit 4, when no server answers in time, or not with JSON; NotServedError where none listens.
    """
    where = state / CONTROL
    connection = _Connection(where, seconds)
    data = b"" if body is None else json.dumps(body).encode("ascii")
    headers = {"Accept": "application/json", "Connection": "close"}
    headers |= {} if body is None else {"Content-Type": "application/json"}
    headers |= {} if token is None else {"Authorization": f"Bearer {_header(token)}"}
    try:
        connection.connect()
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        connection.close()
        raise _silent(where, (error.strerror or "nothing listens").lower(), NotServedError) from error
    except OSError as error:
        connection.close()
        raise _silent(where, (error.strerror or "it cannot be reached").lower()) from error
    try:
        connection.request("POST", path, body=data, headers=headers)
        answer = connection.getresponse()
        got = answer.read(_ANSWER_BYTES)
        if answer.length:  # bytes that were promised and not read
            raise http.client.IncompleteRead(b"", answer.length)
    except (OSError, http.client.HTTPException) as error:
        reason = (getattr(error, "strerror", None) or "it sent an incomplete answer").lower()
        raise _silent(where, reason) from error
    finally:
        connection.close()
    try:
        document = json.loads(got)
    except (ValueError, RecursionError) as error:
        raise _silent(where, "its answer is not JSON") from error
    if not isinstance(document, dict):
        raise _silent(where, "its answer is not an object")
    return Reply(answer.status, document)


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket, whose path may be longer than the 107 bytes of an address."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)


def _header(token: str) -> str:
    """A token as a header can carry it; what cannot be one becomes another text that is none either."""
    return token.encode("ascii", "replace").decode().replace("\n", "?").replace("\r", "?")


def _silent(where: Path, reason: str, kind: type[EngineError] = EngineError) -> EngineError:
    return kind(
        f"no server answers at `{shown(str(where))}`: {reason}",
        remedy="start one with `engine serve`, or name its state folder with --state",
        code="engine.server_unavailable",
    )

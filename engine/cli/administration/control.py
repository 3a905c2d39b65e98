"""Asks the running engines of a state folder, over the control socket that each has below its chain."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.administration.unix_socket import short_path
from engine.documents.files import printable
from engine.errors import EngineError, reason_of
from engine.settings import CONTROL

_SECONDS = 300.0
"""The longest time for an activation: a build of a large policy and the start of OPA take about 10."""
ACT_SECONDS = 75.0
"""The longest time for an act: OPA may take 60."""
_ANSWER_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ControlReply:
    """What the server answered: HTTP status and the JSON object of the body."""

    status: int
    document: dict[str, Any]


class NotServedError(EngineError):
    """Nothing listens on the control socket."""

    code = "engine.server_unavailable"


def post(
    state: Path, path: str, body: dict[str, Any] | None = None, token: str | None = None, seconds: float = ACT_SECONDS
) -> ControlReply:
    """POST a JSON object or nothing to the first engine that answers, as this user or as the principal of a token.

    Raises EngineError, exit 4, when none answers in time with JSON; NotServedError where none listens.
    """
    silent = _silent(state / CONTROL, "nothing listens", NotServedError)
    for where in _sockets(state).values():
        try:
            return _post(where, path, body, token, seconds)
        except NotServedError:
            continue
        except EngineError as error:
            silent = error
    raise silent


def post_all(
    state: Path, path: str, body: dict[str, Any] | None, token: str | None
) -> dict[int, ControlReply | EngineError]:
    """`post` to all engines that listen, at once: what each answered, or why it did not, by the number of its chain."""
    sockets = _sockets(state)
    answers: dict[int, ControlReply | EngineError] = {
        chain: _silent(where, "it was not asked") for chain, where in sockets.items()
    }

    def ask(chain: int, where: Path) -> None:
        try:
            answers[chain] = _post(where, path, body, token, _SECONDS)
        except NotServedError:
            del answers[chain]
        except EngineError as error:
            answers[chain] = error

    threads = [threading.Thread(target=ask, args=listed, daemon=True) for listed in sockets.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not answers:
        raise _silent(state / CONTROL, "nothing listens", NotServedError)
    return answers


def _sockets(state: Path) -> dict[int, Path]:
    from engine.record.chains import chain_folders

    return {chain: folder / CONTROL for chain, folder in chain_folders(state).items()}


def _post(where: Path, path: str, body: dict[str, Any] | None, token: str | None, seconds: float) -> ControlReply:
    data = b"" if body is None else json.dumps(body).encode("ascii")
    headers = {"Accept": "application/json", "Connection": "close"}
    headers |= {} if body is None else {"Content-Type": "application/json"}
    headers |= {} if token is None else {"Authorization": f"Bearer {_header(token)}"}
    try:
        with closing(_Connection(where, seconds)) as connection:
            connection.request("POST", path, body=data, headers=headers)
            with closing(connection.getresponse()) as answer:
                got = answer.read(_ANSWER_BYTES)
                if answer.length:  # bytes that were promised and not read
                    raise http.client.IncompleteRead(b"", answer.length)
        document = json.loads(got)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        raise _silent(where, reason_of(error), NotServedError) from error
    except TimeoutError as error:
        raise _silent(where, f"it has not answered within {seconds:.0f} seconds") from error
    except (OSError, http.client.HTTPException) as error:
        reason = (getattr(error, "strerror", None) or "it sent an incomplete answer").lower()
        raise _silent(where, reason) from error
    except (ValueError, RecursionError) as error:
        raise _silent(where, "its answer is not JSON") from error
    if not isinstance(document, dict):
        raise _silent(where, "its answer is not an object")
    return ControlReply(answer.status, document)


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with short_path(self._path) as name:
            self.sock.connect(name)


def _header(token: str) -> str:
    """A token in the form of a header; invalid text is replaced by other invalid text."""
    return token.encode("ascii", "replace").decode().replace("\n", "?").replace("\r", "?")


def _silent(where: Path, reason: str, kind: type[EngineError] = EngineError) -> EngineError:
    return kind(
        f"no server answers at `{printable(str(where))}`: {reason}",
        remedy="start one with `engine serve`, or name its state folder with --state",
        code="engine.server_unavailable",
    )

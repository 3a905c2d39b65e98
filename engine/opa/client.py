"""Ask OPA through opa-python-client over its unix socket: one deadline and one size limit a call.

The client has neither a unix socket nor a deadline for a whole call, and it obeys proxy settings. `_UnixAdapter`
adds these, mounted on its session as `requests` provides for; nothing of the client itself is changed.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from engine.errors import DecideError
from engine.opa.reply import Reply, accept, failed, forked, late, malformed, unavailable, unwritable
from engine.settings import OpaLimits


def _opa_client() -> Any:
    """OpaClient alone: the `__init__` of its package imports aiohttp, a third of the time of this module."""
    spec = find_spec("opa_client")
    if spec is None:
        raise ModuleNotFoundError("opa_client")
    sys.modules["opa_client"] = module_from_spec(spec)  # a package whose __init__ has not run
    try:
        return import_module("opa_client.opa").OpaClient
    finally:
        del sys.modules["opa_client"]


OpaClient = _opa_client()
_PARAMETERS = {"strict-builtin-errors": "true", "provenance": "true"}


class Client:
    """Asks one OPA. Safe to share between threads; `connections` calls are made at a time, others wait."""

    def __init__(self, path: str, limits: OpaLimits, connections: int = 4) -> None:
        self._path = path
        self._limits = limits
        self._owner = os.getpid()
        self._free = threading.Semaphore(connections)
        self._idle: list[_UnixClient] = []

    def ask(self, rule: str, document: dict[str, Any], seconds: float | None = None) -> Reply:
        """The value of `data.admission.<rule>` for this input.

        Raises DecideError: `policy_unavailable` if OPA cannot be reached, does not speak HTTP, or has not
        answered after `seconds`, of which waiting for a connection is a part; `engine.opa_error` when
        evaluation fails; `engine.answer_malformed` when the answer is too large or not a JSON object;
        `engine.internal` when the input is no JSON.
        """
        if os.getpid() != self._owner:
            raise forked()
        budget = _Budget(self._limits.answer_seconds if seconds is None else seconds, self._limits.answer_bytes)
        with self._connection(budget) as client:
            try:
                body = client.query_rule(document, "admission", rule, _PARAMETERS)
            except (requests.HTTPError, requests.TooManyRedirects) as error:
                raise failed(b"" if error.response is None else error.response.content) from error
            except (requests.RequestException, HTTPError, OSError, ValueError, TypeError, RecursionError) as error:
                raise _failure(budget, error) from error
        return accept(body)

    @contextmanager
    def _connection(self, budget: _Budget) -> Iterator[_UnixClient]:
        """A connection for one call; one whose call was interrupted is hung up and not used again."""
        if not self._free.acquire(timeout=max(budget.left(), 0)):
            raise late()
        try:
            client = self._idle.pop() if self._idle else _UnixClient(self._path)
            client.adapter.budget = budget
            try:
                yield client
            except DecideError:
                self._idle.append(client)
                raise
            except BaseException:
                client.adapter.cut()
                raise
            self._idle.append(client)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the idle connections, unless they belong to another process."""
        if os.getpid() != self._owner:
            return
        while self._idle:
            self._idle.pop().close_connection()


def _failure(budget: _Budget, error: Exception) -> DecideError:
    if budget.late:
        return late()
    if budget.large:
        return malformed("is too large")
    if isinstance(error, (requests.JSONDecodeError, UnicodeDecodeError, RecursionError)):
        return malformed("is not JSON")
    if isinstance(error, (requests.exceptions.InvalidJSONError, TypeError)):
        return unwritable()
    return unavailable("OPA cannot be reached, or did not answer with HTTP")


class _Budget:
    """What one call may still use: a moment of the monotonic clock, a count of bytes."""

    def __init__(self, seconds: float, size: int) -> None:
        self._deadline = time.monotonic() + seconds
        self._size = size
        self.late = False
        self.large = False

    def left(self) -> float:
        return self._deadline - time.monotonic()

    def seconds(self) -> float:
        left = self.left()
        if left <= 0:
            self.late = True
            raise TimeoutError("deadline")
        return left

    def spend(self, size: int) -> int:
        self._size -= size
        if self._size < 0:
            self.large = True
            raise OSError("answer too large")
        return size


class _Socket(socket.socket):
    """A unix socket that charges every call to the budget, so a drip of bytes cannot outlast it."""

    def __init__(self, adapter: _UnixAdapter) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._adapter = adapter

    def connect(self, path: Any) -> None:
        self._timed(super().connect, path)

    def sendall(self, *args: Any) -> None:
        self._timed(super().sendall, *args)

    def recv_into(self, *args: Any) -> int:
        return self._adapter.budget.spend(self._timed(super().recv_into, *args))

    def _timed(self, call: Callable[..., Any], *args: Any) -> Any:
        budget = self._adapter.budget
        self.settimeout(budget.seconds())
        try:
            return call(*args)
        except TimeoutError:
            budget.late = True
            raise


class _UnixClient(OpaClient):  # type: ignore[misc, valid-type]  # the package has no type information
    """One connection to OPA: no proxy, no redirect, no second attempt."""

    def __init__(self, path: str) -> None:
        super().__init__(retries=0)
        self.adapter = _UnixAdapter(path)
        session: requests.Session = self._session
        session.trust_env = False
        session.max_redirects = 0
        session.hooks["response"].append(_demand_utf8)
        session.mount(self.root_url, self.adapter)


def _demand_utf8(response: requests.Response, **_: Any) -> None:
    """`requests` would guess another encoding, or replace what it cannot read."""
    response.content.decode("utf-8")


class _UnixAdapter(HTTPAdapter):
    """Sends the requests of one client through one unix socket; `budget` is what the current call may use."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.budget = _Budget(0, 0)
        self.path = path
        self.socket: _Socket | None = None
        self._pool = HTTPConnectionPool("localhost", maxsize=1)
        self._pool.ConnectionCls = partial(_Connection, self)  # type: ignore[assignment]  # it is only called

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> HTTPConnectionPool:
        return self._pool

    def close(self) -> None:
        self._pool.close()

    def cut(self) -> None:
        """Close the connection, so that OPA stops; uses no lock, because an interrupt may have left it locked."""
        if self.socket is not None and (number := self.socket.detach()) >= 0:
            os.close(number)  # an unfinished answer, referenced by the interrupt, would keep it open


class _Connection(HTTPConnection):
    def __init__(self, adapter: _UnixAdapter, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._adapter = adapter

    def _new_conn(self) -> socket.socket:
        made = _Socket(self._adapter)
        try:
            made.connect(self._adapter.path)
        except BaseException:
            made.close()
            raise
        self._adapter.socket = made
        return made

"""Ask OPA through opa-python-client over its unix socket: one deadline and one size cap a call.

The stock session has neither a unix socket nor a total deadline, and it obeys proxy settings; so
its session is replaced here, the one file that knows opa-python-client, requests and urllib3.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from engine.errors import DecideError
from engine.settings import OpaLimits


def _opa_client() -> Any:
    """OpaClient by itself: the package's own __init__ imports aiohttp, a quarter of a whole `engine check`."""
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
_RETRY = "ask again; if it stays, run `engine doctor`"


@dataclass(frozen=True, slots=True)
class Reply:
    """What OPA answered: the value of the rule, absent when undefined, and the revisions it holds."""

    body: dict[str, Any]

    @property
    def defined(self) -> bool:
        """Whether the rule has a value."""
        return "result" in self.body

    @property
    def result(self) -> Any:
        """The rule's value; KeyError when it has none."""
        return self.body["result"]

    def revision(self, archive: str) -> str | None:
        """The revision of the archive of this file name, as OPA itself reports it."""
        try:
            revision = self.body["provenance"]["bundles"][archive]["revision"]
        except (KeyError, TypeError):
            return None
        return revision if isinstance(revision, str) else None


class Client:
    """Asks one OPA. Safe to share between threads; calls are made one at a time."""

    def __init__(self, path: str, limits: OpaLimits) -> None:
        self._path = path
        self._limits = limits
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._renew()

    def _renew(self) -> None:
        self._budget = _Budget()
        self._client = _UnixClient(self._path, self._budget)

    def ask(self, rule: str, document: dict[str, Any], seconds: float | None = None) -> Reply:
        """The value of `data.admission.<rule>` for this input.

        Raises DecideError: `engine.opa_timeout` after `seconds`, `engine.opa_error` when
        evaluation fails, `engine.opa_unavailable` when OPA cannot be reached or talks nonsense.
        """
        if os.getpid() != self._owner:  # a fork shares the connection: it could read another request's answer
            raise DecideError(
                "this engine was opened in another process",
                remedy="open an engine of its own in each process, after the fork",
                code="engine.opa_unavailable",
            )
        with self._lock:
            self._budget.start(seconds or self._limits.answer_seconds, self._limits.answer_bytes)
            try:
                body = self._client.query_rule(document, "admission", rule, _PARAMETERS)
            except requests.HTTPError as error:
                raise DecideError(
                    "OPA refused or failed the evaluation", remedy=_RETRY, code="engine.opa_error"
                ) from error
            except (requests.RequestException, HTTPError, OSError, ValueError, RecursionError) as error:
                raise self._failure() from error
            except BaseException:
                self._renew()  # an interrupt may have left the connection half read and its pool locked
                raise
        if not isinstance(body, dict):
            raise DecideError("OPA's answer is not an object", remedy=_RETRY, code="engine.answer_malformed")
        return Reply(body)

    def _failure(self) -> DecideError:
        if self._budget.late:
            return DecideError("OPA did not answer in time", remedy=_RETRY, code="engine.opa_timeout")
        if self._budget.large:
            return DecideError("OPA's answer is too large", remedy=_RETRY, code="engine.answer_malformed")
        return DecideError("OPA cannot be reached or does not talk HTTP and JSON", remedy=_RETRY)

    def close(self) -> None:
        """Close the connection, unless it is another process's."""
        if os.getpid() != self._owner:
            return
        self._client.close_connection()


class _Budget:
    """What the call under way may still use: a moment of the monotonic clock, a count of bytes."""

    def __init__(self) -> None:
        self.start(0, 0)

    def start(self, seconds: float, size: int) -> None:
        self._deadline = time.monotonic() + seconds
        self._left = size
        self.late = False
        self.large = False

    def seconds(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            self.late = True
            raise TimeoutError("deadline")
        return left

    def spend(self, size: int) -> int:
        self._left -= size
        if self._left < 0:
            self.large = True
            raise OSError("answer too large")
        return size


class _Socket(socket.socket):
    """A unix socket that charges every call to the budget, so a drip of bytes cannot outlast it."""

    budget: _Budget

    def sendall(self, *args: Any) -> None:
        self.settimeout(self.budget.seconds())
        self._timed(super().sendall, *args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.budget.seconds())
        return self.budget.spend(self._timed(super().recv_into, *args))

    def _timed(self, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except TimeoutError:
            self.budget.late = True
            raise


class _UnixClient(OpaClient):  # type: ignore[misc, valid-type]  # the package has no type information
    def __init__(self, path: str, budget: _Budget) -> None:
        self._path = path
        self._budget = budget
        super().__init__(retries=0)

    def _init_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.max_redirects = 0
        session.mount("http://", _UnixAdapter(self._path, self._budget))
        return session


class _UnixAdapter(HTTPAdapter):
    def __init__(self, path: str, budget: _Budget) -> None:
        super().__init__()
        self._pool = _UnixPool(path, budget)

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool

    def close(self) -> None:
        self._pool.close()


class _UnixPool(HTTPConnectionPool):
    def __init__(self, path: str, budget: _Budget) -> None:
        super().__init__("localhost", maxsize=1)
        self._path = path
        self._budget = budget

    def _new_conn(self) -> HTTPConnection:
        return _UnixConnection(self._path, self._budget)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, budget: _Budget) -> None:
        super().__init__("localhost")
        self._path = path
        self._budget = budget

    def _new_conn(self) -> socket.socket:
        connection = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.budget = self._budget
        try:
            connection.settimeout(self._budget.seconds())
            connection.connect(self._path)
        except OSError:
            connection.close()
            raise
        return connection

"""An OPA on a unix socket that tells how long each evaluation took.

It starts as the engine starts its own, but serves any archives and any path: the engine's server
answers only from the engine's policy. OPA's evaluation time is wall time inside OPA, without HTTP
and JSON; over many short evaluations its median is as good as CPU time.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Self

_ENVIRONMENT = {"GOGC": "400"}
_START_SECONDS = 20.0
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The value of a rule, and nanoseconds of its evaluation."""

    result: Any
    evaluation: int


class Served:
    """A context manager; `folder` must not be used by another one."""

    def __init__(self, binary: Path, archives: Sequence[Path], folder: Path) -> None:
        self._socket = folder / "opa.sock"
        self._command = [str(binary), "run", "--server", "--addr", f"unix://{self._socket}"]
        self._command += ["--log-level", "error", "--skip-version-check", "--bundle", *map(str, archives)]
        self._connection = _Connection(self._socket)
        self._started = 0.0

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self.process = subprocess.Popen(self._command, env=_ENVIRONMENT, stdin=subprocess.DEVNULL)
        try:
            self._connect()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.process.kill()
        self.process.wait()

    def ask(self, path: str, document: Any) -> Reply:
        """The value at `/v1/data/<path>` for this input; RuntimeError when it has none."""
        return self.post(path, json.dumps({"input": document}).encode())

    def post(self, path: str, body: bytes) -> Reply:
        """As `ask`, with the body made beforehand."""
        self._connection.request("POST", f"/v1/data/{path}?metrics=true", body)
        answer = json.loads(self._connection.getresponse().read())
        if "result" not in answer:
            raise RuntimeError(f"OPA gives no value for `{path}`: {answer}")
        return Reply(answer["result"], answer["metrics"]["timer_rego_query_eval_ns"])

    def typical(self, path: str, document: Any, times: int) -> float:
        """Median nanoseconds of this many evaluations."""
        body = json.dumps({"input": document}).encode()
        return median(self.post(path, body).evaluation for _ in range(times))

    def _connect(self) -> None:
        while True:
            try:
                self._connection.connect()
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > self._started + _START_SECONDS:
                    raise RuntimeError("OPA did not start; what it said stands above") from error
                time.sleep(0.002)
            else:
                return


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_ANSWER_SECONDS)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise

"""An OPA on a unix socket that logs the time of each evaluation.

It starts as the engine starts its own, but serves any archives and any path: the engine's server
answers only from the engine's policy.
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
from typing import Any, Self

from benchmarks.measure import NotMeasuredError

_ENVIRONMENT = {"GOGC": "400"}
_START_SECONDS = 20.0
_ANSWER_SECONDS = 60.0


class Served:
    """A context manager; `folder` must not be used by another one at the same time."""

    def __init__(self, binary: Path, archives: Sequence[Path], folder: Path) -> None:
        self._socket = folder / "opa.sock"
        self._log = folder / "opa.log"
        self._command = [str(binary), "run", "--server", "--addr", f"unix://{self._socket}"]
        self._command += ["--log-level", "error", "--skip-version-check", "--bundle", *map(str, archives)]
        self._connection = _Connection(self._socket)

    def __enter__(self) -> Self:
        self._socket.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.process.kill()
        self.process.wait()

    def ask(self, path: str, document: Any) -> Any:
        """The value of `data.<path>` for this input; NotMeasuredError when it has none."""
        answer = self.post(path, json.dumps({"input": document}).encode())
        if "result" not in answer:
            raise NotMeasuredError(f"OPA gives no value for `{path}`: {answer}")
        return answer["result"]

    def allow(self, document: Any) -> None:
        """Decide on this input; NotMeasuredError unless it is allowed, for that would measure a refusal."""
        if (decision := self.ask("admission/decision", document))["outcome"] != "allow":
            raise NotMeasuredError(f"this would measure a refusal: {decision['findings'][:3]}")

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        """OPA's whole answer, its own metrics among it."""
        self._connection.request("POST", f"/v1/data/{path}?metrics=true", body)
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return answer

    def processor(self) -> float:
        """CPU seconds that OPA has used so far, with its garbage collection."""
        return time.clock_gettime((~self.process.pid << 3) | 2)  # the clock of another process, clock_getcpuclockid(3)

    def _connect(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._connection.connect()
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    said = self._log.read_text(encoding="utf-8", errors="replace")
                    raise NotMeasuredError(f"OPA did not start: {said}") from error
                time.sleep(0.002)
            else:
                return


@dataclass(frozen=True, slots=True)
class Question:
    """One input for one path of one OPA, and what answering it takes."""

    opa: Served
    path: str
    body: bytes

    @classmethod
    def of(cls, opa: Served, path: str, document: Any) -> Question:
        """Ask for `data.<path>` with this input; NotMeasuredError when that has no value."""
        opa.ask(path, document)
        return cls(opa, path, json.dumps({"input": document}).encode())

    def evaluation(self) -> float:
        """Nanoseconds of evaluation by OPA's own clock, without HTTP and JSON.

        Wall time: right for what takes less than a time slice of the scheduler, as a median of many.
        """
        found: int = self.opa.post(self.path, self.body)["metrics"]["timer_rego_query_eval_ns"]
        return found

    def processor(self) -> float:
        """CPU seconds of evaluation: those of the answer less those of the same body when nothing is evaluated.

        Right for what takes long: time that other processes take does not count.
        """
        before = self.opa.processor()
        self.opa.post(self.path, self.body)
        between = self.opa.processor()
        self.opa.post("undefined", self.body)
        return 2 * between - before - self.opa.processor()


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

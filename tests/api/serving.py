"""A serving engine as a user has it, a process of its own, and the plainest client to speak to it with."""

from __future__ import annotations

import http.client
import json
import os
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.state import open_store
from tests.command import lines, measured, warm
from tests.conftest import ROOT
from tests.shared_opa import POOL
from tests.warm import Forked, forkable

SECONDS = 300.0
"""For a start or an end on a busy machine; a hang fails."""

LICENSE: dict[str, Any] = {
    "purpose": "train",
    "export_license": None,
    "license": "MIT",
    "sha256": "a" * 64,
    "decisions": [],
}
"""A request that can be read and is denied: no decision on this content exists."""

DECIDED = {"sha256": "a" * 64, "decision": "accepted", "decided_at": "2026-11-02T10:00:00Z"}
ALLOWED: dict[str, Any] = {**LICENSE, "decisions": [DECIDED]}
"""The same, decided on: allowed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Serving:
    """A running `engine serve`."""

    process: subprocess.Popen[bytes] | Forked
    state: Path
    log: Path
    host: str
    port: int
    context: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        control: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> Reply:
        """One request on a connection of its own; `body` is bytes, or a value to send as JSON."""
        sent = dict(self.headers)
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        with closing(self._connection(control=control, context=context)) as connection:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def decide(self, point: str, body: Any, query: str = "", **headers: str) -> Reply:
        """`post` to a decision point."""
        return self.post(f"/v1/decide/{point}{query}", body, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        """POST to a path; `X_Run_ID="…"` is a header."""
        return self.ask("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def raw(self, data: bytes, seconds: float = 15.0) -> bytes:
        """Send bytes as they are and give everything that comes until the other end closes."""
        with socket.create_connection((self.host, self.port), timeout=seconds) as connection:
            connection.sendall(data)
            return read_all(connection)

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def records(self) -> list[dict[str, Any]]:
        """What the record has, once this engine has ended."""
        return lines(self.state)

    def log_lines(self) -> list[dict[str, Any]]:
        """The operational log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self, name: signal.Signals = signal.SIGTERM) -> int:
        """End it and give its exit code."""
        self.process.send_signal(name)
        return self.process.wait(SECONDS)

    def _connection(self, *, control: bool, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
        context = context or self.context
        if control:
            unix = _Unix("localhost", timeout=SECONDS)
            unix.path = self.state / "run" / "control.sock"
            return unix
        if context is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=SECONDS, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)


class _Unix(http.client.HTTPConnection):
    path: Path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def read_all(connection: socket.socket) -> bytes:
    """Everything until the end; a reset is an end too."""
    found = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


def environment(cache: Path, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the environment of the tests but PATH."""
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT}/adapters", "HOME": "/nonexistent"}
    return own | {"XDG_CACHE_HOME": str(cache.parent)} | measured() | dict(changes or {})


def issue(
    state: Path,
    principal: str = "pipeline",
    points: Sequence[str] = ("license",),
    seconds: int = 600,
    approves: Sequence[str] = (),
    audience: str | None = None,
    *,
    single_use: bool = False,
) -> str:
    """A new token of this principal for these points."""
    now = int(time.time())
    with closing(open_store(state)) as store:
        return store.issue(
            principal, points, now + seconds, now, approves, audience=audience, single_use=single_use
        ).text


_WITH_LIMITS = """
import json, sys
from pathlib import Path
from admission_adapters.runner.run import ForwardLimits
from engine.api.limits import ApiLimits
from engine.api.server import Listen, run
from engine.settings import Settings
state, given = Path(sys.argv[1]), json.loads(sys.argv[2])
policy = {"policy": Path(given["policy"])} if given["policy"] else {}
listen = Listen(port=0, limits=ApiLimits(**given["limits"]), forward=ForwardLimits(**given["forward"]))
sys.exit(run(Settings(state=state, root=Path("/dev/null"), **policy), listen, lambda _: None))
"""

_PATIENT = """
from engine import state
from engine.cli import main
from tests.state.samples import PATIENT
state.StateLimits = lambda: PATIENT
main()
"""
"""`engine`, whose operations on a shared state wait for as long as it takes."""


@contextmanager
def serving(  # noqa: PLR0913  (each is named)
    folder: Path,
    cache: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    limits: Mapping[str, float] | None = None,
    forward: Mapping[str, float] | None = None,
    policy: Path | None = None,
    command: Sequence[str] = ("serve",),
    patient: bool = False,
) -> Iterator[Serving]:
    """Start `engine serve` on any free port of this machine, and end it afterwards.

    With `limits` the same server is started with smaller limits than the command line can set, and with those of
    a runner in `forward`; then `policy` is its policy. A `patient` one waits long for a shared state. OPA gets the
    longest deadline, as this machine may be busy.
    """
    state = folder / "state"
    log = folder / "log"
    code, line = _PATIENT if patient else None, [*command, "--port", "0", "--state", str(state), *map(str, arguments)]
    if limits is not None:
        given = {"limits": limits, "forward": forward or {}, "policy": None if policy is None else str(policy)}
        code, line = _WITH_LIMITS, [str(state), json.dumps(given)]
    variables = environment(cache, {"ENGINE_DEADLINE": "60", **(env or {})})
    with started(code, line, cache, variables, log) as process:
        bound = _listening(process, log)
        yield Serving(process, state, log, bound["host"], bound["port"])


@contextmanager
def started(
    code: str | None, arguments: Sequence[str], cache: Path, variables: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes] | Forked]:
    """Start `engine ARGUMENTS…`, or this program with these arguments, and end it. Its standard error is in `log`."""
    process: subprocess.Popen[bytes] | Forked
    with log.open("wb") as file:
        if (opa := POOL.noted(cache)) is not None and forkable(variables):
            process = warm().start(code, arguments, variables, file, opa)
        else:
            start = ["-m", "engine"] if code is None else ["-c", code]
            process = subprocess.Popen([sys.executable, *start, *arguments], stderr=file, env=variables, cwd=ROOT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # a killed one could not report what it ran
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def refused(
    folder: Path,
    cache: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = ("serve",),
) -> tuple[int, str]:
    """Exit code and standard error of an `engine serve` that should not start."""
    line, variables = [*command, "--state", str(folder / "state"), *map(str, arguments)], environment(cache, env)
    if (opa := POOL.noted(cache)) is not None and forkable(variables):
        done = warm().run(line, ROOT, variables, b"", SECONDS, opa)
    else:
        start = [sys.executable, "-m", "engine", *line]
        done = subprocess.run(start, env=variables, capture_output=True, timeout=SECONDS, check=False)
    return done.returncode, done.stderr.decode()


def followed(engine: Serving, body: Any, media: str = "application/x-ndjson") -> Iterator[dict[str, Any]]:
    """The events of a run, as they come; the last one is its result."""
    data = json.dumps(body).encode()
    head = f"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {media}\r\n"
    with socket.create_connection((engine.host, engine.port), timeout=SECONDS) as connection:
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        with connection.makefile("rb") as answer:
            heads = b"".join(iter(lambda: answer.readline().strip(), b""))
            assert media.encode() in heads
            while size := int(answer.readline(), 16):
                part = answer.read(size)
                answer.readline()
                for line in part.splitlines():
                    if line.startswith((b"{", b"data: ")):
                        yield json.loads(line.removeprefix(b"data: "))
            assert answer.read() == b"\r\n"  # complete, and closed


def _listening(process: subprocess.Popen[bytes] | Forked, log: Path) -> dict[str, Any]:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{") and (found := json.loads(line))["event"] == "listening":
                return dict(found)
        _pause()
    raise AssertionError(f"no engine listens: {log.read_text()}")


def _pause() -> None:
    with selectors.DefaultSelector() as nothing:
        nothing.select(0.05)


def until(what: Any, seconds: float = 120.0) -> Any:
    """The first true value of `what()`; fails when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        _pause()
    raise AssertionError("it did not happen in time")

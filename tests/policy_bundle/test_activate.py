"""`engine policy activate` over a real control socket, with a server at its other end that says what we want."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from engine.cli.administration.control import post
from engine.cli.policy.commands import app
from engine.errors import EngineError, Exit
from engine.settings import CONTROL
from tests.processes import until

OLD, NEW = ({"rules": f"sha256:{one * 64}", "values": f"sha256:{two * 64}"} for one, two in ("ab", "cd"))
PROBLEM = {"where": "policy/levels.yaml:3", "message": "no such code", "remedy": "remove the row"}


@contextmanager
def server(
    state: Path, status: int, body: bytes, length: int | None = None, after: Callable[[], bool] = lambda: True
) -> Iterator[list[tuple[str, bytes]]]:
    """A server on the control socket; gives the path and body of what it was asked. It answers once `after` holds."""
    asked: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # one write, as a client may close at the end of the headers of an answer without a body

        def do_POST(self) -> None:
            asked.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            until(after)
            self.send_response(status)
            self.send_header("content-length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    (state / CONTROL).parent.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir((state / CONTROL).parent)  # the whole path may be too long to listen on
        listening = UnixStreamServer(CONTROL.name, Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield asked
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def activate(state: Path) -> Result:
    return CliRunner().invoke(app, ["activate", "--state", str(state)])


def test_what_stays_as_it_was_is_said(tmp_path: Path) -> None:
    body = json.dumps({**OLD, "values": NEW["values"], "previous": OLD, "removed_codes": []}).encode()
    with server(tmp_path, 200, body):
        result = activate(tmp_path)
    assert result.stdout == f"rules   {OLD['rules']} as before\nvalues  {OLD['values']} → {NEW['values']}\n"


def test_the_new_policy_is_printed(tmp_path: Path) -> None:
    with server(tmp_path, 200, json.dumps({**NEW, "previous": OLD}).encode()) as asked:
        result = activate(tmp_path)
    assert asked == [("/v1/policy/activate", b"")]
    assert result.exit_code == Exit.ALLOW
    assert result.stdout == f"rules   {OLD['rules']} → {NEW['rules']}\nvalues  {OLD['values']} → {NEW['values']}\n"
    assert result.stderr == ""


def test_each_removed_code_is_printed(tmp_path: Path) -> None:
    gone = ["source: a_code", "tool_call: b\u001b[31m"]
    with server(tmp_path, 200, json.dumps({**NEW, "previous": OLD, "removed_codes": gone}).encode()):
        result = activate(tmp_path)
    assert result.exit_code == Exit.ALLOW
    assert result.stdout.endswith("\nremoved source: a_code\nremoved tool_call: b?[31m\n")


def test_the_first_policy_is_printed(tmp_path: Path) -> None:
    """A server that had none before, since its policy did not build."""
    with server(tmp_path, 200, json.dumps({**NEW, "previous": None}).encode()):
        assert activate(tmp_path).stdout.startswith(f"rules   none → {NEW['rules']}\n")


def test_a_refused_policy_is_reported_with_its_problems(tmp_path: Path) -> None:
    with server(tmp_path, 409, json.dumps({"title": "refused", "problems": [PROBLEM, PROBLEM]}).encode()):
        result = activate(tmp_path)
    assert result.exit_code == Exit.POLICY_INVALID
    assert result.stdout == ""
    told = "policy/levels.yaml:3: no such code\n  remove the row\n"
    assert result.stderr.startswith(told * 2)
    assert "keeps the previous policy" in result.stderr


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_server_that_cannot(status: int, tmp_path: Path) -> None:
    with server(tmp_path, status, b'{"detail": "the engine\\u001b[31m is busy", "remedy": "try again"}'):
        result = activate(tmp_path)
    assert result.exit_code == Exit.FAILED_CLOSED
    assert result.stderr.startswith("engine: the engine?[31m is busy\n  try again\n")
    assert f"HTTP {status}" in result.stderr


@pytest.mark.parametrize("body", [b"{}", b'{"problems": {}}', b'{"problems": [1]}', b'{"problems": [{}]}'])
def test_a_refusal_without_problems(body: bytes, tmp_path: Path) -> None:
    with server(tmp_path, 409, body):
        result = activate(tmp_path)
    assert result.exit_code == Exit.POLICY_INVALID
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b"\xff", b"[" * 100_000])
def test_a_malformed_answer_is_refused(body: bytes, tmp_path: Path) -> None:
    with server(tmp_path, 200, body):
        result = activate(tmp_path)
    assert result.exit_code == Exit.FAILED_CLOSED
    assert result.stderr.startswith("engine: no server answers at ")


def test_every_server_is_notified_and_the_worst_answer_counts(tmp_path: Path) -> None:
    good = json.dumps({**NEW, "previous": OLD}).encode()
    with (
        server(tmp_path, 200, good) as first,
        server(tmp_path / "chains/002", 404, b"{}") as program,  # takes acts only
        server(tmp_path / "chains/003", 409, json.dumps({"problems": [PROBLEM]}).encode()) as third,
    ):
        result = activate(tmp_path)
    assert [len(asked) for asked in (first, program, third)] == [1, 1, 1]
    assert result.exit_code == Exit.POLICY_INVALID
    assert result.stdout.startswith(f"server on chain 1:\nrules   {OLD['rules']} → {NEW['rules']}\n")
    assert result.stdout.endswith("server on chain 3:\n")
    assert result.stderr.startswith("policy/levels.yaml:3: no such code\n")


def test_a_failing_server_does_not_stop_the_notification_of_others(tmp_path: Path) -> None:
    good = json.dumps({**NEW, "previous": OLD}).encode()
    with server(tmp_path, 200, b"<html>"), server(tmp_path / "chains/002", 200, good) as second:
        result = activate(tmp_path)
    assert (len(second), result.exit_code) == (1, Exit.FAILED_CLOSED)
    assert "server on chain 2:\nrules " in result.stdout


def test_no_server_waits_until_another_has_answered(tmp_path: Path) -> None:
    good = json.dumps({**NEW, "previous": OLD}).encode()
    with (
        server(tmp_path / "chains/002", 200, good) as second,
        server(tmp_path, 200, good, after=lambda: bool(second)),
    ):
        assert activate(tmp_path).exit_code == Exit.ALLOW


def test_a_truncated_answer_is_an_error(tmp_path: Path) -> None:
    with server(tmp_path, 200, b'{"rules":', length=100), pytest.raises(EngineError, match="an incomplete answer"):
        post(tmp_path, "/v1/policy/activate")


def test_no_server(tmp_path: Path) -> None:
    result = activate(tmp_path)
    assert isinstance(result.exception, EngineError)
    assert result.exception.exit == Exit.FAILED_CLOSED
    assert "no server answers" in result.exception.message
    assert "engine serve" in result.exception.remedy
    with server(tmp_path, 200, b"{}"):
        pass
    with pytest.raises(EngineError, match="nothing listens"):
        post(tmp_path, "/v1/policy/activate")


def test_a_server_that_never_answers(tmp_path: Path) -> None:
    waiting = threading.Event()

    class Silent(UnixStreamServer):
        def process_request(self, request: Any, _: Any) -> None:
            waiting.wait(30)
            self.shutdown_request(request)

    (tmp_path / CONTROL).parent.mkdir(parents=True)
    with Silent(str(tmp_path / CONTROL), BaseHTTPRequestHandler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(EngineError, match="no server answers"):
                post(tmp_path, "/v1/policy/activate", seconds=0.2)
        finally:
            waiting.set()
            listening.shutdown()
            thread.join()


def test_a_state_folder_with_a_long_path(tmp_path: Path) -> None:
    """Longer than the address of a unix socket may be."""
    state = tmp_path / ("long" * 40)
    assert len(str(state)) > 107
    with server(state, 200, json.dumps({**NEW, "previous": OLD}).encode()):
        assert activate(state).exit_code == Exit.ALLOW

"""The control socket of a program with the engine inside: it goes on whatever its clients do and the machine lacks."""

from __future__ import annotations

import json
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.administration.control import Control
from engine.administration.users import user_of
from engine.cli.administration.control import post
from engine.engine import Engine
from engine.errors import EngineError, GatherError
from engine.model import Caller
from engine.settings import CONTROL, Settings
from tests.command import decisions
from tests.expect import there
from tests.facilities import needs
from tests.processes import in_child, until
from tests.threads import no_threads

REQUEST = b"POST /v1/administration HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"
ME = user_of(os.getuid())


TAKEN = {"taken": True}


def taken(_asked: bytes | EngineError, _user: Caller, _token: str | None) -> tuple[int, dict[str, Any]]:
    return 200, TAKEN


@contextmanager
def client(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connected:
        connected.settimeout(60)
        connected.connect(str(path))
        yield connected


def answer(connected: socket.socket) -> Any:
    received = b""
    while part := connected.recv(4096):
        received += part
    return json.loads(received.partition(b"\r\n\r\n")[2])


def asked(path: Path) -> Any:
    with client(path) as connected:
        connected.sendall(REQUEST)
        return answer(connected)


def test_a_connection_without_a_free_descriptor_is_accepted_later(tmp_path: Path) -> None:
    """Without a free descriptor; a thread that had ended would leave clients waiting at the socket."""
    path = tmp_path / "control.sock"
    with closing(Control(path, taken)) as control, client(path) as first, socket.socket(socket.AF_UNIX) as second:
        with Path(f"/proc/self/task/{control._thread.native_id}/status").open(encoding="ascii") as status:

            def pauses() -> int:
                status.seek(0)
                return int(status.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0])

            until(lambda: control._current is not None)
            limits, before = resource.getrlimit(resource.RLIMIT_NOFILE), pauses()
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
            try:
                first.close()
                until(lambda: pauses() > before + 5)  # it tried, and more than once
                second.connect(str(path))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        second.settimeout(60)
        second.sendall(REQUEST)
        assert answer(second) == TAKEN


def test_a_request_that_crashes_the_handler_leaves_later_ones_unaffected(tmp_path: Path) -> None:
    broken = [True]

    def act(*asked: Any) -> tuple[int, dict[str, Any]]:
        if broken.pop() if broken else False:
            raise ZeroDivisionError
        return taken(*asked)

    path = tmp_path / "control.sock"
    with closing(Control(path, act)):
        with pytest.raises(json.JSONDecodeError):
            asked(path)
        assert asked(path) == TAKEN


def test_a_socket_that_no_thread_serves_is_not_left_behind(settings: Settings) -> None:
    """A client would wait for its answer for minutes."""
    with Engine(settings) as engine:
        engine.store()
        with no_threads():
            with pytest.raises(GatherError, match="no thread"):
                Control(settings.state / "other.sock", taken)
            there(engine.services).store()  # where the control socket is opened otherwise
        assert not (settings.state / "other.sock").exists()
        assert not (settings.state / CONTROL).exists()
        assert engine.check("license", {}).decision.outcome == "deny"


def test_a_slow_request_has_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.administration.control._SECONDS", 0.5)
    path = tmp_path / "control.sock"
    with closing(Control(path, taken)), client(path) as slow:

        def dropped() -> bool:
            try:
                slow.sendall(b"x")
            except BrokenPipeError:
                return True
            return False

        until(dropped)
        assert asked(path) == TAKEN


def test_closing_does_not_wait_for_an_incomplete_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.administration.control._SECONDS", 3600.0)
    control = Control(tmp_path / "control.sock", taken)
    with client(tmp_path / "control.sock") as slow:
        slow.sendall(b"x")
        until(lambda: control._current is not None)
        end = threading.Thread(target=control.close, daemon=True)
        end.start()
        end.join(60)
        assert not end.is_alive()


def test_closing_waits_for_the_act_under_way_and_its_answer(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def act(*asked: Any) -> tuple[int, dict[str, Any]]:
        begun.set()
        assert go_on.wait(60)
        return taken(*asked)

    control = Control(tmp_path / "control.sock", act)
    with client(tmp_path / "control.sock") as connected:
        connected.sendall(REQUEST)
        assert begun.wait(60)
        end = threading.Thread(target=control.close, daemon=True)
        end.start()
        until(control._closing.is_set)
        go_on.set()
        assert answer(connected) == TAKEN
        end.join(60)
    assert not end.is_alive()


def test_an_attempt_with_a_wrong_token_is_recorded(settings: Settings) -> None:
    act = {"act": "revoke_token", "id": "0a1b2c3d", "reason": "leaked"}
    with Engine(settings) as engine:
        there(engine.services).store()
        reply = post(settings.state, "/v1/administration", act, "aet_nope")
        assert (reply.status, reply.document["code"]) == (401, "unauthorized")
    (line,) = decisions(settings.state)
    assert (line["point"], line["outcome"], line["principal"]) == ("administration", "deny", ME)
    assert [finding["code"] for finding in line["findings"]] == ["unauthorized"]


@needs("root")
def test_an_attempt_of_another_user_is_recorded_and_refused(settings: Settings) -> None:
    """The permissions keep others out; should these be lost, the kernel still names who is at the socket."""
    with Engine(settings) as engine:
        there(engine.services).store()
        path = settings.state / CONTROL
        path.parent.chmod(0o755)
        path.chmod(0o666)
        token = engine.store().issue("officer", [], engine.now() + 600, engine.now(), ["license"]).text

        def other() -> bool:
            os.chdir(path.parent)
            os.setresuid(54321, 54321, 54321)
            with socket.socket(socket.AF_UNIX) as connected:
                connected.connect(path.name)
                head = b"POST /v1/administration HTTP/1.1\r\nauthorization: Bearer " + token.encode()
                connected.sendall(head + b"\r\ncontent-length: 2\r\n\r\n{}")
                return bool(answer(connected)["code"] == "unauthorized")

        assert in_child(other)
    (line,) = decisions(settings.state)
    assert [finding["code"] for finding in line["findings"]] == ["unauthorized"]


@pytest.mark.full
def test_a_socket_that_could_not_be_opened_is_opened_later(settings: Settings) -> None:
    path = settings.state / CONTROL
    path.parent.mkdir(parents=True)
    path.touch()
    with Engine(settings) as engine:
        there(engine.services).store()
        assert path.is_file()
        path.unlink()
        until(lambda: bool(engine.services and engine.services.store()) and path.is_socket())
        assert post(settings.state, "/v1/administration", {"act": "none"}).status == 422

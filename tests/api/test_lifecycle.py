"""Start, change of policy, and end: what was accepted is finished, recorded, and nothing else is touched."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from engine.api.server import Listen, Server
from engine.errors import Exit
from engine.settings import Settings
from tests.api.serving import ALLOWED, SECONDS, Serving, refused, serving, until
from tests.api.test_connection import HEAD, WHOLE, status
from tests.command import lines
from tests.conftest import ROOT


@pytest.fixture
def own(tmp_path: Path, cache: Path) -> Iterator[Serving]:
    """An engine of this test alone, with a policy that it may change."""
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    with serving(tmp_path, cache, "--policy", policy) as running:
        yield running


def license_file(api: Serving) -> Path:
    return api.state.parent / "policy" / "licenses.yaml"


def refuse_mit(api: Serving) -> None:
    text = license_file(api).read_text()
    lines = text.splitlines(keepends=True)
    (at,) = (index for index, line in enumerate(lines) if line.strip().startswith("MIT:"))
    block = "".join(lines[at : at + 3])
    changed = block.replace("admit", "refuse", 1)
    assert changed != block
    license_file(api).write_text(text.replace(block, changed, 1))


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_leaves_no_socket(own: Serving, name: signal.Signals) -> None:
    with socket.create_connection((own.host, own.port), timeout=30) as idle:
        assert own.stop(name) == 0
        assert idle.recv(10) == b""
    assert not (own.state / "run" / "control.sock").exists()
    assert [line["event"] for line in own.log_lines()][-2:] == ["stopping", "stopped"]
    assert own.records()


@pytest.mark.full
def test_under_load_every_answer_that_was_given_stands_in_the_record(own: Serving) -> None:
    answered: list[str] = []
    ended = threading.Event()

    def load() -> None:
        while True:
            try:
                reply = own.decide("license", ALLOWED)
            except OSError:
                ended.set()
                return
            if reply.status == 200:
                answered.append(reply.json["decision_id"])

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(answered) > 100)
    assert own.stop() == 0
    for thread in threads:
        thread.join()
    recorded = {line["decision_id"] for line in own.records() if line["kind"] == "decision"}
    assert set(answered) <= recorded
    assert ended.is_set()


def test_a_request_begun_before_the_signal_is_answered_and_the_next_is_not(own: Serving) -> None:
    body = json.dumps(ALLOWED).encode()
    with socket.create_connection((own.host, own.port), timeout=30) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:50])
        until(lambda: own.ask("GET", "/health").status == 200)
        own.process.send_signal(signal.SIGTERM)
        until(lambda: any(line["event"] == "stopping" for line in own.log_lines()))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((own.host, own.port), timeout=30)
        connection.sendall(body[50:] + WHOLE)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.count(b'"outcome":"allow"') >= 1
    assert b"connection: close" in answer
    assert own.process.wait(SECONDS) == 0


def test_stopping_is_logged_after_the_listener_is_closed(settings: Settings) -> None:
    told: list[str] = []
    log = Mock(event=lambda name, **_: told.append(name))
    api = Mock(log=log, active=0, refusals=Mock(sweep=AsyncMock()))
    listener = Mock(close=lambda: told.append("closed"))
    assert asyncio.run(Server(api, Listen(), None, settings, print)._end([listener])) is Exit.ALLOW
    assert told == ["closed", "stopping", "stopped"]


def test_a_second_signal_does_not_wait(own: Serving) -> None:
    with socket.create_connection((own.host, own.port), timeout=30) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        until(lambda: own.ask("GET", "/health").status == 200)
        own.process.send_signal(signal.SIGTERM)
        until(lambda: any(line["event"] == "stopping" for line in own.log_lines()))
        own.process.send_signal(signal.SIGTERM)
        assert own.process.wait(SECONDS) == 4


@pytest.mark.full
def test_the_end_is_bounded_in_time(tmp_path: Path, cache: Path) -> None:
    with (
        serving(tmp_path, cache, limits={"stop_seconds": 0.5}) as running,
        socket.create_connection((running.host, running.port), timeout=30) as connection,
    ):
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        until(lambda: running.ask("GET", "/health").status == 200)
        assert running.stop() == 4


def test_a_changed_policy_is_activated_over_the_control_socket(own: Serving) -> None:
    before = own.decide("license", ALLOWED).json
    refuse_mit(own)
    assert own.decide("license", ALLOWED).json["outcome"] == "allow"
    reply = own.ask("POST", "/v1/policy/activate", control=True)
    assert reply.status == 200
    after = own.decide("license", ALLOWED).json
    assert (after["outcome"], {**after["policy"], "previous": before["policy"], "removed_codes": []}) == (
        "deny",
        reply.json,
    )
    assert after["policy"]["rules"] == before["policy"]["rules"]


def test_a_broken_policy_is_refused_with_its_problems_and_the_old_one_answers_on(own: Serving) -> None:
    before = own.decide("license", ALLOWED).json
    license_file(own).write_text("licenses: {MIT: {decision: perhaps}}\nunknown: 1\n")
    reply = own.ask("POST", "/v1/policy/activate", control=True)
    assert (reply.status, reply.json["code"]) == (409, "engine.policy_invalid")
    assert {"where", "message", "remedy"} == set(reply.json["problems"][0])
    after = own.decide("license", ALLOWED).json
    assert (after["outcome"], after["policy"]) == ("allow", before["policy"])


def test_sighup_activates_and_logs_the_result(own: Serving) -> None:
    refuse_mit(own)
    own.process.send_signal(signal.SIGHUP)
    until(lambda: any(line["event"] == "policy_activated" for line in own.log_lines()))
    assert own.decide("license", ALLOWED).json["outcome"] == "deny"
    license_file(own).write_text("nonsense")
    own.process.send_signal(signal.SIGHUP)
    until(lambda: any(line["event"] == "policy_refused" for line in own.log_lines()))
    assert own.decide("license", ALLOWED).json["outcome"] == "deny"


_RELOADED_EARLY = """
import os, signal
from engine.api import server
from engine.cli import main
ask = server._ask_leave
def early(*given):
    os.kill(os.getpid(), signal.SIGHUP)
    return ask(*given)
server._ask_leave = early
main()
"""


def test_sighup_while_the_server_starts_is_followed_once_it_serves(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.api.serving._PATIENT", _RELOADED_EARLY)
    with serving(tmp_path, cache, patient=True) as running:
        until(lambda: any(line["event"] == "policy_activated" for line in running.log_lines()))
        assert running.decide("license", ALLOWED).json["outcome"] == "allow"


_FAULTY = """
from engine import assembly
from engine.api import server
from engine.cli import main
reload = server.reload
async def first(api, reason):
    server.reload = second
    raise RuntimeError
async def second(api, reason):
    server.reload, build, assembly.build = reload, assembly.build, lambda *_: 1 / 0
    try:
        await reload(api, reason)
    finally:
        assembly.build = build
server.reload = first
main()
"""


def test_after_faults_inside_the_engine_sighup_activates_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.api.serving._PATIENT", _FAULTY)
    with serving(tmp_path, cache, patient=True) as running:
        for event, number in (("crash", 1), ("policy_refused", 1), ("policy_activated", 1)):
            running.process.send_signal(signal.SIGHUP)
            until(lambda: [one["event"] for one in running.log_lines()].count(event) == number)  # noqa: B023
        assert running.decide("license", ALLOWED).json["outcome"] == "allow"
        assert [line["event"] for line in running.log_lines()].count("crash") == 2
        assert running.stop() == 0
    assert [line["outcome"] for line in running.records() if line["kind"] == "policy"] == [
        *("started", "refused", "activated"),
    ]
    assert "Traceback" not in running.log.read_text()


@pytest.mark.full
def test_lowered_refusals_are_logged_at_startup_and_after_a_policy_change(tmp_path: Path, cache: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    text = (policy / "levels.yaml").read_text(encoding="utf-8")

    def lower(code: str) -> None:
        row = "{level: warn, owner: data@example.org, reason: new terms, until: '2036-12-31'}"
        (policy / "levels.yaml").write_text(f"{text}  media: {{{code}: {row}}}\n", encoding="utf-8")

    def lowered_codes(running: Serving) -> list[str]:
        return [line["code"] for line in running.log_lines() if line["event"] == "refusal_lowered"]

    lower("media_too_large")
    with serving(tmp_path, cache, "--policy", policy) as running:
        until(lambda: lowered_codes(running) == ["media_too_large"])
        (told,) = (line for line in running.log_lines() if line["event"] == "refusal_lowered")
        assert (told["owner"], "data@" in told["detail"]) == ("data@example.org", False)
        lower("media_type_not_admitted")
        assert running.ask("POST", "/v1/policy/activate", control=True).status == 200
        until(lambda: lowered_codes(running) == ["media_too_large", "media_type_not_admitted"])


@pytest.mark.full
def test_watching_activates_a_change_by_itself(tmp_path: Path, cache: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    with serving(tmp_path, cache, "--policy", policy, "--watch") as running:
        assert running.decide("license", ALLOWED).json["outcome"] == "allow"
        refuse_mit(running)
        until(lambda: running.decide("license", ALLOWED).json["outcome"] == "deny")


_EDITED_EARLY = """
import sys
from pathlib import Path
from engine.api import server
from engine.cli import main
ask, file = server._ask_leave, Path(sys.argv[sys.argv.index("--policy") + 1], "licenses.yaml")
def early(*given):
    file.write_text(file.read_text() + "# edited\\n")
    return ask(*given)
server._ask_leave = early
main()
"""


def test_watching_activates_a_change_that_was_made_while_the_server_started(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(ROOT / "policy", policy)
    monkeypatch.setattr("tests.api.serving._PATIENT", _EDITED_EARLY)
    with serving(tmp_path, cache, "--policy", policy, "--watch", patient=True) as running:
        until(lambda: any(line["event"] == "policy_activated" for line in running.log_lines()))


def test_activation_over_tcp_is_refused(api: Serving) -> None:
    reply = api.ask("POST", "/v1/policy/activate")
    assert (reply.status, reply.json["code"]) == (403, "engine.control_only")


def test_a_second_server_on_one_state_has_its_own_control_socket(api: Serving, tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache, "--state", api.state) as second:
        assert (api.state / "chains/002/run/control.sock").is_socket()
        assert second.decide("license", ALLOWED).status == 200
        assert second.stop() == 0
    assert not (api.state / "chains/002/run/control.sock").exists()
    assert api.ask("GET", "/health", control=True).status == 200


@pytest.mark.full
def test_a_stale_socket_is_replaced_and_any_other_file_is_kept(tmp_path: Path, cache: Path) -> None:
    place = tmp_path / "state" / "run" / "control.sock"
    place.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    with serving(tmp_path, cache) as running:
        assert running.ask("GET", "/health", control=True).status == 200
        assert running.stop() == 0
    place.write_text("mine")
    code, error = refused(tmp_path, cache, "--port", "0")
    assert code == 2
    assert "control socket" in error
    assert place.read_text() == "mine"


def test_an_address_in_use_is_reported(api: Serving, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "second").mkdir()
    code, error = refused(tmp_path / "second", cache, "--port", str(api.port))
    assert code == 2
    assert "in use" in error
    assert "policy" not in {line["kind"] for line in lines(tmp_path / "second" / "state")}


@pytest.mark.full
def test_ready_says_which_part_is_missing(own: Serving) -> None:
    assert own.ask("GET", "/ready").status == 200
    (pid,) = (line["pid"] for line in own.log_lines() if line["event"] == "opa_started")
    os.kill(pid, signal.SIGSTOP)
    try:
        reply = until(lambda: (found := own.ask("GET", "/ready")).status == 503 and found, 60)
        assert (reply.json["opa"], reply.json["record"], reply.json["state"]) == (False, True, True)
        denied = own.decide("license", ALLOWED)
        assert (denied.status, denied.json["code"]) == (503, "policy_unavailable")
        assert denied.json["decision"]["outcome"] == "deny"
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_an_archive_that_cannot_be_stored_is_reported_without_paths(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as running:
        shutil.rmtree(running.state / "uploads", ignore_errors=True)
        (running.state / "uploads").write_text("in the way")
        head = HEAD.replace(b"license", b"source").replace(b"application/json", b"application/zip")
        answer = running.raw(head.replace(b"Host", b"Connection: close\r\nHost") + b"Content-Length: 1\r\n\r\nx")
    assert status(answer) == 503
    assert str(tmp_path).encode() not in answer

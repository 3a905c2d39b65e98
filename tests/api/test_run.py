"""`POST /run`: the gate in front of a real runner, as a process; what gets through it, and what never leaves it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.runner.answer import run_result
from engine.api.app import App
from engine.api.identity import Failures, Identity
from engine.api.limits import ApiLimits
from engine.api.messages import Head, Peer, Response
from engine.api.metrics import Metrics
from engine.api.oplog import OperationalLog
from engine.api.origin import Site
from engine.api.routes import routes
from engine.api.run import MOST_RUNS
from engine.engine import AsyncEngine
from engine.errors import WorkError
from engine.flow import Context
from engine.model import Decision
from engine.model import Gate as ListenerGate
from engine.settings import Settings
from engine.state import open_store
from tests.api.serving import SECONDS, Reply, Serving, followed, issue, serving, until
from tests.command import lines, written
from tests.conftest import ROOT, lowered
from tests.processes import own_port
from tests.runners import (
    OUTPUT,
    Behavior,
    LoopbackRunner,
    answering,
    dripping,
    flooding,
    holding,
    raw,
    running,
    streaming,
)

SHARED = "correct-horse-battery-staple"
BOTH = ("runner_uri", "runner_request")
GATEWAY = "https://gateway.example.com"
MESSAGES = [{"role": "user", "content": "hello"}]
RUN: dict[str, Any] = {"agent": {"harness": "pi_core"}, "messages": MESSAGES}
STDIO = {**RUN, "mcp_servers": [{"name": "files", "transport": "stdio", "command": "npx files"}]}


@dataclass(frozen=True, slots=True)
class Gate:
    """A serving engine, the runner behind it by default, and another one that may be asked for."""

    engine: Serving
    runner: LoopbackRunner
    other: LoopbackRunner

    def run(self, body: Any = RUN, **headers: str) -> Reply:
        return self.engine.post("/run", body, **headers)

    def forget(self) -> None:
        for one in (self.runner, self.other):
            one.received.clear()
            one.behavior = answering()

    def recorded(self, request: str) -> list[tuple[str, str | None]]:
        """What the record has of a request, in its order: kinds, with the point of a decision."""
        found = [line for line in lines(self.engine.state) if line.get("request_id") == request]
        return [(line["kind"], line.get("point") or line.get("status")) for line in found]


def policy_for(folder: Path, runner: LoopbackRunner, other: LoopbackRunner) -> Path:
    """The policy of this project, in which these two are the runners."""
    policy = folder / "policy"
    shutil.copytree(ROOT / "policy", policy)
    file = policy / "runners.yaml"
    text = file.read_text(encoding="utf-8")
    text = re.sub(r'default: "http.*"', f'default: "{runner.address}"', text)
    text = re.sub(r"allowlist: \[.*\]", f'allowlist: ["{runner.origin}", "{other.origin}"]', text)
    text = text.replace("endpoints: []", f'endpoints: ["{GATEWAY}"]')
    file.write_text(text, encoding="utf-8")
    return policy


@contextmanager
def gate(folder: Path, cache: Path, env: Mapping[str, str] | None = None, *arguments: str) -> Iterator[Gate]:
    with ExitStack() as stack:
        runner, other = stack.enter_context(running()), stack.enter_context(running())
        policy = policy_for(folder, runner, other)
        engine = stack.enter_context(serving(folder, cache, "--policy", policy, *arguments, env=env))
        yield Gate(engine, runner, other)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gate]:
    with gate(tmp_path_factory.mktemp("open"), cache) as found:
        yield found


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gate]:
    with gate(tmp_path_factory.mktemp("shut"), cache, {"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as found:
        yield found


@pytest.fixture
def front(opened: Gate) -> Gate:
    """A gate without a token, and runners that have received nothing."""
    opened.forget()
    return opened


@pytest.fixture
def guarded(shut: Gate) -> Gate:
    """The same behind a token."""
    shut.forget()
    return shut


# Stops


# covers: C68.1
def test_a_stop_hangs_up_on_the_runner(front: Gate) -> None:
    front.runner.behavior = holding
    act = {"act": "stop", "id": "a" * 32, "stop": {"scope": "all"}}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(front.run)
        until(lambda: front.runner.received)
        stopped = front.engine.ask("POST", "/v1/administration", act, control=True)
        assert stopped.json["done"]["id"] == act["id"]
        reply = running.result(SECONDS)
        front.runner.released.set()
    assert (reply.json["ok"], reply.json["error"]) == (False, "the run was stopped")
    assert front.run().json["ok"] is False
    lift = {"act": "lift_stop", "id": act["id"], "reason": "over"}
    assert front.engine.ask("POST", "/v1/administration", lift, control=True).json["done"] is not None
    front.runner.behavior = answering()
    assert front.run().json == OUTPUT


# The caller


# covers: D03.1
def test_by_default_a_run_of_this_machine_needs_no_token(front: Gate) -> None:
    reply = front.run()
    assert (reply.status, reply.json) == (200, OUTPUT)
    assert len(front.runner.received) == 1


# covers: D03.2 D04.1-2 D05
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {SHARED}"},
        {"Authorization": f"bearer {SHARED}"},
        {"X_Agenta_Runner_Token": SHARED},
        {"X_Agenta_Runner_Token": SHARED, "Authorization": f"Bearer {SHARED}"},
    ],
)
def test_with_the_token_in_either_header_the_run_is_taken(guarded: Gate, headers: dict[str, str]) -> None:
    reply = guarded.run(**headers)
    assert (reply.status, reply.json) == (200, OUTPUT)


# covers: D03.2 D05.1 H10
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer mistaken-horse-battery-stapl3"},
        {"Authorization": "Bearer x"},
        {"Authorization": f"Bearer {SHARED}{SHARED}"},
        {"Authorization": f"Basic {SHARED}"},
        {"Authorization": SHARED},
        {"X_Agenta_Runner_Token": SHARED[:-1]},
        {"X_Agenta_Runner_Token": SHARED, "Authorization": "Bearer mistaken"},
    ],
    ids=["missing", "same_length", "shorter", "longer", "other_scheme", "no_scheme", "prefix", "two_tokens"],
)
def test_without_the_token_nothing_is_decided_and_nothing_forwarded(guarded: Gate, headers: dict[str, str]) -> None:
    elsewhere = {**RUN, "agent": {"harness": "pi_core", "uri": "http://127.0.0.1:1/"}}
    _check_unauthorized(until(lambda: _heard(guarded.run(RUN, **headers))))
    _check_unauthorized(until(lambda: _heard(guarded.run(elsewhere, **headers))))
    assert guarded.runner.received == []


def _heard(reply: Reply) -> Reply | None:
    """The reply, unless the tests before have used up what may be got wrong."""
    return None if reply.status == 429 else reply


def _check_unauthorized(reply: Reply) -> None:
    assert (reply.status, reply.json["code"], reply.json["ok"]) == (401, "unauthorized", False)
    assert reply.json["error"] == reply.json["detail"]
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert [finding["code"] for finding in reply.json["decision"]["findings"]] == ["unauthorized"]
    assert b"horse" not in reply.body


# covers: D06.1
def test_health_is_open_while_a_token_is_set(guarded: Gate) -> None:
    reply = guarded.engine.ask("GET", "/health")
    assert (reply.status, reply.json) == (200, {"status": "ok"})


# covers: D58.2
@pytest.mark.full(after=1)
@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_or_blank_token_variable_sets_no_token_and_matches_none(
    tmp_path: Path, cache: Path, value: str
) -> None:
    with gate(tmp_path, cache, {"AGENTA_AGENT_RUNNER_TOKEN": value}) as found:
        assert found.run().status == 200
        found.forget()
        data = json.dumps(RUN).encode()
        for header in (b"Authorization: Bearer ", b"Authorization: Bearer", b"X-Agenta-Runner-Token: "):
            head = b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
            sent = head + header + b"\r\nContent-Length: %d\r\n\r\n" % len(data) + data
            assert found.engine.raw(sent).startswith(b"HTTP/1.1 401")
        assert found.runner.received == []


# covers: D05.2 H10.2-3
def test_wrong_tokens_are_slowed_and_no_token_is_printed(tmp_path: Path, cache: Path) -> None:
    with gate(tmp_path, cache, {"AGENTA_AGENT_RUNNER_TOKEN": SHARED}) as found:
        replies = [found.run(Authorization=f"Bearer w7ong-{number}") for number in range(30)]
        statuses = [reply.status for reply in replies]
        assert statuses[:10] == [401] * 10
        assert 429 in statuses
        assert found.runner.received == []
        until(lambda: found.run(Authorization=f"Bearer {SHARED}").status == 200)
        assert found.engine.stop() == 0
        told = b"".join(reply.body for reply in replies) + everything(found.engine)
    for token in (SHARED.encode(), b"w7ong-"):
        assert token not in told


# The order


# covers: D41
def test_the_address_and_then_the_run_are_decided_before_forwarding(front: Gate) -> None:
    assert front.run(X_Request_ID="in-order").status == 200
    assert front.recorded("in-order") == [
        ("decision", "runner_uri"),
        ("decision", "runner_request"),
        ("result", "forwarded"),
    ]


# covers: D41.1 D42
@pytest.mark.parametrize(
    "rest",
    [
        STDIO,
        {**RUN, "tools": [{"name": "sum", "kind": "code", "code": "x"}]},
        {**RUN, "secrets": {"MODEL": "c4nary"}},
        {"messages": MESSAGES, "tools": 5, "mcp_servers": {"not": "a list"}, "secrets": None, "unknown": 1},
    ],
    ids=["mcp", "tools", "credentials", "malformed"],
)
def test_a_run_to_an_unlisted_runner_is_refused_before_its_content_is_read(front: Gate, rest: dict[str, Any]) -> None:
    name = f"elsewhere-{len(json.dumps(rest))}"
    there = {**rest, "agent": {"harness": "pi_core", "uri": "http://127.0.0.1:1/"}}
    reply = front.run(there, X_Request_ID=name)
    assert (reply.status, reply.json["ok"]) == (200, False)
    assert [finding["code"] for finding in reply.json["decision"]["findings"]] == ["uri_not_allowlisted"]
    assert reply.json["decision"]["point"] == "runner_uri"
    assert reply.json["error"].startswith("uri_not_allowlisted: required: ")
    assert front.recorded(name) == [("decision", "runner_uri")]
    here = front.run({**rest, "agent": {"harness": "pi_core"}}, X_Request_ID=f"{name}-here")  # the control
    assert [point for _, point in front.recorded(f"{name}-here")][:2] == ["runner_uri", "runner_request"]
    assert (here.json == OUTPUT) == ("secrets" in rest and rest.get("tools") != 5)


# covers: D42 D43
@pytest.mark.parametrize("agent", [{}, {"uri": None}, {"uri": ""}, {"uri": "  "}], ids=str)
def test_without_an_override_the_default_runner_is_used(front: Gate, agent: dict[str, Any]) -> None:
    assert front.run({**RUN, "agent": {"harness": "pi_core", **agent}}).json == OUTPUT
    assert (len(front.runner.received), len(front.other.received)) == (1, 0)


# covers: D42
def test_an_allowlisted_override_is_used_instead(front: Gate) -> None:
    assert front.run({**RUN, "agent": {"harness": "pi_core", "uri": front.other.address}}).json == OUTPUT
    assert (len(front.runner.received), len(front.other.received)) == (0, 1)


@pytest.mark.parametrize(
    ("uri", "status"), [(5, 400), (["x"], 400), ("x" * 5000, 400), ("http://127.0.0.1:1/?a=b", 200)], ids=str
)
def test_an_address_of_another_kind_is_refused(front: Gate, uri: Any, status: int) -> None:
    reply = front.run({**RUN, "agent": {"harness": "pi_core", "uri": uri}})
    assert (reply.status, reply.json["ok"], reply.json["decision"]["outcome"]) == (status, False, "deny")
    assert front.runner.received == []


# What is forwarded


# covers: D20
def test_exactly_the_admitted_bytes_are_forwarded_and_no_header_of_the_caller(front: Gate) -> None:
    body = '{ "messages" : [], "agent":{"harness":"pi_core"},\n "secrets":{"MODEL":"gr\u00fcn\\u00e9"}}'.encode()
    reply = front.run(body, Cookie="a=1", X_Own="1", X_Request_ID="own", X_Run_ID="own", traceparent="00-x", Accept="x")
    assert reply.status == 200
    (one,) = front.runner.received
    assert (one.path, one.body) == ("/run", body)
    assert sorted(name.lower() for name, _ in one.headers) == [
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent")
    ]
    assert dict(one.headers)["accept"] == "application/json"


# covers: D63.1
def test_a_configuration_in_both_shapes_is_forwarded_in_one(front: Gate) -> None:
    flat = {"harness": "claude", "permissionPolicy": "ask", "sandbox": "local", "messages": MESSAGES}
    assert front.run(flat).status == 200
    assert front.run({**flat, "agent": {"harness": "pi_core"}}).status == 200
    assert front.run({**flat, "agent": {"harness": "pi_core", "permission_policy": "deny"}}).status == 200
    one = {"sandbox": "local", "messages": MESSAGES}
    assert [json.loads(received.body) for received in front.runner.received] == [
        flat,
        {**one, "agent": {"harness": "pi_core", "permissionPolicy": "ask"}},
        {**one, "agent": {"harness": "pi_core", "permission_policy": "deny"}},
    ]


def test_the_answer_of_the_runner_comes_back_as_it_is(front: Gate) -> None:
    sent = b'{"ok":true,\n "output": "\xc3\xa9\\u00e9", "n": 12345678901234567890.0}'
    front.runner.behavior = answering(sent, Set_Cookie="a=1", X_Powered_By="runner")
    reply = front.run()
    assert (reply.body, reply.headers["content-type"]) == (sent, "application/json")
    assert "set-cookie" not in reply.headers
    assert "x-powered-by" not in reply.headers


# covers: D07 D09 D14.1 D16.1 D41
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mcp_servers": STDIO["mcp_servers"]}, "MCP servers are not supported by the sidecar."),
        ({"mcpServers": STDIO["mcp_servers"]}, "MCP servers are not supported by the sidecar."),
        ({"tools": [{"name": "sum", "kind": "code"}]}, "code tools are not supported by the runner"),
        (
            {"sandbox_permission": {"network": "restricted", "enforcement": "best_effort"}},
            "a restricted network is not supported on the local backend",
        ),
        ({"sandboxPermission": {"filesystem": "off"}}, "a file system boundary is not supported by this backend"),
        ({"agent": {"harness": "nobody"}}, "harness_not_admitted: required: The harness of the run is admitted"),
        (
            {"agent": {}, "tools": [{"name": name, "kind": "gateway"} for name in ("sum", "add")]},
            (
                "tool_permission_missing (attached/tools/add, attached/tools/sum): required: "
                "A run that can make calls has a permission policy"
            ),
        ),
    ],
    ids=["stdio", "stdio_in_camel_case", "code", "network", "filesystem", "harness", "tools"],
)
def test_a_refused_run_is_answered_with_its_reason_and_not_forwarded(
    front: Gate, change: dict[str, Any], error: str
) -> None:
    policy = {"permission_policy": "ask"} if "agent" not in change else {}
    reply = front.run({**RUN, **policy, **change})
    assert (reply.status, list(reply.json)) == (200, ["ok", "error", "decision"])
    assert (reply.json["ok"], reply.json["error"]) == (False, error)
    assert reply.json["decision"]["outcome"] == "deny"
    assert front.runner.received == []
    with pytest.raises(WorkError) as caught:
        run_result(reply.json)
    assert str(caught.value) == f"Agent run failed: {error}"


BROKEN: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "engine.json_invalid"),
    "no_json": (b"{", 400, "engine.json_invalid"),
    "key_twice": (b'{"agent":{"uri":null},"agent":{},"messages":[]}', 400, "engine.json_invalid"),
    "a_list": (b"[]", 400, "engine.request_invalid"),
    "null": (b"null", 400, "engine.request_invalid"),
    "agent_as_text": (b'{"agent":"x","messages":[]}', 400, "engine.request_invalid"),
    "half_a_character": (b'{"agent":{"harness":"\\ud800"},"messages":[]}', 400, "engine.json_invalid"),
    "headers_sent_in": (b'{"agent":{"harness":"pi_core"},"messages":[],"headers":{}}', 400, "engine.request_invalid"),
    "too_large": (b'"' + b"x" * (5 << 20) + b'"', 413, "engine.body_too_large"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_is_a_problem_with_a_recorded_deny(front: Gate, name: str) -> None:
    body, status, code = BROKEN[name]
    reply = front.run(body)
    assert (reply.status, reply.json["code"], reply.json["ok"]) == (status, code, False)
    assert reply.json["error"] == reply.json["detail"]
    assert [finding["code"] for finding in reply.json["decision"]["findings"]] == [code]
    assert front.runner.received == []


def test_a_run_has_no_dry_run(front: Gate) -> None:
    reply = front.engine.ask("POST", "/run?mode=check", RUN)
    assert (reply.status, reply.json["code"], reply.json["ok"]) == (400, "engine.query_invalid", False)
    assert front.engine.ask("GET", "/run").status == 405
    assert front.runner.received == []


# What goes wrong there


@contextmanager
def small(folder: Path, cache: Path, forward: Mapping[str, float], api: Mapping[str, float]) -> Iterator[Gate]:
    """The same server with smaller limits than the command line can set."""
    with running() as runner, running() as other:
        policy = policy_for(folder, runner, other)
        with serving(folder, cache, limits=api, forward=forward, policy=policy) as engine:
            yield Gate(engine, runner, other)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gate]:
    with small(tmp_path_factory.mktemp("impatient"), cache, {"seconds": 1.0}, {}) as found:
        yield found


@pytest.fixture(scope="module")
def sparing(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gate]:
    with small(tmp_path_factory.mktemp("sparing"), cache, {"answer_bytes": 4096}, {}) as found:
        yield found


FAILING: dict[str, tuple[Behavior, int]] = {
    "slow": (holding, 504),
    "dripping": (dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n"), 504),
    "huge": (answering({"ok": True, "output": "x" * 5000}), 502),
    "endless": (flooding, 502),
    "garbage": (raw(b"SSH-2.0-OpenSSH_9.6\r\n"), 502),
    "no_json": (answering(b"<html>c4nary</html>"), 502),
    "no_ok": (answering({"output": "c4nary"}), 502),
    "another_status": (answering(OUTPUT, 401), 502),
    "hangs_up": (raw(b""), 502),
}


# covers: D44.1
@pytest.mark.full(after=3)
@pytest.mark.parametrize("name", FAILING)
def test_a_runner_that_fails_is_an_error_without_details(name: str, request: pytest.FixtureRequest) -> None:
    behavior, status = FAILING[name]
    failing: Gate = request.getfixturevalue("impatient" if status == 504 else "sparing")
    failing.forget()
    failing.runner.behavior = behavior
    before = failing.engine.log.stat().st_size
    reply = failing.run(X_Request_ID=f"failing-{name}")
    assert (reply.status, list(reply.json), reply.json["ok"]) == (status, ["ok", "error"], False)
    assert "runner" in reply.json["error"]
    assert not re.search(r"/|Traceback|\.py|127\.0\.0\.1|c4nary", reply.json["error"])
    told = failing.engine.log.read_text()[before:]
    assert "[sandbox-agent] run error: RunnerError" in told
    assert 'runner/run.py", line' in told
    assert "c4nary" not in told
    assert failing.recorded(f"failing-{name}")[2][0] == "result"


# covers: D44.2
@pytest.mark.full
def test_an_unreachable_runner_is_an_error_and_its_traceback_is_only_logged(tmp_path: Path, cache: Path) -> None:
    with own_port() as port, gate(tmp_path, cache) as found:
        policy = tmp_path / "policy" / "runners.yaml"
        policy.write_text(policy.read_text().replace(found.runner.address, f"http://127.0.0.1:{port}/"))
        assert found.engine.ask("POST", "/v1/policy/activate", control=True).status == 200
        reply = found.run()
        assert (reply.status, list(reply.json)) == (502, ["ok", "error"])
        with pytest.raises(WorkError) as caught:
            run_result(reply.json)
        assert str(caught.value) == "Agent run failed: the runner cannot be reached, or closed the connection"
        assert not re.search(r"/|Traceback|line \d", str(caught.value))
        assert "[sandbox-agent] run error: RunnerError" in found.engine.log.read_text()


# covers: D44.1
def test_an_engine_that_cannot_decide_answers_in_the_same_way(tmp_path: Path, cache: Path) -> None:
    with gate(tmp_path, cache) as found:
        reply = until(lambda: _without_opa(found))
        assert (reply.json["ok"], reply.json["code"]) == (False, "policy_unavailable")
        assert not re.search(r"/|Traceback|\.py", reply.json["error"])
        assert found.runner.received == []
        assert "[sandbox-agent] run error: DecideError policy_unavailable" in found.engine.log.read_text()


def _without_opa(found: Gate) -> Reply | None:
    children = Path(f"/proc/{found.engine.process.pid}/task").glob("*/children")
    for pid in [int(pid) for file in children for pid in file.read_text().split()]:
        os.kill(pid, signal.SIGKILL)
    found.forget()
    reply = found.run()
    return reply if reply.status == 503 else None


def test_no_redirect_of_the_runner_is_followed(front: Gate) -> None:
    front.runner.behavior = answering(OUTPUT, 307, Location=f"{front.other.address}run")
    reply = front.run()
    assert (reply.status, reply.json["ok"]) == (502, False)
    assert front.other.received == []


# covers: D44
def test_an_error_of_the_runner_comes_back_as_its_message_alone(front: Gate) -> None:
    stack = "Error: no model c4nary\n    at run (/app/src/run.ts:10:5)"
    front.runner.behavior = answering({"ok": False, "error": stack, "stack": stack, "output": "x"})
    reply = front.run({**RUN, "secrets": {"MODEL": "c4nary"}})
    assert (reply.status, reply.json) == (200, {"ok": False, "error": "Error: no model [secret]"})
    with pytest.raises(WorkError) as caught:
        run_result(reply.json)
    assert str(caught.value) == "Agent run failed: Error: no model [secret]"


def test_a_caller_who_hangs_up_stops_no_run_and_its_result_is_recorded(front: Gate) -> None:
    front.runner.behavior = holding
    data = json.dumps(RUN).encode()
    head = "POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-ID: hung-up\r\n"
    with socket.create_connection((front.engine.host, front.engine.port)) as caller:
        caller.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        until(lambda: front.runner.received)
    assert front.engine.ask("GET", "/health").status == 200
    front.runner.released.set()
    until(lambda: len(front.recorded("hung-up")) == 3)
    assert front.recorded("hung-up")[2] == ("result", "forwarded")
    front.forget()
    front.runner.released.clear()
    assert front.run().status == 200


def test_runs_that_wait_for_their_runner_block_no_other_request(front: Gate) -> None:
    front.runner.behavior = holding
    with ThreadPoolExecutor(12) as pool:
        try:
            waiting = [pool.submit(front.run) for _ in range(12)]  # more than an event loop has threads by default
            until(lambda: len(front.runner.received) == 12)
            keyed = front.engine.decide("runner_uri", {"inherited": None}, Idempotency_Key="beside")  # needs a thread
            assert keyed.json["outcome"] == "allow"
        finally:
            front.runner.released.set()
        assert {one.result().status for one in waiting} == {200}
    front.runner.released.clear()


def test_a_run_over_the_limit_gets_503_with_retry_after(front: Gate) -> None:
    front.runner.behavior = holding
    with ThreadPoolExecutor(MOST_RUNS) as pool:
        try:
            waiting = [pool.submit(front.run) for _ in range(MOST_RUNS)]
            until(lambda: len(front.runner.received) == MOST_RUNS)
            reply, wrong = front.run(), front.run(Authorization="Bearer mistaken")
        finally:
            front.runner.released.set()
        assert {one.result().status for one in waiting} == {200}
    front.runner.released.clear()
    assert (reply.status, reply.json["code"], reply.json["ok"]) == (503, "engine.overloaded", False)
    assert (wrong.status, wrong.json["code"]) == (401, "unauthorized")
    assert (reply.json["decision"], reply.headers["retry-after"]) == (None, "1")
    assert len(front.runner.received) == MOST_RUNS


@pytest.mark.full
def test_a_stopping_engine_waits_for_a_run_only_up_to_its_deadline(tmp_path: Path, cache: Path) -> None:
    with small(tmp_path, cache, {"seconds": 600}, {"stop_seconds": 0.5}) as found:
        found.runner.behavior = holding
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(found.run)
            until(lambda: found.runner.received)
            assert found.engine.stop() == 4
            with pytest.raises(ConnectionError):
                waiting.result()


# A person's approval


def test_a_run_that_a_person_must_approve_is_forwarded_once_it_is(tmp_path: Path, cache: Path) -> None:
    with gate(tmp_path, cache) as found:
        levels = tmp_path / "policy" / "levels.yaml"
        text = (
            levels.read_text(encoding="utf-8") + f"  runner_request: {{harness_not_admitted: {lowered('confirm')}}}\n"
        )
        levels.write_text(text, encoding="utf-8")
        assert found.engine.ask("POST", "/v1/policy/activate", control=True).status == 200
        run, token = (
            {**RUN, "agent": {"harness": "nobody"}},
            issue(found.engine.state, points=("runner_uri", "runner_request")),
        )

        def ask(body: dict[str, Any], **headers: str) -> Any:
            return found.run(body, Authorization=f"Bearer {token}", **headers).json

        asked = ask(run)
        assert (asked["ok"], asked["decision"]["outcome"]) == (False, "confirm")
        approval = asked["decision"]["approval"]["id"]
        assert ask(run, X_Approval=approval)["decision"]["outcome"] != "allow"
        with closing(open_store(found.engine.state)) as store:
            store.resolve(approval, "granted", "officer@example.org", None, int(time.time()))
        assert ask({**run, "messages": []}, X_Approval=approval)["ok"] is False
        assert found.runner.received == []
        assert ask(run, X_Approval=approval) == OUTPUT
        assert ask(run, X_Approval=approval)["ok"] is False
        assert len(found.runner.received) == 1


@pytest.mark.parametrize("points", [("runner_request",), ("runner_uri",), ("license",)])
def test_a_scoped_token_needs_both_points(guarded: Gate, points: tuple[str, ...]) -> None:
    reply = guarded.run(Authorization=f"Bearer {issue(guarded.engine.state, points=points)}")
    assert (reply.status, reply.json["ok"]) == (200, False)
    assert [finding["code"] for finding in reply.json["decision"]["findings"]] == ["caller_out_of_scope"]
    assert guarded.runner.received == []
    both = issue(guarded.engine.state, points=BOTH)
    assert guarded.run(Authorization=f"Bearer {both}").json == OUTPUT


# Runs that are followed

SAID = json.dumps(OUTPUT).encode()
LINES = (b'{"type": "update", "text": "one"}\n{"ty', b'pe": "update", "text": "two"}\n', SAID + b"\n")
EVENTS = (
    b'event: update\ndata: {"text": "one"}\n\n: still here\n\n',
    b'event: update\ndata: {"text":\n',
    b'data: "two"}\n\ndata: %b\n\n' % SAID,
)


@pytest.mark.parametrize("asked", ["application/x-ndjson", "text/event-stream"])
@pytest.mark.parametrize(
    "behavior", [streaming(*LINES), streaming(*EVENTS, media="text/event-stream")], ids=["ndjson", "sse"]
)
def test_a_run_is_streamed_in_the_requested_format(front: Gate, behavior: Behavior, asked: str) -> None:
    front.runner.behavior = behavior
    front.runner.released.clear()
    events = followed(front.engine, RUN, asked)
    assert next(events) == {"type": "update", "text": "one"}  # before the run has ended
    front.runner.released.set()
    assert list(events) == [{"type": "update", "text": "two"}, OUTPUT]
    front.runner.released.clear()
    (one,) = front.runner.received
    assert "application/x-ndjson" in dict(one.headers)["accept"]


def test_a_run_is_followed_only_if_it_is_allowed_and_the_client_asks_for_it(front: Gate) -> None:
    front.runner.behavior = streaming(*LINES)
    front.runner.released.set()
    refused = front.run(STDIO, Accept="application/x-ndjson")
    assert (refused.json["ok"], refused.headers["content-type"]) == (False, "application/json")
    assert front.runner.received == []
    assert front.run().status == 502  # it was not asked for parts
    assert dict(front.runner.received[0].headers)["accept"] == "application/json"
    front.runner.behavior = answering()
    assert front.run(Accept="application/x-ndjson").json == OUTPUT  # it may answer at once
    front.runner.released.clear()


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((*LINES[:2], b"nonsense\n"), "a part of it is no event"),
        ((LINES[0], LINES[1], b'{"ok": tru'), "a part of it is not a plain JSON object"),
        ((*LINES[:2], b'{"a": 1, "a": 2}\n'), "a part of it is not a plain JSON object"),
        ((*LINES[:2], b"\n"), "it ended without a result"),
        ((*LINES, LINES[2]), "it goes on after its result"),
        ((*LINES[:2], b" " * (9 << 20)), "it is larger than 8388608 bytes"),
    ],
    ids=["no event", "cut", "ambiguous", "endless", "after the end", "too large"],
)
def test_an_invalid_stream_from_the_runner_ends_the_run_with_an_error(
    front: Gate, parts: tuple[bytes, ...], error: str
) -> None:
    front.runner.behavior = streaming(*parts)
    front.runner.released.set()
    *events, last = followed(front.engine, RUN)
    assert {event["type"] for event in events} == {"update"}
    assert (last["ok"], last["error"]) == (False, f"the runner's answer cannot be passed on: {error}")
    front.runner.released.clear()


# covers: D44
def test_an_error_in_an_event_is_cleaned_like_that_of_a_result(front: Gate) -> None:
    told = b'{"type": "update", "error": "no c4nary-key at /srv/app.ts"}\n'
    front.runner.behavior = streaming(told, b'{"ok": false, "error": "c4nary-key at /srv/app.ts"}\n')
    front.runner.released.set()
    update, last = followed(front.engine, {**RUN, "secrets": {"KEY": "c4nary-key"}})
    assert update["error"] == "no [secret] at [path]"
    assert (last["ok"], last["error"]) == (False, "[secret] at [path]")
    front.runner.released.clear()


# A policy that changes in between


async def answered(folder: Path, cache: Path, policy: Path, between: Callable[[AsyncEngine], object]) -> Response:
    """What the API answers to a run when this happens between the decision on its address and on itself."""

    def observe(decision: Decision, _: Mapping[str, int]) -> None:
        if decision.point == "runner_uri":
            between(engine)

    settings = Settings(state=folder / "state", cache=cache, policy=policy)
    async with AsyncEngine(settings, observe=observe) as engine:
        limits, log = ApiLimits(), OperationalLog()
        identity = Identity(None, engine.store, Failures(limits, time.monotonic))
        api = App(engine, limits, identity, Metrics(), log, ListenerGate(), Site(), routes(), folder)
        body = json.dumps(RUN).encode()
        head = Head("POST", "/run", "", {b"content-type": b"application/json", b"host": b"localhost"})
        exchange = api.open(head, Peer("127.0.0.1", loopback=True))
        assert api.bodies.take(exchange.account, len(body))
        exchange.stored, exchange.complete = body, True
        response = await api.answer(exchange)
        assert (api.bodies.used, exchange.stored) == (0, b"")
        log.close()
        return response


@pytest.mark.parametrize("changes", [False, True])
def test_a_run_is_forwarded_only_under_the_policy_that_gave_its_address(
    tmp_path: Path, cache: Path, *, changes: bool
) -> None:
    with running() as runner, running() as other:
        policy = policy_for(tmp_path, runner, other)

        def between(engine: AsyncEngine) -> None:
            file = policy / "runners.yaml"
            text = file.read_text(encoding="utf-8").replace(
                f'default: "{runner.address}"', f'default: "{other.address}"'
            )
            file.write_text(text, encoding="utf-8")
            if changes:
                engine._activate(Context(), None)

        response = asyncio.run(answered(tmp_path, cache, policy, between))
        assert len(runner.received) == (0 if changes else 1)
        assert other.received == []
    if changes:
        assert (response.status, response.codes) == (503, ("policy_stale",))
        assert json.loads(response.body)["ok"] is False
    else:
        assert (response.status, json.loads(response.body)) == (200, OUTPUT)


# Idempotency


# covers: C69
def test_a_repeated_key_gives_the_first_decision_and_forwards_nothing(front: Gate) -> None:
    first = front.run(Idempotency_Key="again-1", X_Request_ID="again-first")
    assert first.json == OUTPUT
    again = front.run(Idempotency_Key="again-1", X_Request_ID="again-second")
    assert len(front.runner.received) == 1
    assert (again.status, again.json["replayed"], again.json["ok"]) == (200, True, False)
    assert again.json["decision"]["outcome"] == "allow"
    taken = {line["request_id"]: line for line in lines(front.engine.state) if line.get("point") == "runner_request"}
    assert again.json["decision"]["decision_id"] == taken["again-first"]["decision_id"]
    assert front.recorded("again-second") == [("replay", None), ("replay", None)]
    assert "output" not in again.json


# covers: C69
@pytest.mark.parametrize("agent", [{"harness": "nobody"}, {"harness": "pi_core", "uri": "http://127.0.0.1:1/"}])
def test_a_repeated_refusal_is_the_first_one_and_another_body_is_an_error(front: Gate, agent: dict[str, Any]) -> None:
    key = f"refused-{len(agent)}"
    first = front.run({**RUN, "agent": agent}, Idempotency_Key=key).json
    again = front.run({**RUN, "agent": agent}, Idempotency_Key=key).json
    assert (again["error"], again["decision"]) == (first["error"], first["decision"])
    assert ("replayed" in first, again["replayed"]) == (False, True)
    other = front.run({"messages": [], "agent": agent}, Idempotency_Key=key)
    assert (other.status, other.json["code"], other.json["ok"]) == (422, "engine.idempotency_conflict", False)
    good = front.run(RUN, Idempotency_Key=key)
    assert (good.status, good.json["code"]) == (422, "engine.idempotency_conflict")
    assert front.runner.received == []


# covers: C69
def test_a_key_whose_run_is_under_way_is_refused(front: Gate) -> None:
    front.runner.behavior = holding
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(front.run, Idempotency_Key="pending-1")
        until(lambda: front.runner.received)
        again = front.run(Idempotency_Key="pending-1")
        front.runner.released.set()
        assert first.result().json == OUTPUT
    front.runner.released.clear()
    assert (again.status, again.json["code"], again.json["ok"]) == (409, "engine.idempotency_pending", False)
    assert len(front.runner.received) == 1


# covers: C69
def test_a_run_that_failed_is_not_quietly_sent_again(front: Gate) -> None:
    front.runner.behavior = raw(b"")
    assert front.run(Idempotency_Key="failed-1").status == 502
    front.runner.behavior = answering()
    again = front.run(Idempotency_Key="failed-1").json
    assert (again["ok"], again["replayed"]) == (False, True)
    assert len(front.runner.received) == 1


# Secrets

CANARIES = {
    "provider": "c4nary-provider-Zt4Qm81L",
    "server": "c4nary-server-Xk2Vb7Nc",
    "callback": "c4nary-callback-3Ys9Hd5w",
    "trace": "c4nary-trace-Pq8Rn6Tj",
    "content": "c4nary-content-Lm5Wd2Fs",
}
"""Words of no known form, so that no pattern would find them."""

SECRET_RUN: dict[str, Any] = {
    "agent": {"harness": "pi_core", "permission_policy": "ask"},
    "messages": [{"role": "user", "content": CANARIES["content"]}],
    "secrets": {"SETTING": CANARIES["provider"]},
    "mcp_servers": [
        {"name": "docs", "transport": "http", "url": f"{GATEWAY}/mcp", "env": {"SETTING": CANARIES["server"]}}
    ],
    "toolCallback": {"endpoint": f"{GATEWAY}/call", "authorization": f"Bearer {CANARIES['callback']}"},
    "trace": {"endpoint": f"{GATEWAY}/trace", "authorization": CANARIES["trace"]},
}


def everything(engine: Serving) -> bytes:
    """All that an engine wrote: its log, and every file of its state."""
    return engine.log.read_bytes() + written(engine.state)


# covers: B41 B43.2 D29.1-3
@pytest.mark.full(after=1)
@pytest.mark.parametrize("detail", ["facts", "payload"])
def test_the_content_of_a_run_reaches_its_runner_and_no_log_or_record(tmp_path: Path, cache: Path, detail: str) -> None:
    with ExitStack() as stack:
        runner, other = stack.enter_context(running()), stack.enter_context(running())
        policy = policy_for(tmp_path, runner, other)
        arguments: list[str | Path] = ["--policy", policy]
        if detail == "payload":
            file = policy / "operations.yaml"
            file.write_text(file.read_text().replace("profile: standard", "profile: controlled"))
            arguments += ["--log-detail", "payload", "--log-retention-days", "30"]
        engine = stack.enter_context(serving(tmp_path, cache, *arguments))
        found = Gate(engine, runner, other)
        allowed = found.run(SECRET_RUN, Idempotency_Key="secret-1")
        assert allowed.json == OUTPUT
        (one,) = runner.received  # the control: they are what is sent, and what could be told
        assert all(word.encode() in one.body for word in CANARIES.values())
        replies = [allowed, found.run(SECRET_RUN, Idempotency_Key="secret-1")]
        for behavior in (
            answering({"ok": False, "error": one.body.decode()}),
            answering(one.body),
            raw(one.body + b"\r\n\r\n"),
        ):
            runner.behavior = behavior
            replies.append(found.run(SECRET_RUN))
        changes: tuple[dict[str, Any], ...] = (
            {"agent": {"harness": "nobody"}},
            {"agent": {"harness": "pi_core", "uri": f"http://127.0.0.1:1/?key={CANARIES['provider']}"}},
            {"tools": [{"name": "sum", "kind": "code", "code": CANARIES["content"]}]},
            {"secrets": {"SETTING": [CANARIES["provider"]]}},
            {"messages": CANARIES["content"]},
            {"trace": CANARIES["trace"]},
        )
        replies += [found.run({**SECRET_RUN, **change}) for change in changes]
        replies.append(found.run(json.dumps(SECRET_RUN).encode()[:-1]))
        replies.append(found.run(SECRET_RUN, Authorization=f"Bearer {CANARIES['trace']}"))
        for path in ("/v1/decide/runner_request", "/access/v1/evaluation"):  # the same body at other doors
            replies.append(found.engine.ask("POST", path, SECRET_RUN))
        replies.append(found.engine.ask("POST", "/v1/decide/runner_request/batch", {"inputs": {"a": SECRET_RUN}}))
        replies.append(found.engine.ask("GET", "/metrics"))
        seen = found.engine.decide("license", {"purpose": "told-in-payloads"})
        assert found.engine.stop() == 0
        told = everything(found.engine)
    assert {reply.status for reply in replies} == {200, 400, 401, 502}
    assert seen.status == 422
    assert (b"told-in-payloads" in told) == (detail == "payload")  # the control: payloads of others are logged
    for name, word in CANARIES.items():
        assert word.encode() not in told, name
        answered = b"".join(reply.body for reply in replies)
        assert word.encode() not in answered or name == "content", name

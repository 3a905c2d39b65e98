"""What guards a runner: sealed secrets, scoped tokens, mutual TLS, its variables, and what it says at its start."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import jsonschema
import pytest
from cryptography.x509.oid import NameOID

from admission_adapters.runner.sealed import seal
from tests.adapters.test_sealed import keys
from tests.agents import policy_with
from tests.api.serving import SECONDS, Serving, environment, issue, refused, serving, until
from tests.api.test_access import Authority
from tests.api.test_runner import HELLO, Agents, agents, listening, tool
from tests.command import written
from tests.conftest import ROOT
from tests.facilities import needs
from tests.platforms import platform
from tests.processes import own_port
from tests.runners import answering, running

CANARY = "c4nary-callback"


@pytest.fixture(scope="module")
def sealing(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[tuple[Agents, Path]]:
    """A runner that demands sealed secrets and can open them, in the variables of a deployment; its public key."""
    folder = tmp_path_factory.mktemp("sealing")
    private, public = keys(folder)
    with ExitStack() as stack:
        callback = stack.enter_context(running(answering({"result": "found it"})))
        policy = policy_with(folder, callback.origin, callback.port, payload_secrets=["sealed"])
        env = {
            "ENGINE_SECRET_KEY": str(private),
            "AGENTA_HOST": callback.origin,
            "PI_CODING_AGENT_DIR": "/opt/pi",
        }
        runner = serving(folder, cache, "--policy", policy, env=env, command=("runner", "serve"))
        remote = stack.enter_context(platform())
        yield Agents(stack.enter_context(runner), callback, remote), public


# covers: D32.1-2 D56.5
@needs("bubblewrap")
def test_a_sealed_secret_is_opened_for_the_callback_and_nowhere_else(sealing: tuple[Agents, Path]) -> None:
    agents, public = sealing
    agents.callback.received.clear()
    run = agents.with_tools('lookup {"text": "ada"}', tool())
    plain = agents.run(run)
    assert [one["code"] for one in plain.json["decision"]["findings"]] == ["secret_form_not_admitted"]
    sealed = seal(f"Bearer {CANARY}", "tool_callback", public)
    run["tool_callback"]["authorization"] = sealed
    run["secrets"] = {"KEY": seal(CANARY, "secrets/KEY", public)}
    traces = f"{agents.callback.origin}/traces"
    run["trace"] = {"endpoint": traces, "authorization": seal(f"Bearer {CANARY}", "trace", public)}
    reply = agents.run(run)
    assert reply.json["outputs"]["invoke"] == "found it"
    posted = [(one.path, dict(one.headers)["authorization"]) for one in agents.callback.received]
    opened = f"Bearer {CANARY}"
    assert posted == [("/tools/call", opened), ("/traces", opened)]  # the control: this is where it is opened
    shown = reply.body + agents.engine.log.read_bytes() + written(agents.engine.state)
    assert CANARY.encode() not in shown
    assert sealed.encode() not in shown
    assert agents.engine.ask("GET", "/health", control=True).json["trust_level"] == 4


# covers: D32.1
@needs("bubblewrap")
def test_a_secret_that_was_moved_is_not_opened(sealing: tuple[Agents, Path]) -> None:
    agents, public = sealing
    agents.callback.received.clear()
    run = agents.with_tools('lookup {"text": "ada"}', tool())
    run["tool_callback"]["authorization"] = seal(CANARY, "secrets/PROVIDER_KEY", public)
    reply = agents.run(run)
    assert "found it" not in reply.body.decode()
    assert agents.callback.received == []


# covers: D47.2-3 D52.1
@needs("bubblewrap")
def test_the_variables_of_a_deployment_count(sealing: tuple[Agents, Path]) -> None:
    agents, _ = sealing
    agents.callback.received.clear()
    run = agents.with_tools('lookup {"text": "ada"}', tool())
    del run["tool_callback"]
    assert agents.run(run).json["outputs"]["invoke"] == "found it"
    assert [one.path for one in agents.callback.received] == ["/tools/call"]
    curious = {"agent": {"harness": "curious", "harness_kwargs": {"effort": "high"}}, "messages": HELLO}
    _, names, task = json.loads(agents.run(curious).json["outputs"]["invoke"])
    assert names == ["HOME", "LANG", "PATH", "PI_CODING_AGENT_DIR"]
    assert json.loads(task)["params"]["harness_kwargs"] == {"effort": "high"}


# covers: D30.1-2 D31.1-4 D56.3-4
def test_a_runner_behind_mutual_tls_refuses_strangers_and_takes_tokens_for_one_run(tmp_path: Path, cache: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "runner"))
    mine = authority.issue("client", (NameOID.COMMON_NAME, "gate"))
    tls = ("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path, "--audience", "runner-1")
    with serving(tmp_path, cache, *tls, command=("runner", "serve")) as runner:
        plain = runner.raw(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert not plain.startswith(b"HTTP/")
        runner.context = ssl.create_default_context(cafile=str(authority.path))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            runner.ask("GET", "/health")
        runner.context.load_cert_chain(*mine)
        assert runner.ask("GET", "/health").json["trust_level"] == 2

        def new(audience: str = "runner-1", point: str = "runner_request", *, single_use: bool = False) -> str:
            return issue(runner.state, points=(point,), audience=audience, single_use=single_use)

        def asked(token: str) -> tuple[int, str | None]:
            body = {"harness": "unknown", "messages": HELLO}
            reply = runner.ask("POST", "/run", body, {"Authorization": f"Bearer {token}"})
            findings = (reply.json.get("decision") or {}).get("findings") or [{"code": None}]
            return reply.status, findings[0]["code"]

        decided, unauthorized = (200, "harness_not_admitted"), (401, "unauthorized")
        good, once = new(), new(single_use=True)
        late = issue(runner.state, points=("runner_request",), audience="runner-1", seconds=2)
        assert [asked(good), asked(good)] == [decided, decided]
        assert [asked(once), asked(once)] == [decided, unauthorized]
        assert asked(new("runner-2")) == unauthorized
        assert asked(new(point="license")) == (200, "caller_out_of_scope")
        until(lambda: asked(late) == unauthorized)
        assert runner.ask("GET", "/health").json["trust_level"] == 3


# covers: D31.1
@needs("bubblewrap")
def test_the_scoped_token_of_the_manual_is_enough_for_a_run_with_tools(tmp_path: Path, cache: Path) -> None:
    manual = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"engine tokens issue --principal gate[^`]*", manual)
    with agents(tmp_path, cache) as runner:
        token = issue(runner.engine.state, "gate", re.findall(r"--point (\w+)", command), single_use=True)
        model = {"model": "claude-sonnet-4-5", "provider": "anthropic", "mode": "agenta"}
        run = runner.with_tools('lookup {"text": "ada"}', tool(), agent={"model": model})
        reply = runner.run(run, Authorization=f"Bearer {token}").json
        assert (reply["ok"], reply.get("outputs", {}).get("invoke")) == (True, "found it"), reply


# covers: D53.1-2
@needs("bubblewrap")
def test_runner_and_gate_publish_and_follow_the_stored_schemas(sealing: tuple[Agents, Path], api: Serving) -> None:
    agents, _ = sealing
    stored = ROOT / "docs" / "schemas"
    request = json.loads((stored / "requests" / "runner_request.schema.json").read_text(encoding="utf-8"))
    result = json.loads((stored / "run_result.schema.json").read_text(encoding="utf-8"))
    for side in (agents.engine, api):  # the runner, and the gate in front of one
        assert side.ask("GET", "/v1/schemas/runner_request").json == request
        assert side.ask("GET", "/v1/schemas/run_result").json == result
    shown = agents.engine.ask("GET", "/inspect").json["revision"]["schemas"]
    assert {"$schema": request["$schema"], **shown["inputs"]} == request
    assert {"$schema": result["$schema"], **shown["result"]} == result
    good = {"agent": {"harness": "pi_core"}, "messages": HELLO}
    ran, refused = agents.run(good), agents.run({**good, "agent": {"harness": "unknown"}})
    gated = api.ask("POST", "/run", {**good, "agent": {"harness": "unknown"}})
    for reply, ok in ((ran, True), (refused, False), (gated, False)):
        jsonschema.validate(reply.json, result)
        assert reply.json["ok"] is ok
    jsonschema.validate(good, request)
    for wrong in ({}, {"messages": "hello"}, {**good, "surprise": 1}, {**good, "agent": {"sandbox": "local"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, request)
        assert [agents.run(wrong).status, api.ask("POST", "/run", wrong).status] == [400, 400]


# covers: D47.1 D54.1
def test_the_port_variable_is_read_and_removed_features_are_logged(tmp_path: Path, cache: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "engine", "runner", "serve", "--state", str(tmp_path / "state")]
    with own_port() as port, log.open("wb") as file, ExitStack() as stack:
        env = environment(cache, {"PORT": str(port)})
        process = stack.enter_context(subprocess.Popen(command, stderr=file, env=env))
        try:
            until(lambda: '"event": "listening"' in log.read_text() or process.poll() is not None, SECONDS)
            until(lambda: "no longer" in log.read_text() or "was removed" in log.read_text())
            assert listening(process.pid) == {("127.0.0.1", port)}
        finally:
            process.terminate()
    told = log.read_text()
    assert "only this machine can connect; for access from elsewhere set AGENTA_AGENT_RUNNER_HOST and a token" in told
    assert "support for MCP servers that a command starts was removed" in told
    manual = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    for words in ("AGENTA_AGENT_RUNNER_HOST", "was removed"):
        assert words in manual


# covers: D47
@pytest.mark.full(after=1)
@pytest.mark.parametrize("url", ["agenta.example.com", "http://agenta.example.com", "https://a.example.com/path?x"])
def test_a_platform_url_that_is_not_an_origin_is_refused_at_startup(tmp_path: Path, cache: Path, url: str) -> None:
    code, said = refused(tmp_path, cache, "--port", "0", env={"AGENTA_HOST": url}, command=("runner", "serve"))
    assert (code, "use an origin" in said) == (2, True)

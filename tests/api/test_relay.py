"""`engine runner serve` with the relay: a harness that takes tools over MCP only, and a real MCP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents import RELAYED, policy_with
from tests.api.serving import Reply, Serving, serving, until
from tests.api.test_runner import SCHEMA
from tests.command import lines
from tests.facilities import needs
from tests.mcp_servers import SERVER, definitions, packed
from tests.runners import LoopbackRunner, answering, running

pytestmark = needs("bubblewrap")

GET, CONVERT = "mcp_time__get_current_time", "mcp_time__convert_time"
PARIS = {"timezone": "Europe/Paris"}


def policy_of(folder: Path, callback: LoopbackRunner, **mcp: Any) -> Path:
    policy = policy_with(folder, callback.origin, tool_delivery=["native", "mcp"])

    def change(name: str, **values: Any) -> None:
        path = policy / "values" / f"{name}.yaml"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for key, value in values.items():
            found[key] = {**found[key], **value} if isinstance(found.get(key), dict) else value
        path.write_text(json.dumps(found), encoding="utf-8")

    row = {
        "custom_tools": "mcp",
        "command": ["python3", "-c", RELAYED],
        "kwargs": [],
        "assumed": {},
        "models": {},
        "connection_modes": [],
    }
    change("runners", harnesses={"relayed": row})
    tool = {**json.loads((policy / "values/tools.yaml").read_text(encoding="utf-8"))["tools"]["lookup"]}
    zones = {"timezone": "text", "source_timezone": "text", "time": "text", "target_timezone": "text"}
    rows = {name: {**tool, "title": "Tell the time", "arguments": zones} for name in (GET, CONVERT)}
    allow = [{"id": "lookup", "tools": ["lookup"]}, {"id": "time", "tools": [GET]}]
    refuse = [{"id": "convert", "tools": [CONVERT]}]
    change("tools", tools=rows, rulesets={"runs": {"deny": refuse, "confirm": [], "allow": allow}})
    change("mcp", **mcp)
    return policy


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = packed(tmp_path_factory.mktemp("package"))
    tools = {name: {"definition": digest} for name, digest in definitions().items()}
    return {"command": ["python3", *SERVER], "package": found, "tools": tools}


@contextmanager
def agents(folder: Path, cache: Path, **mcp: Any) -> Iterator[tuple[Serving, LoopbackRunner]]:
    with ExitStack() as stack:
        callback = stack.enter_context(running(answering({"result": "found it"})))
        policy = policy_of(folder, callback, **mcp)
        yield stack.enter_context(serving(folder, cache, "--policy", policy, command=("runner", "serve"))), callback


@pytest.fixture(scope="module")
def front(
    tmp_path_factory: pytest.TempPathFactory, cache: Path, package: dict[str, Any]
) -> Iterator[tuple[Serving, LoopbackRunner]]:
    changed = {**package, "package": {**package["package"], "digest": "sha256:" + "0" * 64}}
    unlisted = {**package, "tools": {}}
    started = {"time": package, "changed": changed, "unlisted": unlisted}
    with agents(tmp_path_factory.mktemp("relay"), cache, started=started) as (engine, callback):
        until(lambda: run(engine, "", **with_lookup(callback)).json["ok"])  # a busy machine may probe a second time
        yield engine, callback


def run(engine: Serving, text: str, *servers: str, harness: str = "relayed", run: str = "", **more: Any) -> Reply:
    body = {
        "agent": {"harness": harness, "permission_policy": "ask"},
        "messages": [{"role": "user", "content": text}],
        "mcp_servers": [{"name": name, "transport": "stdio"} for name in servers],
        "secrets": {"KEY": "c4nary-provider"},
        **more,
    }
    return engine.ask("POST", "/run", body, {"X-Run-ID": run} if run else {})


def with_lookup(callback: LoopbackRunner) -> dict[str, Any]:
    tool = {"name": "lookup", "kind": "gateway", "description": "Look something up", "input_schema": SCHEMA}
    authorization = {"endpoint": f"{callback.origin}/tools/call", "authorization": "Bearer c4nary-callback"}
    return {"tools": [tool], "tool_callback": authorization}


# covers: D36.2 D36.4 D60.4 D61.3
def test_a_call_of_a_harness_over_mcp_goes_through_runner_and_gate(front: tuple[Serving, LoopbackRunner]) -> None:
    engine, callback = front
    callback.received.clear()
    reply = run(engine, 'lookup {"text": "ada"}\nother {}', run="relayed", **with_lookup(callback))
    assert reply.json["ok"] is True, reply.json
    answer, other, (env, left, public) = json.loads(reply.json["outputs"]["invoke"])
    assert answer == {"content": [{"type": "text", "text": "found it"}], "isError": False}
    assert other["isError"] is True
    (sent,) = callback.received  # the credential is the runner's
    assert dict(sent.headers)["authorization"] == "Bearer c4nary-callback"
    assert (env, left) == ({}, ["shim.py", "tools.json"])
    assert "c4nary" not in public
    decided = [(one["point"], one["outcome"]) for one in lines(engine.state) if one.get("run") == "relayed"]
    assert ("mcp", "allow") in decided
    assert [outcome for point, outcome in decided if point == "tool_call"] == ["allow", "deny"]


# covers: D36.4
def test_a_real_server_is_called_through_relay_and_gate(front: tuple[Serving, LoopbackRunner]) -> None:
    engine, _ = front
    convert = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Europe/Paris"}
    text = f"{GET} {json.dumps(PARIS)}\n{CONVERT} {json.dumps(convert)}"
    reply = run(engine, text, "time", run="time")
    assert reply.json["ok"] is True, reply.json
    answer, refused, _ = json.loads(reply.json["outputs"]["invoke"])
    assert json.loads(answer["content"][0]["text"])["timezone"] == "Europe/Paris"
    assert refused["isError"] is True
    decided = [(one["point"], one["outcome"]) for one in lines(engine.state) if one.get("run") == "time"]
    assert [outcome for point, outcome in decided if point == "tool_call"] == ["allow", "deny"]
    assert [point for point, _ in decided].count("sandbox") == 2  # one of the harness, one of the server


def test_an_mcp_server_that_differs_from_its_review_fails_the_run(front: tuple[Serving, LoopbackRunner]) -> None:
    engine, _ = front
    assert "the files of the MCP server have the digest sha256:" in run(engine, "", "changed").json["error"]
    codes = [one["code"] for one in run(engine, "", "unlisted").json["decision"]["findings"]]
    assert codes == ["definition_unknown", "definition_unknown", "tool_unknown", "tool_unknown"]
    refused = run(engine, "", "nowhere").json
    assert refused["error"] == "MCP servers are not supported by the sidecar."
    assert run(engine, "", mcp_servers=[{"name": "time", "transport": "stdio", "command": "echo"}]).json["ok"] is False


# covers: D36.1
def test_without_an_admitted_sandbox_a_relay_is_refused(tmp_path: Path, cache: Path, package: dict[str, Any]) -> None:
    with agents(tmp_path, cache, started={"time": package}, sandboxes=[]) as (engine, _):
        codes = [one["code"] for one in run(engine, "", "time", harness="pi_core").json["decision"]["findings"]]
        assert "relay_not_sandboxed" in codes

"""`engine runner serve`: the reference runner as a process, over real sockets, with harnesses in real sandboxes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agents import policy_with
from tests.api.serving import Reply, Serving, followed, serving, until
from tests.command import Command, lines
from tests.facilities import needs
from tests.platforms import LoopbackPlatform, platform
from tests.processes import children, opened_by
from tests.runners import LoopbackRunner, answering, running

pytestmark = needs("bubblewrap")

HELLO = [{"role": "user", "content": "hello"}]
SERVER = {"name": "test", "transport": "stdio", "command": "echo"}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LOCAL_NETWORK = "a restricted network is not supported on the local backend"
FILESYSTEM = "a file system boundary is not supported by this backend"
MCP = "MCP servers are not supported by the sidecar."


def tool(name: str = "lookup", kind: str = "gateway") -> dict[str, Any]:
    return {"name": name, "kind": kind, "description": "Look something up", "input_schema": SCHEMA}


@dataclass(frozen=True, slots=True)
class Agents:
    """A serving runner, and the callback of its runs."""

    engine: Serving
    callback: LoopbackRunner
    platform: LoopbackPlatform

    def run(self, body: Any = None, **headers: str) -> Reply:
        return self.engine.post("/run", {"messages": HELLO, "harness": "pi_core"} if body is None else body, **headers)

    def with_tools(self, text: str, *tools: dict[str, Any], harness: str = "pi_core", **more: Any) -> dict[str, Any]:
        agent = {"harness": harness, "permission_policy": "ask", **more.pop("agent", {})}
        callback = {"endpoint": f"{self.callback.origin}/tools/call", "authorization": "Bearer c4nary-callback"}
        messages = [{"role": "user", "content": text}]
        return {"agent": agent, "messages": messages, "tools": list(tools), "tool_callback": callback, **more}

    def said(self) -> list[dict[str, Any]]:
        """The bodies that the callback got."""
        return [json.loads(one.body) for one in self.callback.received]

    def decided(self, run: str) -> list[dict[str, Any]]:
        """The decisions of a run, in their order."""
        return [one for one in lines(self.engine.state) if one.get("run") == run]


@contextmanager
def agents(folder: Path, cache: Path, **documents: Any) -> Iterator[Agents]:
    """A serving runner; `documents` are laid over the shipped values."""
    with ExitStack() as stack:
        callback = stack.enter_context(running(answering({"result": "found it"})))
        remote = stack.enter_context(platform())
        backends = {"daytona": {"platform": remote.address}, "elsewhere": {"host": "remote"}}
        policy = policy_with(folder, callback.origin, callback.port, backends=backends)
        for name, document in documents.items():
            (policy / "values" / f"{name}.yaml").write_text(json.dumps(document), encoding="utf-8")
        runner = serving(folder, cache, "--policy", policy, command=("runner", "serve"))
        yield Agents(stack.enter_context(runner), callback, remote)


@pytest.fixture(scope="module")
def serving_runner(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Agents]:
    with agents(tmp_path_factory.mktemp("agents"), cache) as found:
        until(lambda: found.run(found.with_tools("hello", tool())).json["ok"])  # a busy machine may probe a second time
        yield found


@pytest.fixture
def front(serving_runner: Agents) -> Agents:
    """A runner without a token, whose callback has received nothing."""
    serving_runner.callback.received.clear()
    serving_runner.platform.changes.clear()
    return serving_runner


def listening(pid: int) -> set[tuple[str, int]]:
    """Address and port of every listening TCP socket of a process and its children."""
    pids, inodes, found = [pid], set[str](), set()
    for one in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            inodes |= {path.name for path in opened_by(one)}
            pids += children(one)
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in inodes:
                address, _, port = local.partition(":")
                packed = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
                found.add((socket.inet_ntop(family, packed), int(port, 16)))
    return found


# What it cannot hold


# covers: D08 D09 D21
def test_a_jail_that_was_probed_here_admits_a_file_system_value(front: Agents) -> None:
    reply = front.run(
        {"harness": "pi_core", "messages": HELLO, "sandbox_permission": {"filesystem": "workspace"}}, X_Run_ID="jail"
    )
    assert reply.json["ok"] is True
    (admitted,) = [
        one for one in lines(front.engine.state) if one.get("run") == "jail" and one["point"] == "runner_request"
    ]
    assert admitted["limits"]["sandbox"]["proven"] == ["filesystem_jail"]
    (jail,) = [one for one in admitted["input"]["boundaries"] if one["boundary"] == "filesystem_jail"]
    assert (jail["backend"], jail["kind"], jail["enforced"]) == ("local", "kernel", True)


# covers: D29
def test_a_harness_has_no_file_no_network_and_no_secret(front: Agents) -> None:
    run = front.with_tools("hello", tool(), harness="curious", secrets={"KEY": "c4nary-provider"})
    assert front.run({**run, "tools": []}).json["ok"] is True
    acts, environment, task = json.loads(front.run({**run, "tools": []}).json["outputs"]["invoke"])
    assert acts == ["refused", "refused"]
    assert environment == ["HOME", "LANG", "PATH"]
    assert "c4nary" not in task
    assert front.callback.received == []


# Remote platforms

REMOTE: dict[str, Any] = {
    "harness": "pi_core",
    "sandbox": "daytona",
    "sandbox_permission": {"network": "restricted"},
    "messages": HELLO,
}


# covers: D08.1 D21.2 D67.1
def test_a_platform_boundary_counts_only_for_the_run_it_was_created_for(front: Agents) -> None:
    for number in (1, 2):
        made = len(front.platform.made)
        reply = front.run(REMOTE, X_Run_ID=f"remote-{number}")
        assert (reply.json["ok"], reply.json["outputs"]["invoke"]) == (True, "hello")
        assert len(front.platform.made) == made + 1  # for each run anew
        asked, box = front.platform.made[-1], f"box-{made + 1}"
        assert (asked["network"], front.platform.removed[-1]) == ("restricted", box)
        (admitted,) = [one for one in front.decided(f"remote-{number}") if one["point"] == "runner_request"]
        (egress,) = [one for one in admitted["input"]["boundaries"] if one["boundary"] == "egress"]
        assert (egress["enforced"], egress["run"]) == (True, admitted["input"]["content"])
        assert admitted["limits"]["sandbox"]["proven"] == ["egress"]


# covers: D67.2-3
@pytest.mark.parametrize(
    "changes",
    [{"applied": {}}, {"applied": {"network": "unrestricted"}}, {"run": "sha256:" + "0" * 64}, {"nonce": "another"}],
    ids=["none", "other", "other run", "other request"],
)
def test_without_evidence_for_this_run_it_is_refused(front: Agents, changes: dict[str, Any]) -> None:
    ran = len(front.platform.ran)
    front.platform.changes.update(changes)
    reply = front.run(REMOTE)
    assert [one["code"] for one in reply.json["decision"]["findings"]] == ["egress_not_proven"]
    assert len(front.platform.ran) == ran
    assert front.run({**REMOTE, "sandbox": "elsewhere"}).json["ok"] is False


# Tools


# covers: D17.1 D61.1 D39
@pytest.mark.full(after=1)
@pytest.mark.parametrize("kind", ["gateway", "callback"])
def test_a_tool_of_a_native_harness_is_shown_called_back_and_answered(front: Agents, kind: str) -> None:
    run = front.with_tools('say hello\nlookup {"text": "ada"}', tool(kind=kind))
    reply = front.run(run, X_Run_ID=f"tools-{kind}")
    assert reply.json["outputs"]["invoke"] == "say hello\nfound it"
    (sent,) = front.callback.received
    assert sent.path == "/tools/call"
    assert dict(sent.headers)["authorization"] == "Bearer c4nary-callback"
    assert front.said() == [
        {"run_id": reply.json["run_id"], "kind": kind, "name": "lookup", "arguments": {"text": "ada"}}
    ]
    decided = front.decided(f"tools-{kind}")
    assert [(one["point"], one["outcome"]) for one in decided] == [
        (point, "allow")
        for point in ("runner_request", "runner_capability", "tool_visibility", "sandbox", "tool_call", "tool_result")
    ]
    (known,) = [one for one in decided if one["point"] == "runner_capability"]
    assert known["limits"]["source"] == "probed"
    assert any(line["event"] == "capabilities" and line["source"] == "probed" for line in front.engine.log_lines())


# covers: D61.2-4
@pytest.mark.parametrize(
    ("harness", "backend", "error"),
    [
        ("pi_core", "daytona", "the tool `lookup` cannot be called from the backend `daytona`"),
        ("pi_core", "elsewhere", "this runner cannot run on the backend `elsewhere`"),
        ("claude", "local", MCP),
        ("claude", "daytona", MCP),
    ],
)
def test_a_tool_that_cannot_be_shown_is_refused_loudly(front: Agents, harness: str, backend: str, error: str) -> None:
    run = front.with_tools("hello", tool(), harness=harness, sandbox=backend)
    reply = front.run(run)
    assert (reply.json["ok"], reply.json["error"]) == (False, error)


# covers: D40 D61
@pytest.mark.parametrize("harness", ["hiding", "showing_less"])
def test_a_harness_that_hides_a_tool_from_its_model_fails_the_run(front: Agents, harness: str) -> None:
    reply = front.run(front.with_tools("hello", tool(), harness=harness))
    assert reply.json["ok"] is False
    assert reply.json["error"].startswith("[sandbox-agent invariant] the harness ")
    assert "use a harness that takes the tools of a run" in reply.json["error"]


def test_tools_without_a_row_a_callback_or_a_client_are_refused(front: Agents) -> None:
    run = front.with_tools("hello", tool("unknown"))
    assert front.run(run).json["error"] == "the tool `unknown` cannot be advertised: tool_unknown"
    del run["tool_callback"]
    assert front.run(run).json["error"] == "the tools of the run have no tool_callback to be called at"
    run = front.with_tools("hello", tool(kind="client"))
    assert front.run(run).json["error"].startswith("the tool `lookup` is called by the client")
    far = [{"name": "docs", "transport": "http", "url": "https://mcp.example.com/"}]
    reply = front.run({**front.with_tools("hello"), "mcp_servers": far})
    assert reply.json["error"] == "the MCP server `docs` cannot be reached from the sandbox, which has no network"


# covers: D18
def test_a_call_that_a_person_must_approve_waits_and_others_go_on(front: Agents, command: Command) -> None:
    seen = []
    for event in followed(front.engine, front.with_tools('change {"text": "x"}', tool("change"), tool())):
        seen.append(event)
        if event.get("type") == "approval":
            assert front.callback.received == []
            call = {"run_id": seen[0]["run_id"], "name": "lookup", "arguments": {"text": "y"}}
            other = front.engine.ask("POST", "/tools/call", call)
            assert (other.json["status"], other.json["content"]) == ("ok", "found it")
            granted = command("approvals", "grant", event["approval"], "--state", front.engine.state)
            assert granted.code == 0, granted.stderr
    kinds = [event.get("type") for event in seen]
    assert kinds == ["started", "update", "approval", "tool_call", None]
    assert (seen[-1]["ok"], seen[-1]["outputs"]["invoke"]) == (True, "found it")
    assert [call["name"] for call in front.said()] == ["lookup", "change"]
    gone = front.engine.ask("POST", "/tools/call", {"run_id": seen[0]["run_id"], "name": "lookup", "arguments": {}})
    assert (gone.status, gone.json["code"]) == (404, "engine.run_unknown")


def test_a_call_with_an_expired_approval_is_refused_and_the_run_continues(tmp_path: Path, cache: Path) -> None:
    with agents(tmp_path, cache, approvals={"valid_seconds": 1}) as front:
        reply = front.run(front.with_tools('change {"text": "x"}\nlookup {"text": "y"}', tool("change"), tool()))
        assert reply.json["ok"] is True, reply.json
        refused, found = reply.json["outputs"]["invoke"].rsplit("\n", 1)
        assert ("approval_expired" in refused, found) == (True, "found it")
        assert [call["name"] for call in front.said()] == ["lookup"]


# covers: C68.1
def test_a_stop_ends_a_run_and_lets_none_begin(front: Agents, command: Command) -> None:
    seen = []
    for event in followed(front.engine, front.with_tools('change {"text": "x"}', tool("change"))):
        seen.append(event)
        if event.get("type") == "approval":
            stopped = command("stop", "all", "--reason", "exfiltration", "--state", front.engine.state)
            assert stopped.code == 0, stopped.stderr
    assert (seen[-1]["ok"], seen[-1]["error"], front.said()) == (False, "the run was stopped", [])
    assert front.run().json["decision"]["findings"][0]["code"] == "stopped"
    stop = command("stop", "list", "--format", "json", "--state", front.engine.state).json["stops"][0]["id"]
    lifted = command("stop", "lift", stop, "--reason", "over", "--state", front.engine.state)
    assert lifted.code == 0, lifted.stderr
    assert front.run().json["ok"] is True


def test_a_trace_gets_how_the_run_ended_and_which_calls_were_made(front: Agents) -> None:
    trace = {"endpoint": f"{front.callback.origin}/trace", "authorization": "Bearer c4nary-trace"}
    reply = front.run(front.with_tools('lookup {"text": "ada"}', tool(), trace=trace))
    told, (called, posted) = front.said()[-1], front.callback.received
    assert (called.path, posted.path) == ("/tools/call", "/trace")
    assert dict(posted.headers)["authorization"] == "Bearer c4nary-trace"
    (call,) = told.pop("calls")
    assert (call["tool"], call["status"]) == ("lookup", "ok")
    usage = {"input_tokens": 1, "output_tokens": 1}
    assert told == {"run_id": reply.json["run_id"], "harness": "pi_core", "ok": True, "usage": usage}


# covers: C69
def test_a_repeated_key_starts_nothing(front: Agents) -> None:
    run = front.with_tools('lookup {"text": "ada"}', tool())
    assert front.run(run, Idempotency_Key="again").json["ok"] is True
    again = front.run(run, Idempotency_Key="again").json
    assert (again["ok"], again["replayed"], len(front.callback.received)) == (False, True, 1)


def test_a_refused_call_reaches_the_model_and_not_the_callback(front: Agents) -> None:
    run = front.with_tools('lookup {"text": "x"}', tool(), agent={"permission_policy": "deny"})
    assert "this call is refused" in front.run(run).json["outputs"]["invoke"]
    assert front.callback.received == []


# Harnesses that fail


@pytest.mark.full(after=2)
@pytest.mark.parametrize(
    ("harness", "error"),
    [
        ("shapeless", "[sandbox-agent invariant] the harness reports no capabilities: answer `initialize` with"),
        ("dying", "the harness ended without a result: program_error"),
        ("leaving", "the harness ended without a result: program_error"),
        ("chatting", "the harness broke the protocol: a line is not a plain JSON object"),
        ("failing", "no model at [path] with [secret]"),
    ],
)
def test_a_harness_that_fails_is_reported_in_a_sentence(front: Agents, harness: str, error: str) -> None:
    run = {"messages": HELLO, "harness": harness, "secrets": {"KEY": "c4nary-provider"}}
    reply = front.run(front.with_tools("hello", tool(), harness=harness) if harness == "leaving" else run)
    assert (reply.status, reply.json["ok"]) == (200, False)
    assert reply.json["error"].startswith(error)


# What it publishes


# covers: D33.1 D39 D62.1-3 D64.1
def test_capabilities_list_boundaries_with_the_source_of_their_evidence(front: Agents) -> None:
    found = front.engine.ask("GET", "/capabilities").json
    assert found["backends"] == {
        "daytona": {
            "host": "remote",
            "boundaries": [
                {"boundary": "egress", "enforced": False, "source": "static"},
                {"boundary": "filesystem_jail", "enforced": False, "source": "static"},
            ],
        },
        "elsewhere": found["backends"]["daytona"],
        "local": {
            "host": "runner",
            "boundaries": [
                {"boundary": "egress", "enforced": False, "source": "static"},
                {"boundary": "filesystem_jail", "enforced": True, "source": "probed"},
            ],
        },
    }
    harnesses = found["harnesses"]
    assert harnesses["pi_core"] == {
        "capabilities": {"mcpTools": False, "toolCalls": True},
        "source": "probed",
        "custom_tools": "native",
        "models": {"anthropic": ["claude-sonnet-4-5"]},
        "connection_modes": ["agenta"],
    }
    assert harnesses["hiding"]["capabilities"]["toolCalls"] is False  # it says so, and made no call
    assert (harnesses["shapeless"]["source"], harnesses["claude"]["custom_tools"]) == ("static", "mcp")
    logged = [line for line in front.engine.log_lines() if line.get("harness") == "shapeless"]
    assert {line["source"] for line in logged} == {"static"}
    shown = front.engine.ask("GET", "/inspect").json
    assert shown["harnesses"] == harnesses
    schemas = shown["revision"]["schemas"]
    assert (schemas["inputs"]["title"], schemas["result"]["title"]) == ("WireRunRequest", "WireRunResult")
    assert [*schemas["outputs"]["properties"]] == ["invoke", "messages"]
    components = front.engine.ask("GET", "/openapi.json").json["components"]["schemas"]
    assert {"WireRunRequest", "WireRunResult", "AgentOutputs"} <= components.keys()

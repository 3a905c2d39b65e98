"""MCP servers as a harness gets them: over HTTP only, each secret in a header and in nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from admission_adapters.runner.errors import McpUnsupportedError, raise_unsupported
from admission_adapters.runner.mcp_delivery import Delivered, McpServerProcess, deliver
from engine.cases.run import Runner
from engine.engine import Engine
from engine.errors import WorkError
from engine.facts.run_request import McpServer, WireRunRequest
from engine.flow import Answer
from engine.model import Outcome, Permit, Result
from engine.points.mcp import McpLimits, McpRequest
from engine.work import Job
from tests.adapters.permits import DIGEST, misused, sealed
from tests.covers import cases
from tests.expect import refused, there

URL = "https://mcp.example.com/v1"
DOCS = {"transport": "http", "origin": "https://mcp.example.com", "secrets": ["API_KEY", "TEAM"], "tools": {}}
VALUES = {"mcp": {"servers": {"+docs": DOCS, "+open": DOCS}}}
SECRETS = {"API_KEY": "canary-key", "TEAM": "canary-team"}
HTTP: dict[str, Any] = {"name": "docs", "transport": "http", "url": URL, "env": SECRETS}
OPEN = {"name": "open", "transport": "http", "url": URL}
STDIO = {"name": "local", "transport": "stdio", "command": "echo"}
EMPTY = {"name": "empty", "transport": "stdio"}
NOWHERE = {"name": "nowhere", "transport": "http"}
CANARY = "canary"


class Harness:
    """Takes what is delivered to it, and keeps the lines that were logged."""

    def __init__(self, *servers: dict[str, Any]) -> None:
        self.servers = [McpServer.model_validate(server) for server in servers]
        self.lines: list[str] = []
        self.delivered: tuple[Delivered, ...] = ()

    def take(self, permit: Permit, job: Job) -> Result:
        result, self.delivered = deliver(permit, job.input_digest, self.servers, self.lines.append)
        return result

    def wire(self) -> list[dict[str, Any]]:
        return [one.wire() for one in self.delivered]


def asked(runner: Runner, *servers: dict[str, Any], to: Harness | None = None) -> tuple[Answer, Harness, Engine]:
    engine, harness = runner.engine(VALUES), to or Harness(*servers)
    return engine.decide("mcp", {"phase": "delivery", "servers": list(servers)}, harness.take), harness, engine


# covers: D34.1
def test_an_http_server_is_delivered_with_name_url_and_headers(runner: Runner) -> None:
    answer, harness, _ = asked(runner, HTTP)
    assert answer.decision.outcome is Outcome.ALLOW
    assert harness.wire() == [
        {
            "type": "http",
            "name": "docs",
            "url": URL,
            "headers": [{"name": "API_KEY", "value": "canary-key"}, {"name": "TEAM", "value": "canary-team"}],
        }
    ]


# covers: D34.2
def test_the_secret_is_in_the_header_and_in_no_log(runner: Runner) -> None:
    answer, harness, engine = asked(runner, HTTP, EMPTY)
    assert CANARY in str(harness.wire())  # the control: it was there, and it was delivered
    assert harness.lines
    assert answer.result is not None
    state = engine.settings.state
    records = "".join(path.read_text(encoding="utf-8") for path in state.rglob("*.jsonl"))
    assert answer.decision.decision_id in records
    for text in (records, *harness.lines, repr(harness.delivered), repr(answer), repr(harness.servers)):
        assert CANARY not in text


# covers: D35.1
def test_without_secrets_the_headers_are_empty(runner: Runner) -> None:
    _, harness, _ = asked(runner, OPEN)
    assert harness.wire() == [{"type": "http", "name": "open", "url": URL, "headers": []}]


# covers: D35.2
@pytest.mark.parametrize("nothing", [EMPTY, NOWHERE, {**EMPTY, "command": ""}], ids=["stdio", "http", "blank"])
def test_a_server_with_nothing_to_deliver_is_skipped_and_logged(nothing: dict[str, Any], runner: Runner) -> None:
    answer, harness, _ = asked(runner, nothing)
    assert answer.decision.outcome is Outcome.ALLOW
    assert harness.wire() == []
    assert harness.lines == [f"MCP server `{nothing['name']}` is left out: it has nothing to deliver"]


# covers: D35.3
def test_a_mixed_list_skips_only_what_cannot_be_delivered(runner: Runner) -> None:
    answer, harness, _ = asked(runner, EMPTY, HTTP, NOWHERE, OPEN)
    assert [one.name for one in harness.delivered] == ["docs", "open"]
    assert len(harness.lines) == 2
    assert there(answer.result).facts == {"servers": ["docs", "open"], "skipped": ["empty", "nowhere"]}


# covers: D37
@pytest.mark.parametrize(("backend", "names"), [("local", ["gateway"]), ("daytona", [])])
def test_a_loopback_server_is_advertised_on_the_machine_of_the_runner_only(
    backend: str, names: list[str], runner: Runner
) -> None:
    row = {"transport": "http", "origin": "http://127.0.0.1:8765", "secrets": [], "tools": {}}
    server = {"name": "gateway", "transport": "http", "url": "http://127.0.0.1:8765/mcp"}
    engine, harness = runner.engine({"mcp": {"servers": {"+gateway": row}}}), Harness(server)
    asked = {"phase": "delivery", "backend": backend, "servers": [server]}
    assert engine.decide("mcp", asked, harness.take).decision.outcome is Outcome.ALLOW
    assert [one.name for one in harness.delivered] == names
    left_out = ["MCP server `gateway` is left out: its loopback is that of another machine"]
    assert harness.lines == ([] if names else left_out)


# covers: D12.1 D13 D35
def test_a_stdio_server_is_refused_at_delivery(runner: Runner) -> None:
    answer, harness, _ = asked(runner, HTTP, STDIO)
    finding = answer.decision.findings[0]
    assert (finding.code, finding.subject) == ("MCP_UNSUPPORTED_MESSAGE", "servers/local")
    assert finding.requirement == "No MCP server is started by a command"
    assert finding.remedy.startswith(f"{McpUnsupportedError.text} Leave out ")
    with pytest.raises(McpUnsupportedError, match=r"^MCP servers are not supported by the sidecar\.$"):
        raise_unsupported(answer.decision)
    assert harness.delivered == ()


# covers: D12.1 D13.2 D28.12
def test_a_stdio_server_that_reaches_delivery_with_a_permit_is_refused_there(runner: Runner) -> None:
    answer, harness, _ = asked(runner, HTTP, to=Harness(HTTP, STDIO))
    assert answer.decision.outcome is Outcome.ALLOW  # the control: the decision was about another list
    assert isinstance(answer.fault, McpUnsupportedError)
    assert str(answer.fault) == "MCP servers are not supported by the sidecar."
    assert harness.delivered == ()


@pytest.mark.parametrize(
    "other",
    [
        {**HTTP, "url": "https://mcp.example.com/v2"},
        {**HTTP, "env": {"API_KEY": "canary-key"}},
        {**HTTP, "env": {**SECRETS, "MORE": "canary"}},
        {**HTTP, "name": "other"},
        {**HTTP, "transport": "stdio"},
        NOWHERE,
    ],
    ids=["address", "fewer_secrets", "more_secrets", "name", "transport", "nothing"],
)
def test_another_server_than_was_decided_on_is_refused(other: dict[str, Any], runner: Runner) -> None:
    answer, harness, _ = asked(runner, HTTP, to=Harness(other))
    assert answer.decision.outcome is Outcome.ALLOW
    assert there(answer.fault).code == "engine.mcp_server_changed"
    assert harness.delivered == ()


@pytest.mark.parametrize("more", [EMPTY, NOWHERE, OPEN], ids=["stdio", "nowhere", "http"])
def test_a_server_that_is_added_after_the_decision_is_refused(more: dict[str, Any], runner: Runner) -> None:
    answer, harness, _ = asked(runner, HTTP, to=Harness(HTTP, more))
    assert there(answer.fault).code == "engine.mcp_server_changed"
    assert f"`{more['name']}`" in there(answer.fault).message
    assert (harness.delivered, harness.lines) == ((), [])


def test_a_server_removed_after_the_decision_is_detected(runner: Runner) -> None:
    answer, _, _ = asked(runner, HTTP, OPEN, to=Harness(HTTP))
    assert there(answer.fault).code == "engine.mcp_server_changed"


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\n", "", " a", "ä", "a\x00b"])
def test_a_secret_that_no_header_can_hold_is_refused(value: str, runner: Runner) -> None:
    answer, harness, _ = asked(runner, {**HTTP, "env": {"API_KEY": value}})
    assert there(answer.fault).code == "engine.mcp_secret_unusable"
    assert harness.delivered == ()


@pytest.mark.parametrize("name", ["a b", "a:", "", "7", "a\r\nX", "ä", "x" * 65])
def test_a_name_that_no_header_can_have_is_refused(name: str, runner: Runner) -> None:
    servers = [McpServer.model_construct(name="docs", transport="http", url=URL, env={name: SecretStr("canary")})]
    granted = asked(runner, HTTP)[0].decision.limits
    assert isinstance(granted, McpLimits)
    one = granted.servers[0].model_copy(update={"secrets": (name,)})
    own = sealed("mcp", granted.model_copy(update={"servers": (one,)}))
    with refused(WorkError, "engine.mcp_secret_unusable"):
        deliver(own, DIGEST, servers, list[str]().append)


def test_a_permit_of_another_phase_delivers_nothing(runner: Runner) -> None:
    harness = Harness(HTTP)
    answer = runner.engine(VALUES).decide("mcp", {"phase": "plan", "servers": [HTTP]}, harness.take)
    assert answer.decision.outcome is Outcome.ALLOW
    assert there(answer.fault).code == "engine.permit_missing"
    for wrong in misused(sealed("mcp", there(answer.decision.limits))).values():
        with pytest.raises(WorkError, match="no permit"):
            deliver(wrong, DIGEST, harness.servers, harness.lines.append)


# covers: D13.3
@pytest.mark.parametrize("call", ["start", "list_tools", "call_tool", "stop"])
def test_the_server_module_refuses_every_call(call: str) -> None:
    public = {name for name in vars(McpServerProcess) if not name.startswith("_")}
    assert public == {"start", "list_tools", "call_tool", "stop"}
    with pytest.raises(McpUnsupportedError, match=r"^MCP servers are not supported by the sidecar\.$") as caught:
        getattr(McpServerProcess("local"), call)("anything", {"at": "all"})
    assert caught.value.code == "MCP_UNSUPPORTED_MESSAGE"


# covers: D13.3
def test_the_wire_shapes_still_parse() -> None:
    servers = [STDIO, HTTP, EMPTY, NOWHERE]
    run = WireRunRequest.model_validate({"messages": (), "mcpServers": tuple(servers)})
    asked_about = McpRequest.model_validate({"phase": "plan", "mcpServers": tuple(servers)})
    assert [server.name for server in run.mcp_servers] == ["local", "docs", "empty", "nowhere"]
    assert [(one.name, one.command, one.url, one.env) for one in run.mcp_servers] == [
        (one.name, one.command, one.url, one.env) for one in asked_about.servers
    ]


# covers: D13.1
def test_both_points_refuse_a_stdio_server_at_plan_time() -> None:
    refused = {
        file.case.point
        for file in cases()
        if file.case.want.codes == ("MCP_UNSUPPORTED_MESSAGE",) and "stdio" in file.path.stem
    }
    assert refused == {"mcp", "runner_request"}

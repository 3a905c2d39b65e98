"""A run request in its one form: every spelling and shape gives the same facts, and no content gets out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from pydantic import ValidationError

from engine.cases.run import Runner
from engine.documents.validation import FieldsError, validate
from engine.facts.run_request import WireRunRequest, agent_of
from engine.model import Boundary, Outcome
from engine.points import GatherContext
from engine.points.registry import POINTS
from engine.points.runner_request import RunnerInput, ServerLimit, gather
from engine.settings import ReadLimits
from tests.conftest import ROOT
from tests.expect import of

MESSAGES = [{"role": "user", "content": "hello"}]
PROOF = Boundary(backend="daytona", boundary="egress", kind="supervised", enforced=True, evidence="sha256:" + "0" * 64)
SECRETS = {
    "secrets": {"PROVIDER_KEY": "canary-provider"},
    "tool_callback": {"endpoint": "https://gateway.example.com/tools/call", "authorization": "canary-callback"},
    "trace": {"endpoint": "https://gateway.example.com/traces", "authorization": "canary-trace"},
}
CANARY = "canary-"


def facts(request: dict[str, Any], *boundaries: Boundary) -> RunnerInput:
    parsed = WireRunRequest.model_validate_json(json.dumps(request))
    return of(RunnerInput, gather(parsed, GatherContext(clock=lambda: 0, boundaries=lambda: boundaries)).input)


SNAKE = {
    "messages": MESSAGES,
    "agent": {"harness": "pi_core", "permission_policy": "ask"},
    "sandbox_permission": {"network": "restricted"},
    "mcp_servers": [{"name": "a", "transport": "http", "url": "https://mcp.example.com/"}],
    "tools": [{"name": "b", "kind": "gateway", "input_schema": {"type": "object"}}],
    "tool_callback": SECRETS["tool_callback"],
}
CAMEL = {
    "messages": MESSAGES,
    "agent": {"harness": "pi_core", "permissionPolicy": "ask"},
    "sandboxPermission": SNAKE["sandbox_permission"],
    "mcpServers": SNAKE["mcp_servers"],
    "tools": [{"name": "b", "kind": "gateway", "inputSchema": {"type": "object"}}],
    "toolCallback": SECRETS["tool_callback"],
}
LEGACY = {name: value for name, value in SNAKE.items() if name != "agent"} | SNAKE["agent"]  # type: ignore[operator]


CAPITALS = {**SNAKE, "agent": {"harness": "Pi_Core", "permission_policy": "ask"}}


# covers: D45 D57 D63 D65.1 D52.4
@pytest.mark.parametrize("request_", [CAMEL, LEGACY, CAPITALS], ids=["camel_case", "legacy", "capitals"])
def test_every_form_of_one_run_is_the_same_input(request_: dict[str, Any]) -> None:
    assert facts(request_) == facts(SNAKE)


def test_another_run_is_another_input() -> None:
    """Positive control of the digest: what an approval is bound to differs with all content of a run."""
    for change in (
        {"messages": [{"role": "user", "content": "hullo"}]},
        {"messages": [{"role": "system", "content": "hello"}]},
        {"tools": [{"name": "b", "kind": "gateway", "input_schema": {"type": "array"}}]},
        {"mcp_servers": [{"name": "a", "transport": "http", "url": "https://mcp.example.com/other"}]},
        {"agent": {"harness": "pi_core", "permission_policy": "ask", "uri": None}},
    ):
        assert facts(SNAKE | change).content != facts(SNAKE).content


def test_a_different_secret_does_not_change_the_input() -> None:
    other = json.loads(json.dumps(SNAKE).replace("canary-callback", "another"))
    assert facts(other) == facts(SNAKE)


# covers: D57
def test_a_field_in_two_spellings_is_refused() -> None:
    for name, camel in [
        ("sandbox_permission", "sandboxPermission"),
        ("mcp_servers", "mcpServers"),
        ("tool_callback", "toolCallback"),
    ]:
        with pytest.raises(ValidationError):
            facts({**SNAKE, camel: CAMEL[camel]})
        assert facts({**{key: SNAKE[key] for key in SNAKE if key != name}, camel: CAMEL[camel]}) == facts(SNAKE)


# covers: D57
@pytest.mark.parametrize(("name", "other"), [("permission_policy", "permissionPolicy"), ("sandbox", "backend")])
def test_a_field_under_two_names_is_named_as_such(name: str, other: str) -> None:
    problem = f"is not a known field beside `{name}`: both are names of one field"
    assert wrong_fields({"messages": [], name: "ask", other: "ask"}) == ((other, problem),)


# covers: D57
def test_a_wrong_field_within_another_is_answered_like_one_at_the_top() -> None:
    both = {"permission_policy": "ask", "permissionPolicy": "ask"}
    problem = "is not a known field beside `permission_policy`: both are names of one field"
    assert wrong_fields({"messages": [], "agent": both}) == (("agent.permissionPolicy", problem),)
    misspelled = {"agent": {"harnes": "pi_core"}, "tools": [{"name": "x", "kind": "gateway", "descripton": "y"}]}
    assert wrong_fields({"messages": [], **misspelled}) == (
        ("agent.harnes", "is not a known field; did you mean `harness`?"),
        ("tools.0.descripton", "is not a known field; did you mean `description`?"),
    )


def wrong_fields(run: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    with pytest.raises(FieldsError) as refused:
        validate(WireRunRequest, json.dumps(run).encode(), "a run", "correct it", ReadLimits())
    return refused.value.fields


# covers: D57
@pytest.mark.parametrize(
    "name", ["McpServers", "mcp-servers", "MCP_SERVERS", "mcpservers", "mcp_servers ", "mcpServer"]
)
def test_an_unknown_field_spelling_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        facts({"messages": [], "harness": "pi_core", name: []})


@pytest.mark.parametrize("shape", [{}, {"agent": {"harness": "pi_core"}}], ids=["legacy", "agent"])
def test_a_null_field_is_refused(shape: dict[str, Any]) -> None:
    for name in ("harness", "sandbox", "permission_policy", "agent", "sandbox_permission", "mcp_servers", "tools"):
        with pytest.raises(ValidationError):
            facts({"messages": [], **shape, name: None})


# covers: D45.1-2
def test_legacy_keys_move_into_agent() -> None:
    legacy = {"harness": "pi_core", "sandbox": "daytona", "permission_policy": "deny"}
    agent = facts({"messages": [], **legacy}).agent
    assert (agent.harness, agent.sandbox, agent.permission_policy) == ("pi_core", "daytona", "deny")
    assert (agent.sandbox_stated, agent.permission_policy_stated) == (True, True)


# covers: D63.1
def test_no_legacy_key_stays_at_the_top_level() -> None:
    stated = ("harness", "sandbox", "permission_policy")
    document = facts({"messages": [], "agent": {}, "harness": "pi_core", "sandbox": "x", "permission_policy": "y"})
    assert not set(stated) & set(document.model_dump())


# covers: D45 D63
def test_a_key_inside_agent_overrides_the_top_level_key() -> None:
    for names in itertools.chain.from_iterable(
        itertools.combinations(("harness", "sandbox", "permission_policy"), count) for count in range(4)
    ):
        request: dict[str, Any] = {"messages": [], "harness": "top", "sandbox": "top", "permission_policy": "top"}
        request["agent"] = dict.fromkeys(names, "inner")
        if "sandbox" in names:  # it is not part of what a person writes
            with pytest.raises(ValidationError):
                WireRunRequest.model_validate_json(json.dumps(request))
            continue
        agent, _ = agent_of(WireRunRequest.model_validate_json(json.dumps(request)))
        for name in ("harness", "sandbox", "permission_policy"):
            assert getattr(agent, name) == ("inner" if name in names else "top")


# covers: D45 D63.2
def test_only_the_inner_permission_policy_counts(runner: Runner) -> None:
    request = {"messages": [], "permission_policy": "ask", "agent": {"harness": "pi_core", "permission_policy": "auto"}}
    engine = runner.engine({})
    refused = engine.check("runner_request", request).decision
    assert [finding.code for finding in refused.findings] == ["permission_policy_not_admitted"]
    swapped = {**request, "permission_policy": "auto", "agent": {"harness": "pi_core", "permission_policy": "ask"}}
    assert engine.check("runner_request", swapped).decision.outcome is Outcome.ALLOW


# covers: B43 D29
def test_no_content_gets_into_the_input() -> None:
    request = {
        "harness": "pi_core",
        "messages": [{"role": "user", "content": "canary-message"}],
        "tools": [
            {"name": "a", "kind": "gateway", "description": "canary-text", "code": "canary-code"},
        ],
        "mcp_servers": [
            {
                "name": "b",
                "transport": "http",
                "url": "https://mcp.example.com/canary-path?key=canary-query",
                "command": "canary-command",
                "env": {"canary-name": "canary-env"},
            }
        ],
        **SECRETS,
    }
    assert json.dumps(request).count(CANARY) == 11  # the control: all of them were sent
    parsed = WireRunRequest.model_validate_json(json.dumps(request))
    text = gather(parsed, GatherContext(clock=lambda: 0, boundaries=lambda: ())).input.model_dump_json()
    assert CANARY not in text
    assert facts(request).mcp_servers[0].secrets == 1  # the control: the server was read
    for secret in ("canary-provider", "canary-callback", "canary-trace", "canary-env"):
        assert secret not in repr(parsed)


# covers: D29
@pytest.mark.parametrize(
    "broken", [{}, {"surprise": 1}, {"messages": "canary-message"}], ids=["good", "unknown", "bad"]
)
def test_no_secret_gets_into_a_record_or_an_answer(broken: dict[str, Any], runner: Runner) -> None:
    engine = runner.engine({"runners": {"endpoints": ["https://gateway.example.com"]}})
    request = {"harness": "pi_core", "messages": [{"role": "user", "content": "canary-message"}], **SECRETS, **broken}
    got = engine.decide("runner_request", request)
    assert (got.decision.outcome is Outcome.ALLOW) == (not broken)
    assert CANARY not in got.decision.model_dump_json()
    assert CANARY not in ("" if got.fault is None else got.fault.one_line())
    lines = "".join(path.read_text(encoding="utf-8") for path in engine.settings.state.rglob("*.jsonl"))
    assert got.decision.decision_id in lines
    assert CANARY not in lines


# covers: D08.1 H22
def test_boundary_proofs_come_only_from_the_engine() -> None:
    request = {
        "harness": "pi_core",
        "sandbox": "daytona",
        "messages": [],
        "sandbox_permission": {"network": "restricted"},
    }
    assert facts(request).boundaries == ()
    assert facts(request, PROOF).boundaries == (PROOF,)
    for name in ("boundaries", "proofs", "probe", "capabilities", "enforced"):
        with pytest.raises(ValidationError):
            facts({**request, name: [PROOF.model_dump(mode="json")]})


CLAIMS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "runner_request": (
        {"harness": "pi_core", "messages": []},
        [{"token": "x"}, {"authorized": True}, {"boundaries": []}, {"content": "sha256:" + "0" * 64}, {"attached": []}],
    ),
    "runner_bind": (
        {"host": "127.0.0.1", "port": 1, "published": False},
        [{"loopback": True}, {"reach": "loopback"}, {"gate": {"shared_token": True}}, {"token": "x"}],
    ),
    "runner_uri": (
        {"inherited": None},
        [{"canonical": True}, {"origin": "http://127.0.0.1:8765"}, {"source": "default"}, {"allowlisted": True}],
    ),
    "runner_capability": (
        {"harness": "pi_core", "tools": []},
        [{"capabilities": {"mcpTools": True}}, {"source": "probed"}, {"probe_ref": "x"}, {"native": True}],
    ),
    "record": ({"detail": "summary", "retention_days": 30}, [{"profile": "controlled"}, {"debug": True}]),
}


# covers: H22
@pytest.mark.parametrize("point", CLAIMS)
def test_a_request_cannot_state_facts_that_the_engine_computes(point: str, runner: Runner) -> None:
    request, claims = CLAIMS[point]
    engine = runner.engine({})
    assert engine.check(point, request).decision.outcome is Outcome.ALLOW  # the control
    for claim in [*claims, {"now": 0}, {"caller": {"via": "process"}}, {"approvals": []}, {"input": {}}]:
        got = engine.check(point, request | claim).decision
        assert [finding.code for finding in got.findings] == ["engine.request_invalid"], claim


def test_the_published_schema_knows_both_spellings() -> None:
    schema = POINTS["runner_request"].request.model_json_schema()
    assert {"mcp_servers", "mcpServers", "sandbox", "backend"} <= schema["properties"].keys()
    assert {"not": {"required": ["mcp_servers", "mcpServers"]}} in schema["allOf"]
    assert "headers" not in schema["properties"]


# covers: D21
def test_the_matrix_names_a_case_for_every_boundary() -> None:
    """Which case fixes the outcome of which boundary; the cases themselves run with all the others."""
    from engine.cases.run import read_case

    matrix = {
        "local_network_strict": "LOCAL_NETWORK_UNSUPPORTED_MESSAGE",
        "local_network_best_effort": "LOCAL_NETWORK_UNSUPPORTED_MESSAGE",
        "remote_network_proven": "allow",
        "remote_network_not_proven": "egress_not_proven",
        "filesystem_local_strict": "FILESYSTEM_UNSUPPORTED_MESSAGE",
        "filesystem_remote_strict": "FILESYSTEM_UNSUPPORTED_MESSAGE",
        "filesystem_jail_proven": "allow",
        "code_tool": "CODE_TOOL_UNSUPPORTED_MESSAGE",
        "gateway_tool": "allow",
        "callback_tool": "allow",
        "stdio_mcp": "MCP_UNSUPPORTED_MESSAGE",
        "http_mcp": "allow",
        "backend_in_process": "backend_not_admitted",
    }
    for name, wanted in matrix.items():
        want = read_case(ROOT / "fixtures" / "cases" / "runner_request" / f"{name}.yaml").case.want
        assert (wanted in want.codes) or (wanted == want.outcome == "allow"), name


@pytest.mark.parametrize("place", [{}, {"host": "a.example.com"}, {"port": 443}])
def test_only_an_http_server_limit_has_host_and_port(place: dict[str, Any]) -> None:
    server, address = {"name": "docs", "permission": "ask"}, {"host": "a.example.com", "port": 443}
    assert ServerLimit.model_validate({**server, "transport": "http", **address}).port == 443
    assert ServerLimit.model_validate({**server, "transport": "stdio"}).host is None
    with pytest.raises(ValidationError):
        ServerLimit.model_validate({**server, "transport": "http", **place})
    with pytest.raises(ValidationError):
        ServerLimit.model_validate({**server, "transport": "stdio", **address, **place})

"""The capability gate, on what a harness in a real sandbox was seen to do."""

from __future__ import annotations

from typing import Any

from admission_adapters.runner.sealed import Opener
from engine.cases.run import Runner
from engine.documents.canonical import RawJson, canonical
from engine.flow import Context
from engine.runner.run import AgentRunner, Ran, RunnerSettings
from tests.agents import HARNESSES, RELAYED
from tests.facilities import needs

CALLBACK = "https://gateway.example.com"


def ran(runner: Runner, program: str, profile: str = "standard", **row: Any) -> Ran:
    """A run with two tools on a harness that takes tools over MCP, where the runner delivers them that way."""
    harness = {"custom_tools": "mcp", "command": ["python3", "-c", program], "assumed": {}, **row}
    values = {
        "runners": {"harnesses": {"claude": harness}, "tool_delivery": ["native", "mcp"], "endpoints": [CALLBACK]},
        "sandbox": {"executables": {"python3": "/usr/bin/python3"}},
        "operations": {"profile": profile},
    }
    engine = runner.engine(values)
    run = {
        "agent": {"harness": "claude", "permission_policy": "ask"},
        "messages": [],
        "tools": [{"name": name, "kind": "gateway"} for name in ("one", "two")],
        "tool_callback": {"endpoint": f"{CALLBACK}/tools/call"},
    }
    agents = AgentRunner(engine.executors.machine().backend, RunnerSettings(Opener(None)))
    return agents.run(RawJson(canonical(run)), engine.opened, Context(), lambda _: None)


def found(done: Ran) -> list[tuple[str, str | None]]:
    assert done.answer is not None
    assert done.answer.decision.point == "runner_capability"
    return [(finding.code, finding.subject) for finding in done.answer.decision.findings]


# covers: D38.1-2 D39
@needs("bubblewrap")
def test_a_missing_capability_is_reported_with_the_tools_it_would_drop(runner: Runner) -> None:
    assert found_or_later(ran(runner, RELAYED)) == "tool_visibility"
    lacking = RELAYED.replace('"mcpTools": True', '"mcpTools": False')
    assert found(ran(runner, lacking)) == [("capability_missing", "capabilities/mcpTools (2 tools dropped)")]
    boasting = HARNESSES["hiding"].replace("False", "True")  # reports both, and calls nothing
    assert found(ran(runner, boasting)) == [("capability_missing", "capabilities/toolCalls (2 tools dropped)")]


def found_or_later(done: Ran) -> str:
    """The step that ended a run: tools without a row end it where they would be shown."""
    assert done.result is not None
    assert "cannot be advertised" in (done.result.error or "")
    return "tool_visibility"


# covers: D39.1-2
@needs("bubblewrap")
def test_assumed_capabilities_after_a_failed_probe_fail_a_strict_profile(runner: Runner) -> None:
    assumed = {"mcpTools": True, "toolCalls": True}
    assert found_or_later(ran(runner, "exit()", assumed=assumed)) == "tool_visibility"
    assert found(ran(runner, "exit()", "strict", assumed=assumed)) == [("capability_not_probed", None)]

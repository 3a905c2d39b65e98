"""The tool `sandbox_shell` behind the tool gate: decided at `tool_call`, `sandbox`, `network` and `tool_result`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.tools.effects import Effects, recording
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.project_shell import ProjectShell
from admission_adapters.tools.registry import ToolRegistry
from admission_adapters.tools.sandbox_shell import SandboxShell
from engine.errors import RecordError, WorkError
from engine.settings import Settings
from tests.adapters.gates import AGENT, OPTIONS, last
from tests.command import decisions
from tests.expect import refused
from tests.facilities import needs
from tests.sources.https import BODY, HOST, Authority, response
from tests.sources.world import World, at_world, authority

__all__ = ["authority"]

OTHER = "other.example.org"


@pytest.fixture(scope="module")
def world(module_settings: Settings, authority: Authority) -> Iterator[World]:
    rule = {"id": "clients", "tools": ["sandbox_shell", "shell"], "commands": [["curl"], ["echo"]]}
    values = (f"networks.tunnels.hosts=[{HOST}]", f"tools.rulesets.workspace.allow={json.dumps([rule])}")
    with at_world(module_settings, authority, *values) as found:
        found.server.answers(response())
        yield found


def gate(world: World, **changes: Any) -> ToolGate:
    registry = ToolRegistry()
    SandboxShell(world.engine, AGENT, **{"hosts": (HOST, OTHER), **changes}).register(registry)
    return ToolGate(world.engine, registry, AGENT, **OPTIONS)


def call(command: str) -> dict[str, Any]:
    return {"name": "sandbox_shell", "arguments": {"command": command}}


@needs("bubblewrap", "curl")
def test_a_result_has_the_output_and_the_connections(world: World) -> None:
    before = len(decisions(world.state))
    allowed, other = world.server.url(), world.server.url(host=OTHER)
    result = gate(world).call(call(f"curl -sS {allowed} && curl -s {other}"))
    assert result.status == "ok", result
    found = json.loads(result.content)
    assert (found["status"], found["stdout"].encode()) == ("runtime_error", BODY)
    origins = [f"https://{host}:{world.server.port}/" for host in (HOST, OTHER)]
    assert found["connections"] == [
        {"to": origins[0], "outcome": "closed", "codes": []},
        {"to": origins[1], "outcome": "refused", "codes": ["host_not_allowlisted"]},
    ]
    points = [(one["point"], one["outcome"]) for one in decisions(world.state)[before:]]
    assert points == [
        ("tool_contract", "allow"),
        ("tool_call", "allow"),
        ("sandbox", "allow"),
        ("network", "allow"),
        ("network", "deny"),
        ("tool_result", "allow"),
    ]
    effects = last(world.engine.settings, "tool_result")["input"]["side_effects"]
    assert [one["class"] for one in effects] == ["execute", "network"]


@needs("bubblewrap")
def test_programs_started_by_a_command_need_a_rule(world: World) -> None:
    assert gate(world).call(call("echo x | sh")).status == "awaiting_approval"


def test_only_a_tool_judged_by_its_text_needs_a_host_rule(world: World) -> None:
    request = {"policy": "assistant", "profile": "coding", "cwd": "/work"}
    outcomes = {
        name: world.engine.check(
            "tool_call",
            {**request, "call": {"name": name, "arguments": {"command": f"curl {world.server.url()}"}}},
            AGENT,
        ).decision.outcome.value
        for name in ("shell", "sandbox_shell")
    }
    assert outcomes == {"shell": "confirm", "sandbox_shell": "allow"}


@pytest.mark.full
@needs("bubblewrap")
def test_a_run_that_is_refused_is_an_error_with_its_code(world: World) -> None:
    result = gate(world, profile="standard").call(call("echo x"))
    assert (result.status, result.code) == ("error", "egress_unsupported")


def test_it_runs_only_within_a_call_that_a_gate_has_permitted(world: World) -> None:
    with refused(WorkError, "engine.permit_missing"):
        SandboxShell(world.engine, AGENT, hosts=(HOST,)).sandbox_shell("true")


@needs("bubblewrap")
def test_the_output_of_a_run_with_a_fault_is_withheld(world: World, tmp_path: Path) -> None:
    class Late:
        decide = world.engine.decide

        def run_shell(self, text: str, **how: Any) -> Any:
            ran = world.engine.run_shell(text, **how)
            assert ran.ended is not None
            late = RecordError("the record cannot be written", remedy="free the disk")
            return replace(ran, answer=replace(ran.answer, fault=late))

    for shell in (
        SandboxShell(Late(), AGENT).sandbox_shell,
        ProjectShell(Late(), AGENT, folder=tmp_path).project_shell,
    ):
        with recording(Effects()), pytest.raises(RecordError):
            shell("echo x")

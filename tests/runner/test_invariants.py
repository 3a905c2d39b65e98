"""What must hold while a run is prepared: each breach ends it with words that say what to do."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from admission_adapters.tools.result import ToolResult
from engine.errors import WorkError
from engine.facts.run_request import WireRunRequest
from engine.points import Probed
from engine.points.runner_capability import CapabilityLimits
from engine.points.runner_request import CallLimit, RunnerLimits, SandboxLimit, ToolLimit
from engine.runner.harnesses import capabilities_of
from engine.runner.invariants import PREFIX, InvariantError
from engine.runner.plan import RunPlan, planned
from engine.runner.run import Listener, agreed

ROW = {"command": ["python3", "-c", ""], "custom_tools": "native"}
HERE = {"host": "runner", "profile": "harness"}
PROBED = Probed({"mcpTools": False, "toolCalls": True}, "probed")


def request(*tools: str) -> WireRunRequest:
    callback = {"endpoint": "https://gateway.example.com/tools/call"}
    wire = {"messages": [], "tools": [{"name": name, "kind": "gateway"} for name in tools], "tool_callback": callback}
    return WireRunRequest.model_validate_json(json.dumps(wire))


def limits(*tools: str) -> RunnerLimits:
    return RunnerLimits(
        harness="pi_core",
        harness_kwargs=(),
        model="",
        sandbox=SandboxLimit(backend="local", network="unrestricted", filesystem="undeclared", proven=()),
        permission_policy="ask",
        calls=CallLimit(policy="confirm_all", profile="coding"),
        tools=tuple(ToolLimit(name=name, kind="gateway", permission="ask") for name in tools),
        mcp_servers=(),
        endpoints=("https://gateway.example.com",),
    )


def plan(*tools: str) -> RunPlan:
    return planned(request(*tools), limits(*tools), ROW, HERE)


def broken(error: pytest.ExceptionInfo[InvariantError]) -> None:
    """It begins with the prefix, and ends with what to do."""
    assert error.value.message.startswith(f"{PREFIX} ")
    assert error.value.message.endswith(f": {error.value.remedy}")


# covers: D40.1
@pytest.mark.parametrize(("asked", "granted"), [(("a", "b"), ("a",)), (("a",), ("a", "b")), (("a", "a"), ("a", "a"))])
def test_a_plan_must_match_the_permitted_tools_without_duplicates(
    asked: tuple[str, ...], granted: tuple[str, ...]
) -> None:
    assert plan("a", "b").names == ["a", "b"]
    with pytest.raises(InvariantError) as error:
        planned(request(*asked), limits(*granted), ROW, HERE)
    broken(error)


# covers: D40.2
@pytest.mark.parametrize(
    "reported",
    [
        {},
        {"capabilities": None},
        {"capabilities": {"toolCalls": True}},
        {"capabilities": {"toolCalls": True, "mcpTools": "yes"}},
        {"capabilities": {"toolCalls": True, "mcpTools": 1}},
        {"capabilities": {"toolCalls": True, "mcpTools": True, "more": True}},
        {"capabilities": ["toolCalls", "mcpTools"]},
    ],
)
def test_a_probe_has_exactly_the_flags_as_booleans(reported: dict[str, Any]) -> None:
    assert capabilities_of({"capabilities": {"toolCalls": True, "mcpTools": False}})["toolCalls"] is True
    with pytest.raises(InvariantError) as error:
        capabilities_of(reported)
    broken(error)


# covers: D40.3
@pytest.mark.parametrize(
    "change", [{"tools": ("a",)}, {"harness": "claude"}, {"source": "static"}, {"source": "none"}], ids=str
)
def test_the_capability_gate_decides_on_this_run(change: dict[str, Any]) -> None:
    granted = CapabilityLimits(harness="pi_core", tools=("a", "b"), source="probed")
    agreed(plan("a", "b"), PROBED, granted)
    with pytest.raises(InvariantError) as error:
        agreed(plan("a", "b"), PROBED, granted.model_copy(update=change))
    broken(error)


def listener(*tools: str) -> Listener:
    """One that makes no calls."""
    calls: Any = None
    return Listener(plan(*tools), PROBED, calls, lambda _: None)


# covers: D40.4
@pytest.mark.parametrize(
    "say",
    [
        lambda one: one.started({"capabilities": {"toolCalls": False, "mcpTools": False}}),
        lambda one: one.advertised(["a"]),
        lambda one: one.advertised(["a", "b", "c"]),
        lambda one: one.advertised(["b", "a"]),
        lambda one: one.advertised(None),
        lambda one: one.called("a", {}),
        lambda one: one.ended(),
    ],
    ids=["less able", "fewer", "more", "others", "none", "called unseen", "never shown"],
)
def test_a_harness_must_match_its_probe_and_advertise_tools_before_calls(say: Any) -> None:
    good = listener("a", "b")
    good.started({"capabilities": {"toolCalls": True, "mcpTools": True}})
    good.advertised(["a", "b"])
    good.ended()
    with pytest.raises(InvariantError) as error:
        say(listener("a", "b"))
    broken(error)


def test_a_relayed_call_waits_for_the_advertised_tools() -> None:
    one = listener("a")
    calls: Any = SimpleNamespace(made=lambda *_: ToolResult("ok", "done"))
    one.calls = calls

    class Late(threading.Event):
        """The harness advertises its tools during the wait."""

        def wait(self, timeout: float | None = None) -> bool:
            one.advertised(["a"])
            return super().wait(timeout)

    one.tools_advertised = Late()
    assert one.relayed("a", {}) == ("done", False)


@pytest.mark.parametrize(
    ("row", "place", "words"),
    [
        ({**ROW, "command": []}, HERE, "the harness `pi_core` is not installed here"),
        (ROW, {"host": "runner"}, "this runner cannot run on the backend `local`"),
        (ROW, {"host": "remote", "platform": "https://platform.example.com"}, "the tool `a` cannot be called from"),
    ],
)
def test_an_unsupported_run_is_refused_with_a_reason(row: dict[str, Any], place: dict[str, Any], words: str) -> None:
    with pytest.raises(WorkError, match=words):
        planned(request("a"), limits("a"), row, place)

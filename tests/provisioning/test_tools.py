"""A provisioned agent that calls tools, by its id: those that a person approved for it, until it is ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from engine.settings import Settings
from tests.expect import there
from tests.provisioning.agents import ANA, mounted, specification

SCOPE = {"policy": "confirm_all", "profile": "coding"}


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, points=frozenset({"provisioning", "tool_call", "tool_visibility"})) as running:
        yield running


def called(engine: Engine, name: str, tool: str) -> tuple[str, list[str]]:
    """The outcome of a call by this caller, and what refuses it."""
    context = Context(caller=Caller(via=Via.TOKEN, principal=name, points=("tool_call", "tool_visibility")))
    request = {"call": {"name": tool, "arguments": {"path": "a.txt"}}, **SCOPE, "cwd": "/work"}
    decision = engine.decide("tool_call", request, context=context).decision
    return decision.outcome.value, [one.code for one in decision.findings if one.level.value == "deny"]


def seen(engine: Engine, name: str) -> list[str]:
    """The tools that this caller is shown."""
    context = Context(caller=Caller(via=Via.TOKEN, principal=name, points=("tool_call", "tool_visibility")))
    decision = engine.decide(
        "tool_visibility", {**SCOPE, "tools": ["files_read", "files_write"]}, context=context
    ).decision
    return list(getattr(decision.limits, "visible", ()))


# covers: E13.2
def test_an_agent_has_the_tools_that_a_person_approved_until_it_is_ended(engine: Engine) -> None:
    agent = mounted(engine, specification(tools=["files_read"]))
    assert called(engine, agent, "files_read") == ("confirm", [])
    assert called(engine, agent, "files_write") == ("deny", ["agent_tool_not_approved"])
    assert seen(engine, agent) == ["files_read"]
    assert engine.administer({"act": "end_agent", "id": agent}, ANA).done is not None
    assert called(engine, agent, "files_read") == ("deny", ["agent_inactive"])
    assert seen(engine, agent) == []
    for other in ("pipeline", "0" * 32):  # the control: callers that are no agents
        assert called(engine, other, "files_write") == ("confirm", [])
        assert seen(engine, other) == ["files_read", "files_write"]


def test_a_replayed_allow_is_stale_after_the_agent_ends(engine: Engine) -> None:
    agent = mounted(engine, specification(name="short_lived", tools=["files_read"]))
    caller = Caller(via=Via.TOKEN, principal=agent, points=("tool_visibility",))
    context = Context(caller=caller, idempotency_key="once")
    asked = {**SCOPE, "tools": ["files_read"]}
    assert engine.decide("tool_visibility", asked, context=context).fault is None
    engine.administer({"act": "end_agent", "id": agent}, ANA)
    again = engine.decide("tool_visibility", asked, context=context)
    assert (again.decision.limits, there(again.fault).code) == (None, "engine.idempotency_stale")

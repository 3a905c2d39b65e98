"""The gate in the OpenAI Agents SDK: a person's word is for one call."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from engine.engine import Engine
from tests.frameworks.office import SCHEMA, office
from tests.frameworks.test_gate import PERSON, engine, gate_of

pytest.importorskip("agents", reason="NOT TRIED, the package is not installed: install the extra")

__all__ = ["engine"]


@pytest.mark.parametrize("always", [False, True])
def test_only_an_approval_of_a_single_call_counts(engine: Engine, always: bool) -> None:  # noqa: FBT001
    from agents import Agent, FunctionTool, RunContextWrapper
    from agents.items import ToolApprovalItem
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseFunctionToolCall

    from admission_adapters.frameworks.openai_agents import gated

    ask, run = office()["ask"], RunContextWrapper[Any](None)

    async def invoke(_: Any, text: str) -> str:
        return ask.run(**json.loads(text))

    (tool,) = gated(gate_of(engine, PERSON), [FunctionTool(ask.name, ask.description, SCHEMA, invoke)])
    assert isinstance(tool, FunctionTool)

    def call(text: str) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(
            type="function_call", call_id=text, name=ask.name, arguments=json.dumps({"text": text})
        )

    run.approve_tool(ToolApprovalItem(Agent(name="agent"), call("seen")), always_approve=always)
    for text in ("seen", "unseen"):
        context = ToolContext.from_agent_context(run, text, call(text))
        asyncio.run(tool.on_invoke_tool(context, call(text).arguments))  # type: ignore[arg-type]
    assert ask.ran == ([] if always else ["seen"])


def test_no_run_is_interrupted_if_nobody_can_approve(engine: Engine) -> None:
    """The SDK interrupts it for arguments that a function cannot look at, such as an empty text."""
    from agents import Agent, FunctionTool, RunContextWrapper
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseFunctionToolCall

    from admission_adapters.frameworks.openai_agents import gated

    clock, run = office()["clock"], RunContextWrapper[Any](None)

    async def invoke(_: Any, text: str) -> str:
        return clock.run(**json.loads(text))

    for stated in (True, False):
        own = FunctionTool(clock.name, clock.description, SCHEMA, invoke, needs_approval=stated)
        (tool,) = gated(gate_of(engine), [own])
        assert isinstance(tool, FunctionTool)
        assert tool.needs_approval is stated
        for text, code in (("", "arguments_unfit"), ("{", "arguments_unreadable")):
            call = ResponseFunctionToolCall(type="function_call", call_id="1", name=clock.name, arguments=text)
            context = ToolContext.from_agent_context(run, "1", call, Agent(name="agent"))
            assert code in asyncio.run(tool.on_invoke_tool(context, text))  # type: ignore[arg-type]
    assert clock.ran == []

"""Tools of the OpenAI Agents SDK behind the gate.

    agent = Agent(name="assistant", tools=gated(gate, [search, send]))

With an `approver` at the gate, a call that waits for a person is an interruption of the run; `state.approve(…)` is that
answer, for this call: with `always_approve` it approves none, because the person did not see the others. The
conversation is the `group_id` of the RunConfig, if it has one. Servers of MCP go behind `engine mcp proxy`; hosted
tools run elsewhere, where no gate is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any
from uuid import uuid4

from admission_adapters.extras import not_installed
from admission_adapters.frameworks.gate import AgentGate
from engine.errors import WorkError

try:
    from agents import FunctionTool, Tool
except ImportError as missing:
    raise not_installed("the OpenAI Agents SDK is", "openai-agents", "engine.framework_unavailable") from missing


def gated(gate: AgentGate, tools: Sequence[Tool]) -> list[Tool]:
    """These function tools behind the gate. Raises WorkError for a tool that does not run here."""
    return [_gated(gate, tool) for tool in tools]


def _gated(gate: AgentGate, tool: Tool) -> Tool:
    if not isinstance(tool, FunctionTool):
        raise WorkError(
            f"the tool `{tool.name}` does not run here, so no gate can be in front of it",
            remedy="use a function tool, or leave it out",
            code="engine.tool_not_local",
        )
    definition = {"name": tool.name, "description": tool.description, "input_schema": tool.params_json_schema}

    def call(arguments: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": tool.name, "arguments": arguments}}

    async def invoke(context: Any, arguments: str) -> Any:
        reply = await gate.call_async(
            call(arguments),
            lambda decided: tool.on_invoke_tool(context, json.dumps(decided)),
            definition=definition,
            run=_conversation(context),
            approved=_approved(context, tool.name),
        )
        return reply.value

    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        own = await _holds(tool.needs_approval, context, arguments, call_id)
        return own or await gate.asks_async(
            call(json.dumps(arguments)), definition=definition, run=_conversation(context)
        )

    async def is_visible(context: Any, agent: Any) -> bool:
        own = await _holds(tool.is_enabled, context, agent)
        return own and tool.name in await gate.visible_tools_async([definition])

    # the SDK interrupts the run for every call that a function cannot look at, such as one without arguments
    asking = tool.needs_approval if gate.approver is None else needs_approval
    return replace(tool, on_invoke_tool=invoke, needs_approval=asking, is_enabled=is_visible)


async def _holds(stated: Any, *arguments: Any) -> bool:
    """A condition of the SDK: a truth value, or a function that may be async."""
    value = stated(*arguments) if callable(stated) else stated
    return bool(await value if isawaitable(value) else value)


def _approved(context: Any, name: str) -> bool:
    """Whether a person said yes to exactly this call, and not to any that the tool may ever get."""
    approved, any_call = (context.is_tool_approved(name, one) is True for one in (context.tool_call_id, uuid4().hex))
    return approved and not any_call


def _conversation(context: Any) -> str | None:
    group: str | None = getattr(getattr(context, "run_config", None), "group_id", None)
    return group

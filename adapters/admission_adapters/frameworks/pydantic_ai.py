"""Tools of pydantic-ai behind the gate.

    agent = Agent(model, toolsets=[GatedToolset(FunctionToolset([search, send]), gate)])

It takes any toolset, also one of an MCP server. With an `approver` at the gate, a call that waits for a person ends the
run with DeferredToolRequests, and an approval in DeferredToolResults is that person's word; the `output_type` has to
name DeferredToolRequests. The conversation is `conversation_id`. What an agent gets by other ways (`@agent.tool`, tools
of the model's vendor) has no gate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from admission_adapters.extras import not_installed
from admission_adapters.frameworks.gate import AgentGate
from admission_adapters.tools.outcome import ToolValidationError

try:
    from pydantic_ai import ModelRetry
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
    from pydantic_ai.toolsets import WrapperToolset
    from pydantic_core import to_jsonable_python
except ImportError as missing:
    raise not_installed("pydantic-ai is", "pydantic-ai", "engine.framework_unavailable") from missing

_RETRY = "model_retry"


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """A toolset behind the gate. Tools that others execute (`external`) are left out."""

    gate: AgentGate

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        """The tools that may be shown."""
        tools = await super().get_tools(ctx)
        here = {name: tool for name, tool in tools.items() if tool.tool_def.kind != "external"}
        visible = await self.gate.visible_tools_async([_definition(tool) for tool in here.values()])
        return {name: tool for name, tool in here.items() if name in visible}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Decide on a call, make it, decide on its result."""
        call = super().call_tool
        plain = to_jsonable_python(tool_args)

        async def make(decided: Mapping[str, Any]) -> Any:
            try:
                typed = decided if plain == tool_args else tool.args_validator.validate_json(json.dumps(decided))
                return await call(name, dict(typed), ctx, tool)
            except ModelRetry as retry:
                raise ToolValidationError(_RETRY, retry.message) from retry

        reply = await self.gate.call_async(
            {"name": name, "arguments": plain},
            make,
            definition=_definition(tool),
            run=ctx.conversation_id,
            approved=ctx.tool_call_approved,
            passing=(ApprovalRequired, CallDeferred),
        )
        if reply.waits and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"codes": list(reply.result.metadata["codes"])})
        if reply.result.code == _RETRY:
            raise ModelRetry(reply.value)
        return reply.value


def _definition(tool: Any) -> dict[str, Any]:
    stated = tool.tool_def
    return {"name": stated.name, "description": stated.description, "input_schema": stated.parameters_json_schema}

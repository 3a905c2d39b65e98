"""Tools of LangChain and LangGraph behind the gate.

    agent = create_agent(model, tools, middleware=[GateMiddleware(gate)], checkpointer=InMemorySaver())
    node = ToolNode(tools, wrap_tool_call=middleware.wrap_tool_call, awrap_tool_call=middleware.awrap_tool_call)

With an `approver` at the gate, a call that waits for a person is an interrupt; `Command(resume="approve")` is that
person's word, anything else refuses. The conversation is the `thread_id`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from admission_adapters.extras import not_installed
from admission_adapters.frameworks.gate import AgentGate, GateReply
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.result import NOT_APPROVED

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command, interrupt
except ImportError as missing:
    raise not_installed("LangChain and LangGraph are", "langgraph", "engine.framework_unavailable") from missing

APPROVE = "approve"


class GateMiddleware(AgentMiddleware):
    """The gate around every tool call of an agent; put it first. Tools of a vendor are left out of requests."""

    def __init__(self, gate: AgentGate) -> None:
        super().__init__()
        self._gate = gate

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Offer the tools that may be shown."""
        return handler(_offering(request, self._gate.visible_tools(_definitions(request.tools))))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` on an event loop."""
        return await handler(_offering(request, await self._gate.visible_tools_async(_definitions(request.tools))))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Decide on a call, make it, decide on its result."""
        tool_call = _ToolCall(request)

        def make(arguments: dict[str, Any]) -> Any:
            return tool_call.contents(handler(tool_call.request(arguments)))

        reply = self._gate.call(tool_call.call, make, **tool_call.about)
        if reply.waits and _approved(tool_call, reply):
            reply = self._gate.call(tool_call.call, make, **tool_call.about, approved=True)
        return tool_call.answer(reply)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` on an event loop."""
        tool_call = _ToolCall(request)

        async def make(arguments: dict[str, Any]) -> Any:
            return tool_call.contents(await handler(tool_call.request(arguments)))

        reply = await self._gate.call_async(tool_call.call, make, **tool_call.about)
        if reply.waits and _approved(tool_call, reply):
            reply = await self._gate.call_async(tool_call.call, make, **tool_call.about, approved=True)
        return tool_call.answer(reply)


class _ToolCall:
    """A call as LangGraph asks for it, and the output of its tool."""

    def __init__(self, request: Any) -> None:
        self._request: Any = request
        self._output: Any = None
        self._contents: Any = None
        self.call = {"name": request.tool_call["name"], "arguments": request.tool_call["args"]}
        thread = request.runtime.config.get("configurable", {}).get("thread_id")
        self.about: dict[str, Any] = {
            "definition": None if request.tool is None else convert_to_openai_tool(request.tool),
            "run": None if thread is None else str(thread),
            "passing": (GraphBubbleUp,),
        }

    def request(self, arguments: dict[str, Any]) -> Any:
        """The request, with the arguments that were decided on."""
        return self._request.override(tool_call={**self._request.tool_call, "args": arguments})

    def contents(self, output: Any) -> Any:
        """What the model would get of an output: the content of its message, or of several."""
        found = [message.content for message in _messages(output)]
        self._output, self._contents = output, found[0] if len(found) == 1 else found
        return self._contents

    def answer(self, reply: GateReply) -> Any:
        """The output, with what is left of its contents; a message with the reason if there is nothing."""
        if reply.ok and reply.value is self._contents:
            return self._output
        messages = _messages(self._output) if reply.ok else []
        left = [reply.value] if len(messages) == 1 else reply.value
        if reply.ok and isinstance(left, list) and len(left) == len(messages):
            return _replaced(self._output, dict(zip(map(id, messages), left, strict=True)))
        text = NOT_APPROVED if reply.waits else reply.result.model_text
        call = self._request.tool_call
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")


def _approved(tool_call: _ToolCall, reply: GateReply) -> bool:
    """The word of the person, for whom the graph stops here."""
    return bool(interrupt({**tool_call.call, "codes": list(reply.result.metadata["codes"])}) == APPROVE)


def _messages(output: Any) -> list[Any]:
    """The messages of an output. Raises ToolValidationError for one that may have others."""
    if isinstance(output, ToolMessage):
        return [output]
    update = output.update if isinstance(output, Command) else ()
    if update is None:
        return []
    if isinstance(update, Mapping) and isinstance(found := update.get("messages", []), list):
        return [one for one in found if hasattr(one, "content")]
    raise ToolValidationError("result_unsupported", "the tool has to return a message, or a Command with a mapping")


def _replaced(output: Any, contents: Mapping[int, Any]) -> Any:
    """The output with other contents of its messages."""

    def changed(message: Any) -> Any:
        return message.model_copy(update={"content": contents[id(message)]}) if id(message) in contents else message

    if isinstance(output, ToolMessage):
        return changed(output)
    return replace(output, update={**output.update, "messages": [*map(changed, output.update["messages"])]})


def _definitions(tools: Sequence[Any]) -> list[dict[str, Any]]:
    return [convert_to_openai_tool(tool) for tool in tools if isinstance(tool, BaseTool)]


def _offering(request: Any, visible: frozenset[str]) -> Any:
    return request.override(tools=[tool for tool in request.tools if getattr(tool, "name", None) in visible])

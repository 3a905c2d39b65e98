"""Tools of Claude's Agent SDK behind the gate: those of the command line, of MCP servers and of the program itself.

    claude = ClaudeGate(gate)
    options = ClaudeAgentOptions(
        hooks=claude.hooks, mcp_servers={"office": await claude.server("office", [search, send])}
    )

A call is decided on before the command line makes it, and its result before the model gets it. With an `approver` at
the gate and `can_use_tool=claude.can_use_tool(person)`, a call that waits for a person is asked about by that function;
without it, such a call is denied, because the command line would make it on anyone's word. The conversation is the
session. The text of a tool's error is shown as it is: the SDK has no hook that can change it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from admission_adapters.extras import not_installed
from admission_adapters.frameworks.gate import AgentGate, GateReply
from admission_adapters.tools.result import NOT_APPROVED

try:
    from claude_agent_sdk import HookMatcher, PermissionResultAllow, PermissionResultDeny, create_sdk_mcp_server
    from mcp import Client
except ImportError as missing:
    raise not_installed("Claude's Agent SDK is", "claude-agent-sdk", "engine.framework_unavailable") from missing

_SECONDS = 3_600
"""How long the command line waits for a decision: longer than any."""

_NO_DECISION = "the result is withheld: there is no decision on this call"

Person = Callable[[str, dict[str, Any], Any], Awaitable[bool]]
"""Asks a person about a tool, its arguments and the SDK's context."""


class _ToolFailedError(Exception):
    """What the command line reports of a tool that failed."""


class ClaudeGate:
    """The gate for the sessions of one client, on one event loop."""

    def __init__(self, gate: AgentGate) -> None:
        self._gate = gate
        self._definitions: dict[str, dict[str, Any]] = {}
        self._running: dict[str, tuple[asyncio.Task[GateReply], asyncio.Future[Any]]] = {}
        self._waiting: dict[str, str | None] = {}
        self._listens = False

    @property
    def hooks(self) -> dict[Any, list[HookMatcher]]:
        """The hooks of ClaudeAgentOptions, for every tool."""
        found: dict[str, Any] = {
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "PostToolUseFailure": self._failed,
        }
        return {event: [HookMatcher(matcher=None, hooks=[hook], timeout=_SECONDS)] for event, hook in found.items()}

    async def server(self, name: str, tools: Sequence[Any]) -> Any:
        """A server of the SDK with those of these tools that may be shown."""
        whole = create_sdk_mcp_server(name, tools=[*tools])
        async with Client(whole["instance"]) as client:  # what the command line will see of them
            listed = (await client.list_tools()).tools
        definitions = [
            one.model_dump(by_alias=True, exclude_none=True, mode="json") | {"name": f"mcp__{name}__{one.name}"}
            for one in listed
        ]
        visible = await self._gate.visible_tools_async(definitions)
        self._definitions |= {one["name"]: one for one in definitions}
        return create_sdk_mcp_server(name, tools=[tool for tool in tools if f"mcp__{name}__{tool.name}" in visible])

    def can_use_tool(self, person: Person) -> Any:
        """The function of ClaudeAgentOptions that asks this person."""

        async def decide_use(name: str, arguments: dict[str, Any], context: Any) -> Any:
            use = context.tool_use_id
            if not await person(name, arguments, context):
                self._waiting.pop(use, None)
                return PermissionResultDeny(message=NOT_APPROVED)
            if use in self._waiting:
                reply = await self._begin(use, name, arguments, self._waiting.pop(use), approved=True)
                if reply is not None:
                    return PermissionResultDeny(message=NOT_APPROVED if reply.waits else reply.result.model_text)
            elif use not in self._running:
                return PermissionResultDeny(message=_NO_DECISION)
            return PermissionResultAllow()

        self._listens = True
        return decide_use

    async def _begin(
        self, use: str, name: str, arguments: Any, session: str | None, *, approved: bool = False
    ) -> GateReply | None:
        """What the model gets for a refused call; None if the tool may run, and its call waits for the result."""
        loop = asyncio.get_running_loop()
        allowed: asyncio.Future[None] = loop.create_future()
        result: asyncio.Future[Any] = loop.create_future()

        async def make(_: dict[str, Any]) -> Any:
            allowed.set_result(None)
            return await result

        call = {"name": name, "arguments": arguments}
        definition = self._definitions.get(name)
        made = self._gate.call_async(call, make, definition=definition, run=session, approved=approved)
        task = asyncio.ensure_future(made)
        await asyncio.wait((allowed, task), return_when=asyncio.FIRST_COMPLETED)
        if not allowed.done():
            return task.result()
        self._running[use] = task, result
        return None

    async def _before(self, event: Any, _: str | None, __: Any) -> dict[str, Any]:
        use, session = event["tool_use_id"], event.get("session_id")
        try:
            reply = await self._begin(use, event["tool_name"], event["tool_input"], session)
        except Exception:  # noqa: BLE001  (what a hook raises refuses nothing)
            return _decided("deny", "this call is refused: engine.internal")
        if reply is None:
            return _decided("allow", "allowed by the tool policy")
        asks = reply.waits and self._listens
        if asks:
            self._waiting[use] = session
        return _decided("ask" if asks else "deny", reply.result.model_text)

    async def _after(self, event: Any, _: str | None, __: Any) -> dict[str, Any]:
        output = event.get("tool_response")
        task, result = self._running.pop(event["tool_use_id"], (None, None))
        try:
            if task is None or result is None:
                return _instead(_words(output, _NO_DECISION))
            if not result.done():
                result.set_result(output)
            reply = await task
        except Exception:  # noqa: BLE001
            return _instead(_words(output, _NO_DECISION))
        if reply.value is output:
            return {}
        return _instead(reply.value if reply.ok else _words(output, reply.result.model_text))

    async def _failed(self, event: Any, _: str | None, __: Any) -> dict[str, Any]:
        task, result = self._running.pop(event["tool_use_id"], (None, None))
        if task is not None and result is not None and not result.done():
            result.set_exception(_ToolFailedError(str(event.get("error", ""))))
            await task
        return {}


def _decided(word: str, reason: str) -> dict[str, Any]:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": specific}


def _instead(output: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}


def _words(output: Any, text: str) -> Any:
    """A result of the same shape with this text in place of each other, because the SDK takes no other shape."""
    if isinstance(output, dict):
        return {key: value if key == "type" else _words(value, text) for key, value in output.items()}
    if isinstance(output, list):
        return [_words(one, text) for one in output]
    return text if isinstance(output, str) else output

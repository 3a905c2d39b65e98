"""The MCP server in front of an adapter, by the official SDK: `tools/list` and `tools/call`, and nothing else.

The SDK (extra `mcp`) is imported in this folder only. This file opens no connection: its caller provides the streams.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from admission_adapters.extras import not_installed
from admission_adapters.shim.host import AdapterAnswer, AdapterHost
from admission_adapters.shim.tools import CALL, LIST

try:
    import anyio
    import mcp_types as types
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
except ImportError as missing:
    raise not_installed("the MCP adapter needs packages that are", "mcp", "engine.mcp_unavailable") from missing

APPROVAL = "admission-engine/approval"
"""The key of `_meta` in which a client repeats a call with the id of its approval."""

_AT_ONCE = 8
"""Calls that run at the same time, each in a thread; others wait."""

_SCHEMAS = ("input_schema", "inputSchema", "parameters")


def mcp_server(host: AdapterHost, name: str, version: str) -> Server[Any]:
    """A server of the SDK for any transport, such as `mcp.Client(server)` in process."""
    threads = anyio.CapacityLimiter(_AT_ONCE)

    async def ask(*arguments: Any) -> AdapterAnswer:
        return await anyio.to_thread.run_sync(partial(host.call, *arguments), limiter=threads)

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        answer = await ask(LIST)
        if answer.status != "ok":  # an empty list would look like the answer
            raise MCPError(types.INVALID_REQUEST, f"the list of tools is refused: {_reason(answer)}")
        return types.ListToolsResult(tools=[_tool(one) for one in answer.content])

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        approval = (params.meta or {}).get(APPROVAL)
        answer = await ask(CALL, params.name, params.arguments, approval)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=_text(answer))], is_error=answer.status != "ok"
        )

    return Server(name, version=version, on_list_tools=list_tools, on_call_tool=call_tool)


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on standard input and output until it closes them."""

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)


def _tool(definition: dict[str, Any]) -> types.Tool:
    """A definition as MCP writes it; what else a definition has stays here."""
    stated = definition.get("function", definition)
    schema = next((stated[name] for name in _SCHEMAS if name in stated), {"type": "object"})
    return types.Tool(name=stated["name"], description=stated.get("description"), input_schema=schema)


def _text(answer: AdapterAnswer) -> str:
    """The content, or why there is none."""
    return _reason(answer) if answer.status == "rejected" else str(answer.content)


def _reason(answer: AdapterAnswer) -> str:
    """The code of a rejection or refusal, and the terms that failed."""
    return f"{answer.code}: {', '.join(answer.details)}" if answer.details else str(answer.code)

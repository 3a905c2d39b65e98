"""What is asked about MCP servers: which ones, when, and what they list. The shape of a server is that of a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from engine.facts.run_request import MOST_SERVERS, McpServer, Wire
from engine.model import Object

MOST_DEFINITIONS = 1_000
"""Tools of one server that are looked at; what lists more is refused."""


class ListedServer(McpServer):
    """An MCP server, and what it lists: the result of `tools/list`, or a list of definitions."""

    definitions: Object | Annotated[list[Any], Field(max_length=10_000)] | None = None


class McpRequest(Wire):
    """Ask about MCP servers when a run is planned, when they are delivered, or when their tools are listed."""

    phase: Literal["plan", "delivery", "list"]
    servers: Annotated[tuple[ListedServer, ...], Field(max_length=MOST_SERVERS)] = Field(
        validation_alias=AliasChoices("servers", "mcp_servers", "mcpServers")
    )

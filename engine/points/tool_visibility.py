"""Point `tool_visibility`: which of these tools the prompt of an agent may show.

A tool that may not be shown is a finding and not in the limits; this does not refuse the request, so that
an agent without any tool continues without tools (B01).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from engine.documents.files import counted
from engine.facts.text.content import steering_in
from engine.facts.text.instructions import Markers
from engine.facts.tools.calls import LONGEST_NAME
from engine.facts.tools.definitions import UnreadableDefinitionError, definition_of
from engine.model import TOOL_NAME, Caller, Digest, Limits, Line, Model, Object
from engine.points import FactsFromState, GatherContext, Gathered, Point
from engine.points.episode import calling_agent, may_be_agent

if TYPE_CHECKING:
    from engine.state.store import Store

Name = Annotated[str, Field(max_length=LONGEST_NAME)]
MOST_TOOLS = 2_000

Listed = Annotated[list[Name | Object], Field(max_length=MOST_TOOLS)]
"""Names of tools, and definitions as their servers and providers write them."""


class McpListing(Model):
    """The result of MCP's `tools/list`; further pages are requested one by one."""

    tools: Annotated[list[Object], Field(max_length=MOST_TOOLS)]
    next_cursor: Line | None = Field(default=None, alias="nextCursor")
    meta: Object | None = Field(default=None, alias="_meta")


class McpAnswer(Model):
    """The same, with JSON-RPC around it."""

    jsonrpc: Literal["2.0"]
    id: Line | int
    result: McpListing


def _form(tools: Any) -> str:
    """Which form of a list was meant."""
    if isinstance(tools, McpAnswer) or (isinstance(tools, Mapping) and "jsonrpc" in tools):
        return "answer"
    return "listing" if isinstance(tools, (McpListing, Mapping)) else "list"


class VisibilityRequest(Model):
    """The tools to show under a tool policy and a profile."""

    policy: Name | None = None
    profile: Name | None = None
    tools: Annotated[
        Annotated[Listed, Tag("list")] | Annotated[McpListing, Tag("listing")] | Annotated[McpAnswer, Tag("answer")],
        Discriminator(_form),
    ]


class ToolScope(Model):
    """Under which tool policy and profile."""

    policy: str | None = None
    profile: str | None = None


class ListedTool(Model):
    """One listed tool; without a name if the name is missing or unreadable. `occurrences`: how often it is listed.

    `hidden` and `instructions` count what its definition has of both; a name alone has none.
    """

    id: str
    name: str | None = None
    occurrences: int
    definition_digest: Digest | None = None
    hidden: int
    instructions: int


class VisibilityInput(Model):
    """What OPA sees of a list of tools."""

    context: ToolScope
    tools: tuple[ListedTool, ...]


class VisibilityLimits(Limits):
    """The names of the tools that may be shown."""

    visible: tuple[str, ...]


def gather(request: VisibilityRequest, context: GatherContext) -> Gathered:
    """Bring the list into its one form."""
    tools = [_read(one, context.lookups.markers) for one in _listed(request.tools)]
    occurrences = Counter(name for name, *_ in tools)
    gathered = VisibilityInput(
        context=ToolScope(policy=request.policy, profile=request.profile),
        tools=tuple(
            ListedTool(
                id=f"#{number}" if name is None else name,
                name=name,
                occurrences=occurrences[name],
                definition_digest=digest,
                hidden=hidden,
                instructions=instructions,
            )
            for number, (name, digest, hidden, instructions) in enumerate(tools)
        ),
    )
    return Gathered(gathered, f"{counted(len(tools), 'tool')} to show", state=_agent, asks_state=may_be_agent)


def _agent(store: Store, caller: Caller) -> FactsFromState:
    return {"agents": calling_agent(store, caller)}


def _listed(tools: Listed | McpListing | McpAnswer) -> Listed:
    if isinstance(tools, McpAnswer):
        tools = tools.result
    return [*tools.tools] if isinstance(tools, McpListing) else tools


def _read(tool: str | dict[str, Any], markers: Markers) -> tuple[str | None, str | None, int, int]:
    """The name of a tool, the digest of its definition, and what steers a model in it; no name if it is unreadable."""
    if isinstance(tool, str):
        return _plain(tool), None, 0, 0
    try:
        found = definition_of(tool)
        return _plain(found.name), found.digest(), *steering_in(found.document(), markers)
    except UnreadableDefinitionError:
        return None, None, 0, 0


def _plain(name: str) -> str | None:
    return name if TOOL_NAME.fullmatch(name) else None


POINT = Point("tool_visibility", VisibilityRequest, VisibilityInput, VisibilityLimits, gather)

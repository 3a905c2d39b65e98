"""Inputs about tools: a call in any format, its policy and profile, a list of definitions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.inputs import content
from engine.documents.files import printable
from engine.errors import GatherError, Location

if TYPE_CHECKING:
    from engine.facts.tools.definitions import Definition

ToolPolicy = Annotated[str | None, typer.Option(metavar="NAME", help="The agent's tool policy in policy/tools.yaml.")]
Profile = Annotated[str | None, typer.Option(metavar="NAME", help="The agent's profile.")]
WorkingFolder = Annotated[
    str | None, typer.Option(metavar="DIR", help="Working folder of the call, as an absolute path.")
]
HomeFolder = Annotated[
    str | None, typer.Option(metavar="DIR", help="Home folder of the user who runs commands: what `~` is in them.")
]
Input = Annotated[
    Path | None,
    options.read(help="Call in the format of a model provider, MCP, LangChain or this engine; - reads standard input."),
]


def request(tool_call: Any, policy: str | None, profile: str | None, cwd: str | None, home: str | None) -> Any:
    """A request of point `tool_call`: made from a bare call, or the given one, completed from the options.

    Raises GatherError if an option contradicts it.
    """
    whole = isinstance(tool_call, Mapping) and "call" in tool_call
    made: dict[str, Any] = dict(tool_call) if whole else {"call": tool_call}
    for name, value in (("policy", policy), ("profile", profile), ("cwd", cwd), ("home", home)):
        if value is None:
            continue
        if made.setdefault(name, value) != value:
            raise GatherError(
                f"the request and the option have different values for `{name}`",
                remedy=f"remove `{name}` from the request, or omit the option",
            )
    return made


def demand_call_of(tool_call: Any, tool: str) -> None:
    """Raises GatherError where a call is one of another tool."""
    call = tool_call.get("call", tool_call) if isinstance(tool_call, Mapping) else None
    inner = [call.get(key) for key in ("function", "params")] if isinstance(call, Mapping) else []
    for one in (call, *inner):
        if isinstance(one, Mapping) and isinstance(name := one.get("name"), str) and name != tool:
            raise GatherError(
                f"the call names the tool `{printable(name, 128)}`", remedy="name that tool, or use another call"
            )


def definitions_in(file: Path) -> tuple[Definition, ...]:
    """The definitions of a list of tools. Raises GatherError."""
    from engine.facts.tools.definitions import UnreadableDefinitionError, listing_of

    try:
        return listing_of(content(file))[0]
    except UnreadableDefinitionError as error:
        raise GatherError(
            f"the list of tools cannot be read: {error}",
            remedy="pass the result of tools/list, or a list of definitions, as JSON",
            where=Location(str(file)),
        ) from error


def listed_names(file: Path, server: str | None) -> list[str]:
    """The names by which agents would call the tools of a file; those of an MCP server have its id in them.

    Raises GatherError.
    """
    from engine.facts.tools.mcp_names import local_name

    found = [one.name for one in definitions_in(file)]
    return found if server is None else [local_name(server, name) for name in found]

"""Definitions of tools in a file: a tools/list result of MCP, or a list as model providers take it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.tool_requests import content
from engine.errors import GatherError, Location

if TYPE_CHECKING:
    from engine.facts.tool_definitions import Listing


def listing(file: Path) -> Listing:
    """All definitions of a file. Raises GatherError."""
    from engine.facts.tool_definitions import UnreadableDefinitionError, listing_of

    try:
        return listing_of(content(file))
    except UnreadableDefinitionError as error:
        raise GatherError(
            f"this is not a list of tools: {error}",
            remedy="give the result of tools/list, or a list of definitions, as JSON",
            where=Location(str(file)),
        ) from error


def names(file: Path, server: str | None) -> list[str]:
    """The names by which agents would call the tools of a file; those of an MCP server have its id in them."""
    from engine.facts.mcp_names import local_name

    found = [one.name for one in listing(file).definitions]
    return found if server is None else [local_name(server, name) for name in found]

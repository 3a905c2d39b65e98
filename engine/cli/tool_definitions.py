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
            f"this is no list of tools: {error}",
            remedy="give the result of tools/list, or a list of definitions, as JSON",
            where=Location(str(file)),
        ) from error


def names(file: Path) -> list[str]:
    """The names of the tools of a file."""
    return [one.name for one in listing(file).definitions]

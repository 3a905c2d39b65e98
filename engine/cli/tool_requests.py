"""Calls of tools as people give them: a file with a call in any shape, who asks, under which policy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.errors import GatherError
from engine.files import shown

ToolPolicy = Annotated[
    str | None,
    typer.Option("--tool-policy", metavar="NAME", help="The agent's tool policy in policy/tools.yaml."),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="The agent's profile.")]
WorkingFolder = Annotated[
    str | None, typer.Option("--cwd", metavar="DIR", help="Working folder of the call, as an absolute path.")
]
Input = Annotated[
    Path | None,
    typer.Option(
        "-i",
        "--input",
        metavar="FILE",
        help="Call in OpenAI, Anthropic, MCP or engine format; - reads standard input.",
    ),
]


def content(file: Path) -> Any:
    """What a file, or standard input, holds as plain JSON. Raises GatherError."""
    from engine.files import load, read_bytes
    from engine.settings import ReadLimits

    limits = ReadLimits()
    if str(file) == "-":
        return load(sys.stdin.buffer.read(limits.document_bytes + 1), "standard input", limits).value
    return load(read_bytes(file, limits.document_bytes), str(file), limits).value


def request(given: Any, policy: str | None, profile: str | None, cwd: str | None) -> Any:
    """A request of point `tool_call`: around a bare call, or the whole one that was given, with the options filled in.

    Raises GatherError where an option contradicts it.
    """
    whole = isinstance(given, Mapping) and "call" in given
    made: dict[str, Any] = dict(given) if whole else {"call": given}
    for name, value in (("policy", policy), ("profile", profile), ("cwd", cwd)):
        if value is None:
            continue
        if made.setdefault(name, value) != value:
            raise GatherError(
                f"the request states another `{name}` than the option",
                remedy=f"leave out one of them: `{name}` of the request, or the option",
            )
    return made


def named(given: Any, tool: str) -> None:
    """Raises GatherError where a call is one of another tool."""
    call = given.get("call", given) if isinstance(given, Mapping) else None
    inner = [call.get(key) for key in ("function", "params")] if isinstance(call, Mapping) else []
    for one in (call, *inner):
        if isinstance(one, Mapping) and isinstance(name := one.get("name"), str) and name != tool:
            raise GatherError(f"the call is one of `{shown(name, 128)}`", remedy="name that tool, or give another call")

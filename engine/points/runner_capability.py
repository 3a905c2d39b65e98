"""Point `runner_capability`: whether a harness can take the tools of a run, or would silently drop them.

What a harness can do is probed by the engine; a request names the harness and its tools and nothing else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.run_request import MOST_TOOLS, Name, Word
from engine.model import Limits, Model
from engine.points import Gathered, Input, Point, Probed, World

FLAGS = ("mcpTools", "toolCalls")
"""What a harness must be able to do to get its tools over MCP, in the words of its probe."""


class CapabilityRequest(Model):
    """Ask about the tools, by name, of a run on this harness."""

    harness: Word
    tools: Annotated[tuple[Name, ...], Field(max_length=MOST_TOOLS)]


class Capability(Model):
    """One capability; `held` is absent when the probe says nothing of it. `id` tells what would be lost."""

    id: str
    flag: str
    held: bool | None = None


class CapabilityInput(Input):
    """What OPA sees. `source`: whether the capabilities were probed or only assumed; `none` without a probe."""

    harness: str
    tools: int
    names: tuple[str, ...]
    source: Literal["probed", "static", "none"]
    capabilities: tuple[Capability, ...]


class CapabilityLimits(Limits):
    """The tools that the harness may be given, and how it is known that it takes them."""

    harness: str
    tools: tuple[str, ...]
    source: Literal["probed", "static", "none"]


def gather(request: CapabilityRequest, world: World) -> Gathered:
    """Ask what the harness can do."""
    probed, count = world.capabilities(request.harness), len(request.tools)
    gathered = CapabilityInput(
        point="runner_capability",
        now=world.clock(),
        harness=request.harness,
        tools=count,
        names=request.tools,
        source="none" if probed is None else probed.source,
        capabilities=tuple(_capability(flag, probed, count) for flag in FLAGS),
    )
    return Gathered(gathered, f"{count} tool{'' if count == 1 else 's'} on harness {request.harness}")


def _capability(flag: str, probed: Probed | None, count: int) -> Capability:
    dropped = f"{count} tool{'' if count == 1 else 's'} dropped"
    held = None if probed is None else probed.capabilities.get(flag)
    return Capability(id=f"{flag} ({dropped})", flag=flag, held=held)


POINT = Point("runner_capability", CapabilityRequest, CapabilityInput, CapabilityLimits, gather)

"""Point `runner_capability`: whether a harness supports the tools of a run, or would silently drop them.

The engine probes what a harness can do; a request names only the harness and its tools.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.documents.files import counted
from engine.facts.run_request import MOST_TOOLS, Name
from engine.model import Limits, Model, Word
from engine.points import GatherContext, Gathered, Point

FLAGS = ("mcpTools", "toolCalls")
"""What a harness must be able to do to get its tools over MCP, in the words of its probe."""


class CapabilityRequest(Model):
    """Ask about the tools, by name, of a run on this harness."""

    harness: Word
    tools: Annotated[tuple[Name, ...], Field(max_length=MOST_TOOLS)]


class Capability(Model):
    """One capability; `supported` is absent when the probe did not report it. `id` names what would be lost."""

    id: str
    flag: str
    supported: bool | None = None


class CapabilityInput(Model):
    """What OPA sees. `source`: whether the capabilities were probed or only assumed; `none` without a probe."""

    harness: str
    tools: int
    names: tuple[str, ...]
    source: Literal["probed", "static", "none"]
    capabilities: tuple[Capability, ...]


class CapabilityLimits(Limits):
    """The tools that the harness may get, and how its support for them is known."""

    harness: str
    tools: tuple[str, ...]
    source: Literal["probed", "static", "none"]


def gather(request: CapabilityRequest, context: GatherContext) -> Gathered:
    """Probe what the harness can do."""
    probed, count = context.capabilities(request.harness), len(request.tools)
    tools = counted(count, "tool")
    probed_flags = {} if probed is None else probed.capabilities
    gathered = CapabilityInput(
        harness=request.harness,
        tools=count,
        names=request.tools,
        source="none" if probed is None else probed.source,
        capabilities=tuple(
            Capability(id=f"{flag} ({tools} dropped)", flag=flag, supported=probed_flags.get(flag)) for flag in FLAGS
        ),
    )
    return Gathered(gathered, f"{tools} on harness {request.harness}")


POINT = Point("runner_capability", CapabilityRequest, CapabilityInput, CapabilityLimits, gather)

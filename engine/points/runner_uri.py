"""Point `runner_uri`: which runner a run is sent to, asked before anything of the run is resolved.

The key `override` counts by its presence: absent keeps what was inherited, null or blanks clear it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.origins import origin_facts
from engine.facts.urls import LONGEST
from engine.model import Limits, Model
from engine.points import Gathered, Input, Point, World

Uri = Annotated[str, Field(max_length=LONGEST)]


class UriRequest(Model):
    """Ask which runner to use. `inherited` is what a stored configuration says, null when it says nothing."""

    override: Uri | None = None
    inherited: Uri | None


class UriFacts(Model):
    """The address that counts, and why; nothing of it is shown unless it is canonical."""

    source: Literal["override", "inherited", "default"]
    canonical: bool | None = None
    origin: str | None = None
    text: str | None = None


class UriInput(Input):
    """What OPA sees: the address that counts; for the source `default` the policy has it."""

    uri: UriFacts


class UriLimits(Limits):
    """The runner to use. `encrypted`: over TLS and nothing else."""

    uri: str
    encrypted: bool


def gather(request: UriRequest, world: World) -> Gathered:
    """Find which address counts, and read it."""
    facts = _facts(request)
    return Gathered(UriInput(point="runner_uri", now=world.clock(), uri=facts), f"runner address by {facts.source}")


def _facts(request: UriRequest) -> UriFacts:
    overridden = "override" in request.model_fields_set
    text = ((request.override if overridden else request.inherited) or "").strip()
    if not text:
        return UriFacts(source="default")
    found = origin_facts(text)
    return UriFacts(
        source="override" if overridden else "inherited",
        canonical=found.canonical,
        origin=found.origin,
        text=text if found.canonical else None,
    )


POINT = Point("runner_uri", UriRequest, UriInput, UriLimits, gather)

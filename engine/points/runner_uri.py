"""Point `runner_uri`: which runner a run is sent to, decided before anything of the run is resolved.

The presence of the key `override` counts: if absent, the inherited value applies; null or blank clears it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.net.urls import LONGEST, origin_facts
from engine.model import Limits, Model
from engine.points import GatherContext, Gathered, Point

Uri = Annotated[str, Field(max_length=LONGEST)]


class UriRequest(Model):
    """The runner to use. `inherited` is the value of a stored configuration, null if there is none."""

    override: Uri | None = None
    inherited: Uri | None


class UriFacts(Model):
    """The address that applies, and its origin; it is shown only if it is canonical."""

    source: Literal["override", "inherited", "default"]
    canonical: bool | None = None
    origin: str | None = None
    text: str | None = None


class UriInput(Model):
    """What OPA sees: the address that counts; for the source `default` the policy has it."""

    uri: UriFacts


class UriLimits(Limits):
    """The runner to use. `encrypted`: over TLS and nothing else.

    `credentials`: it gets the token and the client certificate of this gate.
    """

    uri: str
    encrypted: bool
    credentials: bool


def gather(request: UriRequest, _: GatherContext) -> Gathered:
    """Find which address counts, and read it."""
    facts = _facts(request)
    return Gathered(UriInput(uri=facts), f"runner address by {facts.source}")


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

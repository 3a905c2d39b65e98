"""Point `runner_bind`: whether a listener may start on an address.

Who can reach the address is computed from it, and what guards the listener is this engine's own
setting. Whether a deployment publishes the port is the only thing that is taken from the request.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.addresses import Reach, address_facts
from engine.model import Gate, Limits, Model
from engine.points import Gathered, Input, Point, World

Port = Annotated[int, Field(ge=0, le=65_535)]
"""A TCP port; 0 lets the system choose one."""


class BindRequest(Model):
    """Ask about one listener. `published`: the deployment makes the port reachable from outside of it."""

    host: Annotated[str, Field(pattern=r"^[!-~]{1,253}$")]
    port: Port
    published: bool


class Listener(Model):
    """The listener as it would be."""

    host: str
    port: int
    published: bool
    reach: Reach


class BindInput(Input):
    """What OPA sees: the listener, and what guards it."""

    listener: Listener
    gate: Gate


class BindLimits(Limits):
    """The one address that may be bound, and whether whoever asks there must show who they are."""

    host: str
    port: Port
    loopback: bool
    authentication: Literal["required", "optional"]


def gather(request: BindRequest, world: World) -> Gathered:
    """Parse the address; nothing is looked up."""
    facts = address_facts(request.host)
    listener = Listener(host=facts.host, port=request.port, published=request.published, reach=facts.reach)
    gathered = BindInput(point="runner_bind", now=world.clock(), listener=listener, gate=world.gate)
    return Gathered(gathered, f"listener on {facts.host} port {request.port}")


POINT = Point("runner_bind", BindRequest, BindInput, BindLimits, gather)

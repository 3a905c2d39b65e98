"""Point `runner_bind`: whether a listener may start on an address.

Who can reach the address is computed from it, and what guards the listener is this engine's own
setting. Whether a deployment publishes the port is the only thing that is taken from the request.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.net.addresses import Reach, bound_address
from engine.model import Gate, Limits, Model
from engine.points import GatherContext, Gathered, Point

Port = Annotated[int, Field(ge=0, le=65_535)]
"""A TCP port; 0 lets the system choose one."""


class BindRequest(Model):
    """Ask about one listener. `published`: the deployment makes the port reachable from outside of it."""

    host: Annotated[str, Field(pattern=r"^[!-~]{1,253}$")]
    port: Port
    published: bool


class Listener(BindRequest):
    """The requested listener."""

    reach: Reach


class BindInput(Model):
    """What OPA sees: the listener, and what guards it."""

    listener: Listener
    gate: Gate


class BindLimits(Limits):
    """The one address that may be bound, and whether callers must authenticate there."""

    host: str
    port: Port
    loopback: bool
    authentication: Literal["required", "optional"]


def gather(request: BindRequest, context: GatherContext) -> Gathered:
    """Parse the address; nothing is looked up."""
    host, reach = bound_address(request.host)
    listener = Listener(host=host, port=request.port, published=request.published, reach=reach)
    return Gathered(BindInput(listener=listener, gate=context.gate), f"listener on {host} port {request.port}")


POINT = Point("runner_bind", BindRequest, BindInput, BindLimits, gather)

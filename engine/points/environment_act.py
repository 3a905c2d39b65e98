"""Point `environment_act`: whether the state of an open environment may be kept, or set back to an earlier one.

What can be restored is a fact of the engine, which holds the environment: the digests of the files that would be
restored. A request names the environment by the id under which it is held, and states nothing about it.
"""

from __future__ import annotations

from typing import Literal

from engine.model import HeldEnvironment, Limits, Model, Pace
from engine.points import GatherContext, Gathered, Point
from engine.points.tool_visibility import Name

Act = Literal["checkpoint", "restore", "reset"]


class EnvironmentActRequest(Model):
    """Ask about an act on the environment held under this id; `checkpoint` names the one to restore."""

    held: Name
    act: Act
    checkpoint: Name | None = None


class EnvironmentActInput(Model):
    """What OPA sees; `held` has the engine's own facts, and is absent if it holds no such environment."""

    act: Act
    checkpoint: str | None = None
    held: HeldEnvironment | None = None


class EnvironmentActLimits(Limits):
    """Exactly this act may be done, in this environment."""

    environment: str
    act: Act


def gather(request: EnvironmentActRequest, context: GatherContext) -> Gathered:
    """Look at the files that would be restored."""
    held = context.held(request.held, request.checkpoint)
    gathered = EnvironmentActInput(act=request.act, checkpoint=request.checkpoint, held=held)
    title = f"{request.act} of {'no open environment' if held is None else held.environment}"
    return Gathered(gathered, title, opened=request)


POINT = Point(
    "environment_act", EnvironmentActRequest, EnvironmentActInput, EnvironmentActLimits, gather, pace=Pace.SLOW
)

"""Point `record`: how much of a payload an observer may write down, and how long it, or the record, is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.model import Limits, Model, Pace
from engine.points import Gathered, Input, Point, World

Detail = Literal["summary", "payload", "decisions"]
"""`summary`: names, counts, digests; `payload`: arguments and results, redacted; `decisions`: our own record."""

MOST_DAYS = 36_500
"""A hundred years."""

Days = Annotated[int, Field(ge=0, le=MOST_DAYS)]


class ObservationRequest(Model):
    """Ask for a detail of what is written, and for how many days it is kept."""

    detail: Detail
    retention_days: Days


class ObservationInput(Input):
    """What OPA sees; which profile is in force is a value of the policy, not of the request.

    `policy_in_force`: of the engine's own record only; no enforced decision in it was taken last under
    another policy than the one that decides now.
    """

    detail: Detail
    retention_days: int
    policy_in_force: bool | None = None


class ObservationLimits(Limits):
    """What may be written, and how long it must be kept."""

    detail: Detail
    retention_days: Days


def gather(request: ObservationRequest, world: World) -> Gathered:
    """Compare the policy that decides with that of the record, where it is about the record itself."""
    return Gathered(
        ObservationInput(
            point="record",
            now=world.clock(),
            detail=request.detail,
            retention_days=request.retention_days,
            policy_in_force=world.policy_in_force() if request.detail == "decisions" else None,
        ),
        f"recording of {request.detail} for {request.retention_days} days",
    )


POINT = Point("record", ObservationRequest, ObservationInput, ObservationLimits, gather, pace=Pace.SLOW)

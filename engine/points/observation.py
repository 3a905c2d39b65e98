"""Point `record`: how much of a payload an observer may write down, and how long it is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.model import Limits, Model
from engine.points import Gathered, Input, Point, World

Detail = Literal["summary", "payload"]
"""`summary`: names, counts, digests; `payload`: arguments and results, redacted."""

Days = Annotated[int, Field(ge=0, le=36_500)]


class ObservationRequest(Model):
    """Ask for a detail of what is written, and for how many days it is kept."""

    detail: Detail
    retention_days: Days


class ObservationInput(Input):
    """What OPA sees; which profile is in force is a value of the policy, not of the request."""

    detail: Detail
    retention_days: int


class ObservationLimits(Limits):
    """What may be written, and how long it must be kept."""

    detail: Detail
    retention_days: Days


def gather(request: ObservationRequest, world: World) -> Gathered:
    """Nothing to compute."""
    return Gathered(
        ObservationInput(
            point="record", now=world.clock(), detail=request.detail, retention_days=request.retention_days
        ),
        f"recording of {request.detail} for {request.retention_days} days",
    )


POINT = Point("record", ObservationRequest, ObservationInput, ObservationLimits, gather)

"""Point `record`: how much of a payload may be logged, and how long the log or the record is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.documents.files import counted
from engine.model import Limits, Model, Pace
from engine.points import GatherContext, Gathered, Point

Detail = Literal["summary", "payload", "decisions"]
"""`summary`: names, counts, digests; `payload`: arguments and results, redacted; `decisions`: our own record."""

MOST_DAYS = 36_500
"""A hundred years."""

Days = Annotated[int, Field(ge=0, le=MOST_DAYS)]


class ObservationRequest(Model):
    """The requested level of detail, and the retention in days."""

    detail: Detail
    retention_days: Days


class ObservationInput(ObservationRequest):
    """What OPA sees; which profile is in force is a value of the policy, not of the request.

    `policy_in_force`, only for the engine's own record: its last enforced decision was taken under the
    policy that decides now.
    """

    policy_in_force: bool | None = None


class ObservationLimits(Limits, ObservationRequest):
    """What may be written, and its minimum retention."""


def gather(request: ObservationRequest, context: GatherContext) -> Gathered:
    """Compare the policy that decides with that of the record, where it is about the record itself."""
    return Gathered(
        ObservationInput(
            **dict(request),
            policy_in_force=context.policy_in_force() if request.detail == "decisions" else None,
        ),
        f"recording of {request.detail} for {counted(request.retention_days, 'day')}",
    )


POINT = Point("record", ObservationRequest, ObservationInput, ObservationLimits, gather, pace=Pace.SLOW)

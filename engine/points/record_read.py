"""Point `record_read`: whether decisions of the record may be read: the caller's own or everyone's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from engine.model import Limits, Line, Model, passing
from engine.points import GatherContext, Gathered, Point, stated_in
from engine.times import RFC3339, moment, timestamp

Time = Annotated[
    str,
    Field(json_schema_extra={"pattern": f"^{RFC3339}$"}),
    passing(moment, "be a UTC time such as 2026-11-21T09:30:00Z"),
    AfterValidator(lambda text: timestamp(moment(text))),
]
"""A time as a caller writes it, kept as the record writes it."""

Whose = Literal["own", "all"]
"""Whose decisions: those on the caller's own requests, or everyone's."""


class Selection(Model):
    """Which decisions; an absent filter selects all."""

    whose: Whose
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    outcome: Literal["allow", "confirm", "deny"] | None = None
    since: Time | None = None
    until: Time | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)]


class RecordReadRequest(Selection):
    """Request decisions, newest first. `cursor` is `next` of the previous page."""

    point: Line | None = None
    cursor: Annotated[str, Field(max_length=4_096, pattern=r"^[A-Za-z0-9_-]+$")] | None = None


class RecordReadInput(Selection):
    """What OPA sees of the request."""

    point_read: str | None


class RecordReadLimits(Limits):
    """Whose decisions may be read, at most how many, and how many bytes of the record may be looked through.

    `principal` is empty exactly where those of everyone may be read.
    """

    whose: Whose
    principal: str
    decisions: Annotated[int, Field(ge=1)]
    bytes: Annotated[int, Field(ge=1)]


def gather(request: RecordReadRequest, _context: GatherContext) -> Gathered:
    """All facts are in the request; the caller is added by the engine."""
    facts = RecordReadInput(**stated_in(request, Selection), point_read=request.point)
    return Gathered(facts, f"reading decisions: {request.whose}")


POINT = Point("record_read", RecordReadRequest, RecordReadInput, RecordReadLimits, gather)

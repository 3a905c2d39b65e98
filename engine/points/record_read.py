"""Point `record_read`: whether decisions of the record may be read: the caller's own or everyone's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.model import Limits, Line, Model, Outcome
from engine.points import GatherContext, Gathered, Point

Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$")]
"""A moment in UTC, such as `2026-11-21T09:30:00Z`."""

Whose = Literal["own", "all"]
"""Whose decisions: those on the caller's own requests, or everyone's."""


class RecordReadRequest(Model):
    """Request decisions, newest first. An absent filter selects all; `cursor` is `next` of the previous page."""

    whose: Whose
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    point: Line | None = None
    outcome: Literal["allow", "confirm", "deny"] | None = None
    since: Time | None = None
    until: Time | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)]
    cursor: Annotated[str, Field(max_length=4_096, pattern=r"^[A-Za-z0-9_-]+$")] | None = None


class RecordReadInput(Model):
    """What OPA sees of the request."""

    whose: Whose
    id: str | None
    point_read: str | None
    outcome: Outcome | None
    since: str | None
    until: str | None
    limit: int


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
    facts = RecordReadInput(
        whose=request.whose,
        id=request.id,
        point_read=request.point,
        outcome=None if request.outcome is None else Outcome(request.outcome),
        since=request.since,
        until=request.until,
        limit=request.limit,
    )
    return Gathered(facts, f"reading decisions: {request.whose}")


POINT = Point("record_read", RecordReadRequest, RecordReadInput, RecordReadLimits, gather)

"""Point `artifact`: whether something that was generated may be used, known by its digest.

What counts is what the engine itself has seen: the newest sandbox check and the newest validation check of exactly
these bytes. Nothing that a caller says about them does. Rows A01, A02.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.model import Caller, Limits, Model, Sha256
from engine.points import Gathered, Input, Point, World
from engine.state.store import ArtifactCheckRow, Store

Kind = Literal["code", "tool", "environment_logic", "solution", "verifier"]
DecisionId = Annotated[str, Field(min_length=1, max_length=200)]

NEWEST = 128
"""Checks of an artifact that are looked at; one that lies further back than so many others counts no more."""


class ArtifactRequest(Model):
    """Ask about the artifact of this digest."""

    sha256: Sha256
    kind: Kind


class ArtifactInput(Input):
    """What OPA sees; `checks`, the newest of each name, come from the engine's state."""

    sha256: Sha256
    kind: Kind


class ArtifactLimits(Limits):
    """Exactly these bytes, for this use, and the decisions under which they were run and validated."""

    sha256: Sha256
    kind: Kind
    ran_in: Literal["restricted_process", "container", "webassembly"]
    sandbox_decision: DecisionId
    validation_decision: DecisionId


def gather(request: ArtifactRequest, world: World) -> Gathered:
    """The digest; what is known of it is asked for by the flow."""
    return Gathered(
        ArtifactInput(point="artifact", now=world.clock(), sha256=request.sha256, kind=request.kind),
        f"artifact {request.sha256[:16]}: {request.kind}",
        state=_checks(request.sha256),
    )


def _checks(sha256: str) -> Callable[[Store, Caller, int], Mapping[str, list[dict[str, Any]]]]:
    def ask(store: Store, _: Caller, __: int) -> Mapping[str, list[dict[str, Any]]]:
        newest: dict[str, ArtifactCheckRow] = {}
        for row in store.artifact_checks(sha256, NEWEST):
            newest.setdefault(row.name, row)
        return {"checks": [_fact(row) for _, row in sorted(newest.items())]}

    return ask


def _fact(row: ArtifactCheckRow) -> dict[str, Any]:
    return {
        "id": row.name,
        "passed": row.passed,
        "ran_in": row.ran_in,
        "decision_id": row.decision_id,
        "at": row.made_at,
    }


POINT = Point("artifact", ArtifactRequest, ArtifactInput, ArtifactLimits, gather)

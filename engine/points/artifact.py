"""Point `artifact`: whether a generated artifact, identified by its digest, may be used.

Only checks recorded by the engine count: the newest sandbox check and the newest validation check of exactly
these bytes. Claims of a caller do not. Rows A01, A02.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine.model import Caller, Limits, Model, Sha256
from engine.points import FactsFromState, GatherContext, Gathered, Point
from engine.state.rows import ArtifactCheckRow

if TYPE_CHECKING:
    from engine.state.store import Store

Kind = Literal["code", "tool", "environment_logic", "solution", "verifier"]
DecisionId = Annotated[str, Field(min_length=1, max_length=200)]

NEWEST = 128
"""Number of checks of an artifact that are read; older ones do not count."""


class ArtifactRequest(Model):
    """Ask about the artifact of this digest."""

    sha256: Sha256
    kind: Kind


class ArtifactInput(ArtifactRequest):
    """What OPA sees; `checks`, the newest of each name, come from the engine's state."""


class ArtifactLimits(Limits, ArtifactRequest):
    """Exactly these bytes, for this use, and the decisions under which they were run and validated."""

    ran_in: Literal["restricted_process", "container", "webassembly"]
    sandbox_decision: DecisionId
    validation_decision: DecisionId


def gather(request: ArtifactRequest, _: GatherContext) -> Gathered:
    """The digest; the flow looks up its checks."""
    return Gathered(
        ArtifactInput(**dict(request)),
        f"artifact {request.sha256[:16]}: {request.kind}",
        state=partial(_checks, request.sha256),
    )


def _checks(sha256: str, store: Store, _: Caller) -> FactsFromState:
    newest: dict[str, ArtifactCheckRow] = {}
    for row in store.artifact_checks(sha256, NEWEST):
        newest.setdefault(row.name, row)
    return {
        "checks": [
            {
                "id": name,
                "passed": row.passed,
                "ran_in": row.ran_in,
                "decision_id": row.decision_id,
                "at": row.made_at,
            }
            for name, row in sorted(newest.items())
        ]
    }


POINT = Point("artifact", ArtifactRequest, ArtifactInput, ArtifactLimits, gather)

"""From verdict to permit: refuse what this machine was not shown to enforce, then seal the limits."""

from __future__ import annotations

from engine.errors import EnforceError
from engine.model import Boundary, Decision, Limits, Mode, Outcome, Permit


def enforceable(limits: Limits, boundaries: tuple[Boundary, ...]) -> None:
    """Raise EnforceError if the limits name a boundary that no backend here was shown to enforce."""
    backend = limits.on_backend()
    held = {one.boundary for one in boundaries if one.enforced and backend in {None, one.backend}}
    missing = sorted(limits.boundaries() - held)
    if missing:
        raise EnforceError(
            f"this machine was not shown to enforce `{missing[0]}`",
            remedy="run `engine doctor`, install what it reports as missing, and repeat the request",
        )


def permit(decision: Decision) -> Permit | None:
    """The permit of an enforced allow; None for anything else, a dry run first of all."""
    if decision.mode is not Mode.ENFORCE or decision.outcome is not Outcome.ALLOW:
        return None
    if decision.limits is None or decision.input_digest is None or decision.policy is None:
        return None
    return Permit.seal(
        decision_id=decision.decision_id,
        point=decision.point,
        input_digest=decision.input_digest,
        limits=decision.limits,
    )

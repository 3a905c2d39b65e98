"""What executors read of their permits: the second lock, in front of all approved work."""

from __future__ import annotations

from typing import TypeVar

from engine.errors import UnenforceableError, WorkError
from engine.model import Permit

GrantT = TypeVar("GrantT")


def granted(permit: Permit, point: str, input_digest: str, grant: type[GrantT]) -> GrantT:
    """The limits of a permit for exactly this point and input. `grant` has the fields that an executor reads.

    Raises WorkError: `engine.permit_missing` for any other permit; `engine.limit_unenforceable` for limits of another
    type than `grant`.
    """
    limits = permit.demand(point, input_digest, type(permit.limits))
    if not isinstance(limits, grant):
        raise unenforceable(f"the limits of point `{point}` do not match those of its executor")
    return limits


def unenforceable(message: str, remedy: str = "use adapters and engine of the same version") -> WorkError:
    """The error for limits that an executor cannot enforce."""
    return UnenforceableError(message, remedy=remedy)

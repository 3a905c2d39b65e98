"""What must hold while a run is prepared, whatever a request, a harness or a policy says; a breach ends the run."""

from __future__ import annotations

from engine.errors import WorkError

PREFIX = "[sandbox-agent invariant]"


class InvariantError(WorkError):
    """A state that the runner does not handle. The message says what to do."""

    code = "engine.runner_invariant"


def demand(holds: bool, what: str, remedy: str) -> None:  # noqa: FBT001  (the condition)
    """Raise InvariantError if it does not hold."""
    if not holds:
        raise InvariantError(f"{PREFIX} {what}: {remedy}", remedy=remedy)

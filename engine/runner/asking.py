"""The decisions of one run: each is asked of the engine under the run's own facts, and recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.drive import run
from engine.enforce import permit
from engine.errors import DecideError, Exit
from engine.flow import Answer, Context, Services
from engine.idempotency import answer_once
from engine.model import Mode, Permit, Revisions
from engine.points.registry import find
from engine.work import Executor


class StoppedError(Exception):
    """A decision of a run that is no allow, or work that failed; `answer` is what its caller gets."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.decision.outcome)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Decisions:
    """Asks for the decisions of one run, blocking; threads may share it."""

    services: Services
    context: Context

    def decide(
        self, point: str, request: Any, executor: Executor | None = None, context: Context | None = None
    ) -> Answer:
        """One enforced decision, and its work."""
        steps = answer_once(find(point), request, Mode.ENFORCE, self.services, context or self.context, executor)
        return run(steps)

    def demand(self, point: str, request: Any, executor: Executor | None = None) -> tuple[Permit, Answer]:
        """The permit of an allow. Raises StoppedError for anything else."""
        answer = self.decide(point, request, executor)
        sealed = permit(answer.decision) if answer.exit is Exit.ALLOW else None
        if sealed is None:
            raise StoppedError(answer)
        return sealed, answer


def same_policy(admitted: Revisions | None, current: Revisions | None) -> None:
    """Raise DecideError if the policy has changed since the run was admitted."""
    if admitted != current:
        raise DecideError(
            "the policy changed while the run was being decided", remedy="send the run again", code="policy_stale"
        )

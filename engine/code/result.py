"""What a run gives: one document, for whoever asked, in one of two shapes (C45, C46)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.code.running import Phase
from engine.code.stop_reasons import StopReason
from engine.code.trace import Story
from engine.errors import EngineError, Exit
from engine.flow import Answer


@dataclass(frozen=True, slots=True)
class CodeRun:
    """The end of a run. `document` is what is answered, `fault` what failed of the engine or the request."""

    document: dict[str, Any]
    exit: Exit
    fault: EngineError | None = None
    answer: Answer | None = None
    """The last decision that was asked; None where none was, and in a result that is given again."""
    ran: bool = False
    """Whether anything was started."""
    replayed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the program ran and its output is what it must be."""
        return bool(self.document["status"] == "ok")

    @property
    def stop_reason(self) -> str:
        """Why it stopped; `success` where it did not."""
        return str(self.document["stop_reason"])


class StoppedError(Exception):
    """The run ends here. `answer` is the decision behind it, `fault` what failed."""

    def __init__(
        self,
        reason: StopReason,
        phase: Phase,
        exit_: Exit,
        answer: Answer | None = None,
        fault: EngineError | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.phase, self.exit, self.answer = reason, phase, exit_, answer
        self.fault = fault or (None if answer is None else answer.fault)


def stopped(run_id: str, reason: StopReason, phase: Phase, story: Story, more: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a run that stopped."""
    head = {"run_id": run_id, "status": "stopped", "stop_reason": reason, "phase": phase}
    return {**head, **story.clean(), **more}


def succeeded(run_id: str, told: Mapping[str, Any], story: Story, more: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a run that went well; `told` has answer, proposed_action, aggregate and execution."""
    head = {"run_id": run_id, "status": "ok", "stop_reason": "success", "outcome": "code_execution_success"}
    return {**head, **told, **story.clean(), **more}


def findings(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The requirements that do not hold, from the decisions that refused: for people, and for repairs of the code."""
    return [
        {"point": answer.decision.point, **finding.model_dump(mode="json")}
        for answer in answers
        for finding in answer.decision.findings
    ]


def approval(answer: Answer, name: str) -> dict[str, Any]:
    """The approval that a person has to give, and the name under which it is brought back."""
    asked = answer.decision.approval
    return {} if asked is None else {"approval": {"for": name, "id": asked.id, "expires_at": asked.expires_at}}

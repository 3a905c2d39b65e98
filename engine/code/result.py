"""The result document of a run, in one of two shapes: succeeded or stopped (C45, C46)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.code.running import Phase
from engine.code.stop_reasons import StopReason
from engine.errors import EngineError, Exit
from engine.flow import Answer
from engine.points.code_action import CodeActionLimits
from engine.secrets.redaction import redact


def proposed(action: CodeActionLimits) -> dict[str, Any]:
    """The public form of an accepted action, without its code."""
    return {name: getattr(action, name) for name in ("id", "language", "entrypoint", "code_hash")}


@dataclass(slots=True)
class Story:
    """Writes what happened (trace, C47) and what was proposed (history, C50) as it goes on. Steps count from 1."""

    trace: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    def planned(self, action: CodeActionLimits) -> None:
        """Step 1: the action meets its contract."""
        facts = {"action_id": action.id, "language": action.language, "code_hash": action.code_hash}
        self._trace("plan_code", **facts, chars=action.chars, ok=True)
        self._history("propose_code_execution_plan", proposed_action=proposed(action))

    def judged(self, action: CodeActionLimits, kind: str, reason: str) -> None:
        """Step 2: the decision on language and text."""
        self._trace(
            "policy_check",
            decision=kind,
            reason=reason,
            allowed_languages_policy=sorted(action.allowed_languages_policy),
            allowed_languages_execution=sorted(action.allowed_languages_execution),
            ok=kind == "allow",
        )
        self._history("policy_check", decision={"kind": kind, "reason": reason})

    def ran(self, phase: str, action: CodeActionLimits | None) -> None:
        """A program was started; `failed` or `went_well` ends this step."""
        named = {} if action is None else {"language": action.language, "code_hash": action.code_hash}
        self._trace(phase, **named, ok=False)

    def failed(self, reason: str, snippets: Mapping[str, str]) -> None:
        """The program that was started last did not return what it should."""
        self.trace[-1].update({"error": reason, **snippets})
        self._history(self.trace[-1]["phase"], status="error", reason=reason, **snippets)

    def went_well(self, measured: Mapping[str, int], result: Mapping[str, Any]) -> None:
        """Its output is validated; `measured` has bytes and milliseconds."""
        self.trace[-1].update({**measured, "ok": True})
        self._history(self.trace[-1]["phase"], result=dict(result))

    def finished(self) -> None:
        """The last step: the answer."""
        self._trace("finalize", ok=True)
        self._history("finalize")

    def clean(self) -> dict[str, Any]:
        """Both lists without secrets."""
        return {"trace": redact(self.trace)[0], "history": redact(self.history)[0]}

    def _trace(self, phase: str, **more: Any) -> None:
        self.trace.append({"step": len(self.trace) + 1, "phase": phase, **more})

    def _history(self, action: str, **more: Any) -> None:
        self.history.append({"step": len(self.history) + 1, "action": action, **more})


@dataclass(frozen=True, slots=True)
class CodeRun:
    """The end of a run. `document` is the response, `fault` the failure of the engine or the request."""

    document: dict[str, Any]
    exit: Exit
    fault: EngineError | None = None
    answer: Answer | None = None
    """The last decision of the run; None if there was none, and in a replayed result."""
    ran: bool = False
    """Whether anything was started."""
    replayed: bool = False
    keep_days: int = 0
    """For how long the permit lets the result be kept; 0 if nothing ran."""

    @property
    def ok(self) -> bool:
        """Whether the program ran and its output meets the contract."""
        return bool(self.document["status"] == "ok")

    @property
    def stop_reason(self) -> str:
        """The stop reason; `success` if it did not stop."""
        return str(self.document["stop_reason"])


class StoppedError(Exception):
    """Stops the run. `answer` is the decision behind it, `fault` the failure."""

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


def succeeded(run_id: str, parts: Mapping[str, Any], story: Story, more: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a successful run; `parts` has answer, proposed_action, aggregate and execution."""
    head = {"run_id": run_id, "status": "ok", "stop_reason": "success", "outcome": "code_execution_success"}
    return {**head, **parts, **story.clean(), **more}


def findings(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The unmet requirements of the decisions that refused, with lines and what was found: for people and repairs."""
    return [
        {"point": answer.decision.point, **finding.model_dump(mode="json"), **_found(answer, finding.subject)}
        for answer in answers
        for finding in answer.decision.findings
    ]


def _found(answer: Answer, subject: str | None) -> dict[str, Any]:
    gathered = answer.gathered
    place = None if gathered is None else gathered.places.get(subject)
    found = None if gathered is None else gathered.notes.get(subject or "")
    return {"line": None if place is None else place.line, "found": found}


def approval(answer: Answer, name: str) -> dict[str, Any]:
    """The required approval, and the name under which the next request states it."""
    requested = answer.decision.approval
    return (
        {} if requested is None else {"approval": {"for": name, "id": requested.id, "expires_at": requested.expires_at}}
    )

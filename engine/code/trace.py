"""Trace and history of a run: what was done in which order, with hashes in the place of code and payload.

The trace has what happened, for machines; the history what was proposed and what came of it (C47 to C50).
Both are written as the run goes on, so a run that stops leaves exactly what had happened (C76, C83).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.record.redaction import redact


@dataclass(frozen=True, slots=True)
class Planned:
    """An action that was accepted, without its code."""

    id: str
    language: str
    entrypoint: str
    code_hash: str
    chars: int
    allowed_policy: tuple[str, ...]
    allowed_execution: tuple[str, ...]

    def proposed(self) -> dict[str, Any]:
        """What is told of it."""
        names = ("id", "language", "entrypoint", "code_hash")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class Story:
    """Writes both lists. Steps are counted from 1."""

    trace: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    def planned(self, action: Planned) -> None:
        """Step 1: the action keeps its contract."""
        told = {"action_id": action.id, "language": action.language, "code_hash": action.code_hash}
        self._trace("plan_code", **told, chars=action.chars, ok=True)
        self._history("propose_code_execution_plan", proposed_action=action.proposed())

    def judged(self, action: Planned, kind: str, reason: str) -> None:
        """Step 2: what policy says of language and text."""
        self._trace(
            "policy_check",
            decision=kind,
            reason=reason,
            allowed_languages_policy=sorted(action.allowed_policy),
            allowed_languages_execution=sorted(action.allowed_execution),
            ok=kind == "allow",
        )
        self._history("policy_check", decision={"kind": kind, "reason": reason})

    def ran(self, phase: str, action: Planned | None) -> Ran:
        """A program was started; what comes of it is told to the step that this gives."""
        named = {} if action is None else {"language": action.language, "code_hash": action.code_hash}
        self._trace(phase, **named, ok=False)
        return Ran(self, phase, self.trace[-1])

    def finished(self) -> None:
        """The last step: the answer is made."""
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
class Ran:
    """The step of a program that was started."""

    story: Story
    phase: str
    step: dict[str, Any]

    def failed(self, reason: str, snippets: Mapping[str, str]) -> None:
        """It did not give what it should."""
        self.step.update({"error": reason, **snippets})
        self.story._history(self.phase, status="error", reason=reason, **snippets)  # noqa: SLF001  (of this file)

    def went_well(self, measured: Mapping[str, int], result: Mapping[str, Any]) -> None:
        """Its output is validated; `measured` has bytes and milliseconds."""
        self.step.update({**measured, "ok": True})
        self.story._history(self.phase, result=dict(result))  # noqa: SLF001

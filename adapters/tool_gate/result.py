"""What an agent gets back from the gate: always a result, whatever became of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adapters.tool_gate.grants import ResultGrant
from adapters.tool_gate.outcome import Failure, Given, Outcome, cut
from engine.model import Decision, Level
from engine.model import Outcome as Decided

Status = Literal["ok", "error", "refused", "awaiting_approval"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The end of a call as a model may see it.

    `ok` and `error`: the tool was called, and `content` is what it gave or how it failed. `refused` and
    `awaiting_approval`: nothing ran; `approval` is what `engine approvals grant` takes, and the same call
    with it is decided again. `code` is the stable reason of everything but `ok`, `decision_id` the decision
    about the call. `metadata` has `truncated` (B28), `validation_error` (B32), `prompt_bytes`, `codes`.
    """

    status: Status
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    code: str | None = None
    decision_id: str | None = None
    approval: str | None = None


def not_run(decision: Decision) -> ToolResult:
    """The result of a call that was not allowed: the codes, for the model and whoever reads its history."""
    waits = decision.outcome is Decided.CONFIRM
    codes = _codes(decision)
    approval = None if decision.approval is None or not waits else decision.approval.id
    said = f"waits for the approval {approval} of a person" if waits else "is refused"
    return ToolResult(
        "awaiting_approval" if waits else "refused",
        f"this call {said}: {', '.join(codes)}",
        {"codes": codes},
        codes[0],
        decision.decision_id,
        approval,
    )


def withheld(decision: Decision, about: Decision) -> ToolResult:
    """The result of a call that was made, and whose result may not be returned."""
    codes = _codes(about)
    return ToolResult(
        "error",
        f"the tool was called, and its result is withheld: {', '.join(codes)}",
        {"codes": codes},
        codes[0],
        decision.decision_id,
    )


def broken(code: str, decision_id: str | None, *, ran: bool) -> ToolResult:
    """The result where the engine, its record or the gate itself failed."""
    said = "the tool was called, and its result is withheld" if ran else "this call is refused"
    return ToolResult("error" if ran else "refused", f"{said}: {code}", {"codes": [code]}, code, decision_id)


def returned(outcome: Outcome, grant: ResultGrant, decision_id: str) -> ToolResult:
    """What the tool gave or how it failed, within the limits of point `tool_result`."""
    beside: dict[str, Any] = {"prompt_bytes": grant.prompt_bytes}
    if outcome.failure is not None:
        text, more, code = _told(outcome.failure, grant)
        data = text.encode("utf-8", "replace")
        content = cut(data, grant.max_bytes)
        beside |= {**more, "truncated": len(content.encode()) < len(data)}
        return ToolResult("error", content, beside, code, decision_id)
    given = outcome.given or Given.of("", 0)
    content = cut(given.text.encode("utf-8", "replace"), grant.max_bytes)
    beside |= {"media": given.media, "bytes": given.bytes, "truncated": len(content.encode()) < given.bytes}
    return ToolResult("ok", content, beside, None, decision_id)


def _told(failure: Failure, grant: ResultGrant) -> tuple[str, dict[str, Any], str]:
    """The text of a failure, what stands beside it, and its code; never a stack."""
    validation = failure.kind == "validation"
    code = failure.code or "invalid" if validation else "tool_failed"
    if not grant.show_message:
        return f"the tool failed with {failure.class_}", {}, code
    if not validation:
        return f"{failure.class_}: {failure.message or ''}", {}, code
    details = {"class": failure.class_, "code": failure.code, "details": dict(failure.details)}
    prefix = f"{failure.class_}: " if grant.error_mode == "debug" else ""
    return prefix + (failure.message or ""), {"validation_error": details}, code


def _codes(decision: Decision) -> list[str]:
    """The codes of what stood in the way, each once; what only warned is left out."""
    found = [finding.code for finding in decision.findings if finding.level is not Level.WARN]
    return list(dict.fromkeys(found)) or ["engine.work_not_run"]

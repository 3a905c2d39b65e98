"""The result that the gate returns to an agent; every call returns one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from admission_adapters.grants import unenforceable
from admission_adapters.tools.grants import DecidedResult, ResultGrant
from admission_adapters.tools.outcome import LOOKED_AT, Failure, Outcome, cut
from engine.model import Decision, Finding, Level
from engine.model import Outcome as Decided

_LINES, _LINE = 5, 500
"""Lines of a refusal, and characters of one: enough to act on, too few to fill a prompt."""

NOT_APPROVED = "this call is refused: the person did not approve it"

Status = Literal["ok", "error", "refused", "awaiting_approval"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call, for the model.

    `ok` and `error`: the tool was called, and `content` is its result or its failure. `refused`: nothing ran.
    `awaiting_approval`: nothing ran, or the result waits; `approval` is the id for `engine approvals grant`, and the
    same call with this id is decided again, without being made twice. `code` is the stable reason of all but `ok`,
    `decision_id` the decision about the call. `metadata` has `truncated` (B28), `validation_error` (B32),
    `prompt_bytes`, `codes`, and in `redacted` how many secrets, hidden characters and addresses of links were taken out
    of the content.
    """

    status: Status
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    code: str | None = None
    decision_id: str | None = None
    approval: str | None = None

    @property
    def text(self) -> str:
        """The content, with a mark where it was cut."""
        if self.metadata.get("truncated") is not True:
            return self.content
        return f"{self.content}\n[cut here; the whole text has {self.metadata['bytes']} bytes]"

    @property
    def model_text(self) -> str:
        """The same, and how a person approves what waits."""
        if self.approval is None:
            return self.text
        how = f"A person approves it with `engine approvals grant {self.approval}`; then repeat the same call."
        return f"{self.text}\n{how}"


def not_run(decision: Decision) -> ToolResult:
    """The result of a call that was not allowed: what has to hold and how to get there, in words for the model."""
    waits = decision.outcome is Decided.CONFIRM
    codes = codes_of(decision)
    approval = None if decision.approval is None or not waits else decision.approval.id
    status_text = f"waits for the approval {approval} of a person" if waits else "is refused"
    return ToolResult(
        "awaiting_approval" if waits else "refused",
        "\n".join((f"this call {status_text}: {', '.join(codes)}", *_refusal_lines(decision))),
        {"codes": codes},
        codes[0],
        decision.decision_id,
        approval,
    )


def _refusal_lines(decision: Decision) -> list[str]:
    """A line for each code of the first findings that decided: where, what must hold, what to do.

    A denied call cannot be approved, so what only asks a person is left out.
    """
    found: dict[str, str] = {}
    for one in (one for one in decision.findings if one.level.value == decision.outcome.value):
        at = "" if one.subject is None else f" at {one.subject}"
        found.setdefault(one.code, f"- {one.code}{at}. Required: {one.requirement}. Fix: {one.remedy}."[:_LINE])
    return list(found.values())[:_LINES]


def withheld(codes: list[str], decision_id: str | None, *, ran: bool) -> ToolResult:
    """The result of a call whose result may not be returned, or after a failure of engine, record or gate."""
    status_text = "the tool was called, and its result is withheld" if ran else "this call is refused"
    return ToolResult(
        "error" if ran else "refused", f"{status_text}: {', '.join(codes)}", {"codes": codes}, codes[0], decision_id
    )


def waiting(codes: list[str], decision_id: str, approval: str) -> ToolResult:
    """The result of a call that was made and whose result a person must see first."""
    content = f"the tool was called, and its result waits for the approval {approval} of a person: {', '.join(codes)}"
    return ToolResult("awaiting_approval", content, {"codes": codes}, codes[0], decision_id, approval)


def returned(outcome: Outcome, grant: ResultGrant, decided: DecidedResult | None, decision_id: str) -> ToolResult:
    """The tool's result or failure, within the limits of point `tool_result`; `decided` is the result decided on."""
    beside: dict[str, Any] = {"prompt_bytes": grant.prompt_bytes}
    if outcome.failure is not None:
        text, more, code = _error_text(outcome.failure, grant)
        data = text.encode("utf-8", "replace")
        content = cut(data, grant.max_bytes)
        beside |= {**more, "bytes": len(data), "truncated": len(content.encode()) < len(data)}
        return ToolResult("error", content, beside, code, decision_id)
    if outcome.result_text is None or decided is None:
        raise unenforceable("the permit is for another result of the tool")
    text, redacted = decided.without(secrets=grant.redact_secrets, hidden=grant.redact_hidden, links=grant.redact_links)
    data = text.encode("utf-8", "replace")
    whole = outcome.result_text.bytes == len(outcome.result_text.text.encode("utf-8", "replace"))
    content = cut(data if whole else data[:-LOOKED_AT], grant.max_bytes)
    beside |= {
        "media": outcome.result_text.media,
        "bytes": outcome.result_text.bytes,
        "truncated": not whole or len(content.encode()) < len(data),
    }
    if redacted:
        beside["redacted"] = redacted
    return ToolResult("ok", content, beside, None, decision_id)


def _error_text(failure: Failure, grant: ResultGrant) -> tuple[str, dict[str, Any], str]:
    """The text of a failure, its metadata and its code; never a stack trace."""
    validation = failure.kind == "validation"
    code = failure.code or "invalid" if validation else "tool_failed"
    if not grant.show_message:
        return f"the tool failed with {failure.class_}", {}, code
    if not validation:
        return f"{failure.class_}: {failure.message or ''}", {}, code
    details = {"class": failure.class_, "code": failure.code, "details": dict(failure.details)}
    prefix = f"{failure.class_}: " if grant.error_mode == "debug" else ""
    return prefix + (failure.message or ""), {"validation_error": details}, code


def codes_of(decision: Decision) -> list[str]:
    """The codes of the findings that refused, each once."""
    return list(dict.fromkeys(one.code for one in _refusing(decision))) or ["engine.work_not_run"]


def _refusing(decision: Decision) -> list[Finding]:
    """The findings without warnings; what denies comes first, because no approval helps against it."""
    found = [one for one in decision.findings if one.level is not Level.WARN]
    return sorted(found, key=lambda one: one.level is not Level.DENY)

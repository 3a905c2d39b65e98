"""From OPA's answer to a verdict: accepts only a complete, valid answer.

Undefined, failed, late, of another revision or another shape: DecideError, which the flow turns
into a deny with its reserved code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from engine.documents.canonical import canonical, compact
from engine.errors import DecideError, EngineError
from engine.model import Decision, Finding, Level, Limits, Model, Outcome, is_reserved
from engine.opa.reply import Reply
from engine.points import Point
from engine.policy_bundle.catalogue import Catalogue

if TYPE_CHECKING:
    from engine.policy_bundle.serving import Serving

_ASK_POLICY = "report it to the policy owner; nothing is allowed until it is fixed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A well-formed answer: limits are present exactly when the outcome is allow.

    `approved`: it is an allow because a person approved it; otherwise it would be a confirm.
    `approval_seconds`: for how long an approval of this confirm is valid.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    limits: Limits | None
    approved: bool = False
    approval_seconds: int | None = None


_REMEMBERED, _SHORT = 1_024, 4 << 10
"""Answers, and the bytes of each at most."""

_checked_before: dict[tuple[str, bytes], tuple[Catalogue, Verdict, dict[str, Any] | None]] = {}
"""By point and answer: the catalogue with the words, the verdict without its limits, and these as OPA stated them."""


class _AnswerFinding(Model):
    code: str
    level: Annotated[Level, Field(strict=False)]
    subject: str | None
    requirement: str | None = None
    waiver: Annotated[str, Field(min_length=1)] | None = None


class _Answer(Model):
    outcome: Annotated[Outcome, Field(strict=False)]
    findings: list[_AnswerFinding]
    limits: dict[str, Any] | None = None
    approved: Literal[True] | None = None
    approval_seconds: Annotated[int, Field(ge=1)] | None = None


def read(point: Point, reply: Reply, catalogue: Catalogue) -> Verdict:
    """Check the shape of one answer and add the words of the catalogue to its findings.

    An answer that was given before is checked once; the limits of each are its own.
    """
    if not reply.defined:
        raise DecideError("the policy returned no decision", remedy=_ASK_POLICY, code="engine.decision_undefined")
    text = compact(reply.result)
    known = _checked_before.get((point.name, text))
    if known is None or known[0] is not catalogue:
        known = catalogue, *_checked(point, reply.result, catalogue)
        if len(_checked_before) >= _REMEMBERED:
            _checked_before.clear()
        if len(text) <= _SHORT:
            _checked_before[point.name, text] = known
    _, verdict, limits = known
    return replace(verdict, limits=_limits(point, limits)) if verdict.outcome is Outcome.ALLOW else verdict


def _checked(point: Point, result: Any, catalogue: Catalogue) -> tuple[Verdict, dict[str, Any] | None]:
    """The verdict without its limits, and these as OPA stated them."""
    try:
        answer = _Answer.model_validate(result)
    except ValidationError as error:
        raise _malformed("is not a valid decision") from error
    folded = _fold(answer.findings)
    if answer.outcome != (Outcome.ALLOW if answer.approved and folded is Outcome.CONFIRM else folded):
        raise _malformed("contradicts its own findings")
    if (answer.approved and folded is not Outcome.CONFIRM) or (answer.approval_seconds and folded is Outcome.DENY):
        raise _malformed("mentions an approval although none applies")
    if any(found.waiver is not None and found.level is not Level.WARN for found in answer.findings):
        raise _malformed("waives a finding that it does not let through")
    if any(is_reserved(found.code) for found in answer.findings):
        raise _malformed("uses a code that only the engine may give")
    findings = sorted(
        {_finding(point, found, catalogue) for found in answer.findings},
        key=lambda one: (one.code, one.subject or "", one.requirement),
    )
    verdict = Verdict(answer.outcome, tuple(findings), None, bool(answer.approved), answer.approval_seconds)
    return verdict, answer.limits


def denial(error: EngineError) -> Verdict:
    """The deny for an error on the way; where a rule failed, its place is the subject."""
    rule = str(error.where) if isinstance(error, DecideError) and error.where is not None else None
    finding = Finding(
        code=error.code, level=Level.DENY, requirement=error.one_line(), subject=rule, remedy=error.remedy
    )
    return Verdict(Outcome.DENY, (finding,), None)


def authored(error: DecideError, serving: Serving) -> DecideError:
    """The same error; where a rule failed, with the file and line of its author."""
    if error.where is None:
        return error
    return DecideError(error.message, remedy=error.remedy, where=serving.authored(error.where), code=error.code)


def parsed(point: Point, fields: dict[str, Any]) -> Decision:
    """A decision at this point from its JSON. Raises ValidationError, KeyError or TypeError."""
    limits = fields["limits"]
    if limits is not None:
        limits = point.limits.model_validate_json(canonical(limits))
    decision = Decision.model_validate_json(canonical({**fields, "limits": None}))
    return decision.model_copy(update={"limits": limits})


def _fold(findings: list[_AnswerFinding]) -> Outcome | None:
    """What these findings can only mean. The policy folds; this notices when it did not."""
    levels = {found.level for found in findings}
    if Level.DENY in levels:
        return Outcome.DENY
    return Outcome.CONFIRM if Level.CONFIRM in levels else Outcome.ALLOW


def _finding(point: Point, found: _AnswerFinding, catalogue: Catalogue) -> Finding:
    words = catalogue.words(point.name, found.code)
    if words is None:
        raise _malformed("has a code that is not in its catalogue")
    requirement = words.title if found.requirement is None else found.requirement
    return Finding(
        code=found.code,
        level=found.level,
        requirement=requirement,
        subject=found.subject,
        remedy=words.remedy,
        waiver=found.waiver,
    )


def _limits(point: Point, limits: dict[str, Any] | None) -> Limits:
    try:
        return point.limits.model_validate_json(canonical(limits))
    except (ValidationError, ValueError) as error:
        raise DecideError(
            "the policy allows the request without complete limits",
            remedy=_ASK_POLICY,
            code="engine.limit_unenforceable",
        ) from error


def _malformed(what: str) -> DecideError:
    return DecideError(f"the policy's answer {what}", remedy=_ASK_POLICY, code="engine.answer_malformed")

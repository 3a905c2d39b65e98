"""Input to verdict: ask OPA, and take nothing for an answer that is not exactly one.

Undefined, failed, late, of another revision or another shape: DecideError, which the flow turns
into a deny with its reserved code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import Field, ValidationError

from engine.canonical import canonical
from engine.errors import DecideError
from engine.model import ENGINE_CODES, Finding, Level, Limits, Model, Outcome
from engine.points import Point
from engine.policy_bundle.catalogue import Catalogue

_ASK_POLICY = "tell whoever releases the policy; nothing is allowed until it is mended"


class Reply(Protocol):
    """What OPA gave for one rule; `defined` is false when the rule has no value."""

    @property
    def defined(self) -> bool:
        """Whether the rule has a value at all."""
        ...

    @property
    def result(self) -> Any:
        """The value; only where it is defined."""
        ...


class Opa(Protocol):
    """Whatever answers `data.admission.<rule>` from exactly the expected revisions."""

    def ask(self, rule: str, document: dict[str, Any]) -> Reply:
        """The value of the rule for this input. Raises DecideError."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """A well-formed answer: limits are present exactly when the outcome is allow."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    limits: Limits | None


class _Found(Model):
    code: str
    level: Annotated[Level, Field(strict=False)]
    subject: str | None
    message: str | None = None


class _Answer(Model):
    outcome: Annotated[Outcome, Field(strict=False)]
    findings: list[_Found]
    limits: dict[str, Any] | None = None


def decide(point: Point, document: dict[str, Any], opa: Opa, catalogue: Catalogue) -> Verdict:
    """The verdict of the policy on one input document. Raises DecideError."""
    return read(point, opa.ask("decision", document), catalogue)


def read(point: Point, reply: Reply, catalogue: Catalogue) -> Verdict:
    """Check the shape of one answer and add the words of the catalogue to its findings."""
    if not reply.defined:
        raise DecideError("the policy gives no decision", remedy=_ASK_POLICY, code="engine.decision_undefined")
    try:
        answer = _Answer.model_validate(reply.result)
    except ValidationError as error:
        raise _malformed("has not the shape of a decision") from error
    if answer.outcome != _fold(answer.findings):
        raise _malformed("contradicts its own findings")
    if any(found.code.startswith(ENGINE_CODES) for found in answer.findings):
        raise _malformed("uses a code that only the engine may give")
    findings = sorted({_finding(point, found, catalogue) for found in answer.findings}, key=_order)
    limits = _limits(point, answer.limits) if answer.outcome is Outcome.ALLOW else None
    return Verdict(answer.outcome, tuple(findings), limits)


def _fold(findings: list[_Found]) -> Outcome | None:
    """What these findings can only mean. The policy folds; this notices when it did not."""
    levels = {found.level for found in findings}
    if Level.DENY in levels:
        return Outcome.DENY
    return Outcome.CONFIRM if Level.CONFIRM in levels else Outcome.ALLOW


def _finding(point: Point, found: _Found, catalogue: Catalogue) -> Finding:
    words = catalogue.words(point.name, found.code)
    if words is None:
        raise _malformed("has a code that its catalogue does not know")
    message = words.title if found.message is None else found.message
    return Finding(code=found.code, level=found.level, message=message, subject=found.subject, remedy=words.remedy)


def _limits(point: Point, limits: dict[str, Any] | None) -> Limits:
    try:
        return point.limits.model_validate_json(canonical(limits))
    except (ValidationError, ValueError) as error:
        raise DecideError(
            "the policy allows without the complete limits of this point",
            remedy=_ASK_POLICY,
            code="engine.limit_unenforceable",
        ) from error


def _order(finding: Finding) -> tuple[str, str, str]:
    return (finding.code, finding.subject or "", finding.message)


def _malformed(what: str) -> DecideError:
    return DecideError(f"the policy's answer {what}", remedy=_ASK_POLICY, code="engine.answer_malformed")

"""A recorded decision compared with the verdict of a candidate policy on the same input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.decide import Verdict
from engine.documents.files import printable
from engine.model import Finding, Level, Outcome
from engine.record.model import DecisionRecord, RecordedFinding
from engine.secrets.redaction import redact


class Change(StrEnum):
    """What the candidate decides differently."""

    DENIED = "newly_denied"
    ALLOWED = "newly_allowed"
    ASKED = "newly_asked"
    LIMITS = "other_limits"
    FINDINGS = "other_findings"  # with the same outcome

    @property
    def counts(self) -> bool:
        """Whether the answer changes: another outcome, or an allow with other limits."""
        return self is not Change.FINDINGS


_TO = {Outcome.DENY: Change.DENIED, Outcome.ALLOW: Change.ALLOWED, Outcome.CONFIRM: Change.ASKED}


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding that only one side has, or that has another level there: None for a side without it.

    Of other limits, `code` is the dotted path of the field, `subject` has both values, and the levels are None.
    """

    code: str
    subject: str | None
    before: Level | None
    after: Level | None


def compared(body: DecisionRecord, verdict: Verdict) -> tuple[Change, tuple[Cause, ...]] | None:
    """What changed and why; None if nothing did."""
    limits = None if verdict.limits is None else verdict.limits.model_dump(mode="json")
    return compared_with(body, verdict.outcome, verdict.findings, limits)


def compared_with(
    body: DecisionRecord,
    outcome: Outcome,
    found: Sequence[Finding | RecordedFinding],
    limits: Mapping[str, Any] | None,
) -> tuple[Change, tuple[Cause, ...]] | None:
    """The same for the parts of a verdict, with its limits as JSON."""
    findings = tuple(_findings(body, found))
    if body.outcome is not outcome:
        return _TO[outcome], findings
    if limits != body.limits:
        return Change.LIMITS, tuple(Cause(*field, None, None) for field in sorted(_fields(body.limits, limits)))
    return (Change.FINDINGS, findings) if findings else None


def _findings(body: DecisionRecord, found: Sequence[Finding | RecordedFinding]) -> Iterator[Cause]:
    before = {(one.code, one.subject): one.level for one in body.findings}
    after = {(one.code, redact(one.subject)[0]): one.level for one in found}  # as it would be recorded
    for code, subject in sorted(before.keys() | after.keys(), key=lambda key: (key[0], key[1] or "")):
        old, new = before.get((code, subject)), after.get((code, subject))
        if old is not new:
            yield Cause(code, subject, old, new)


def _fields(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The fields of two limits that differ, each with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            yield from _fields(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif before != after:
        yield path, f"{_value_text(before)} → {_value_text(after)}"


def _value_text(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False, sort_keys=True), 200)

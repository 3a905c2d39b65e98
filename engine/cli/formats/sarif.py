"""Decisions as SARIF 2.1.0, for code scanning: one run, one result a finding.

A deny is an error, a confirm a warning, a warning a note; an allowed request is a result of kind
`pass`. What the engine could not decide is an error too, and the invocation then says that the
run was not successful, with a notification for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engine.cli.formats.show import (
    DRY_RUN,
    WHOLE,
    Kind,
    claim,
    clean,
    encodable,
    findings,
    kind,
    modes,
    relative,
)
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.cli.formats import Context
    from engine.errors import Location
    from engine.report import Explained, Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"deny": "error", "confirm": "warning", "warn": "note"}
_DECISION = "decision."
"""Prefix of the rules that stand for an outcome; a requirement's code has no dot."""


def render(reports: Sequence[Report], context: Context) -> str:
    """A SARIF log. The text is ASCII."""
    rules = _rules(reports)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [result for report in reports for result in _results(report, index, context)]
    run = {
        "tool": {"driver": {"name": "admission-engine", "version": context.version, "rules": rules}},
        "invocations": [_invocation(reports, context)],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"modes": modes(reports)},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """One rule a code, sorted. Its text is left out when findings of one code say different things."""
    said: dict[str, dict[str, Explained]] = {}
    rules = []
    for report in reports:
        found = findings(report)
        for item in found:
            said.setdefault(item.finding.code, {})[claim(item)] = item
        if not found or kind(report) is Kind.ALLOW:
            rules.append(_outcome_rule(kind(report)))
    for code, texts in said.items():
        item = next(iter(texts.values()))
        rule: dict[str, Any] = {
            "id": code,
            "help": _text(clean(item.finding.remedy)),
            "defaultConfiguration": {"level": _LEVELS[item.finding.level.value]},
        }
        if len(texts) == 1:
            rule["shortDescription"] = _text(next(iter(texts)))
        if item.labels:
            rule["properties"] = {"labels": {encodable(name): encodable(value) for name, value in item.labels}}
        rules.append(rule)
    return [rule for _, rule in sorted({rule["id"]: rule for rule in rules}.items())]


def _outcome_rule(outcome: Kind) -> dict[str, Any]:
    return {
        "id": f"{_DECISION}{outcome.value.replace(' ', '_')}",
        "shortDescription": _text(f"the decision on the whole request: {outcome.value}"),
        "help": _text("see the findings of the request, if there are any"),
        "defaultConfiguration": {"level": "none" if outcome is Kind.ALLOW else "error"},
    }


def _results(report: Report, index: dict[str, int], context: Context) -> Iterator[dict[str, Any]]:
    found, answer = findings(report), kind(report)
    common = {"properties": _properties(report)}
    for item in found:
        finding = item.finding
        subject = WHOLE if finding.subject is None else clean(finding.subject)
        yield {
            "ruleId": finding.code,
            "ruleIndex": index[finding.code],
            "level": _LEVELS[finding.level.value],
            "message": _text(f"{subject}: {claim(item)}. fix: {clean(finding.remedy)}"),
            "locations": [_location(report, item.where, finding.subject, context)],
            **common,
        }
    if not found or answer is Kind.ALLOW:
        rule = _outcome_rule(answer)["id"]
        note = f" ({DRY_RUN})" if report.decision.mode.value == "check" else ""
        yield {
            "ruleId": rule,
            "ruleIndex": index[rule],
            "kind": "pass" if answer is Kind.ALLOW else "fail",
            "level": "none" if answer is Kind.ALLOW else "error",
            "message": _text(f"{clean(report.title or report.path)}: {answer.value}{note}"),
            "locations": [_location(report, None, None, context)],
            **common,
        }


def _properties(report: Report) -> dict[str, Any]:
    decision = report.decision
    return {
        "decision_id": decision.decision_id,
        "point": decision.point,
        "mode": decision.mode.value,
        "outcome": decision.outcome.value,
        "policy": None if decision.policy is None else decision.policy.model_dump(),
        "input_digest": decision.input_digest,
    }


def _location(report: Report, where: Location | None, subject: str | None, context: Context) -> dict[str, Any]:
    file = report.path if where is None else where.file
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file, context.base)}}
    if where is not None and where.line is not None:
        physical["region"] = {"startLine": where.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if subject is not None:
        name = clean(subject)
        location["logicalLocations"] = [{"name": name.rsplit("/", 1)[-1], "fullyQualifiedName": name}]
    return location


def _uri(file: str, base: str) -> str:
    """A relative reference, or a `file:` URI for an absolute path that is not below `base`."""
    named = relative(file, base)
    quoted = quote(named.encode("utf-8", "surrogateescape"), safe="/")
    return f"file://{quoted}" if PurePosixPath(named).is_absolute() else quoted


def _invocation(reports: Sequence[Report], context: Context) -> dict[str, Any]:
    broken = [item for report in reports if kind(report).undecided for item in findings(report)]
    failed = broken or context.exit not in {Exit.ALLOW, Exit.CONFIRM, Exit.DENY}
    invocation: dict[str, Any] = {"executionSuccessful": not failed, "exitCode": int(context.exit)}
    if broken:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "descriptor": {"id": item.finding.code},
                "message": _text(f"{claim(item)}. fix: {clean(item.finding.remedy)}"),
            }
            for item in broken
        ]
    return invocation


def _text(text: str) -> dict[str, str]:
    """A message in which brackets are no links and braces no placeholders (sections 3.11.5, 3.11.6)."""
    for char, literal in (("{", "{{"), ("}", "}}"), ("[", "\\["), ("]", "\\]")):
        text = text.replace(char, literal)
    return {"text": text}

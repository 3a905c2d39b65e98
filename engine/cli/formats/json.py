"""Decisions as one JSON document, for programs. Format 1; keys are only ever added.

    {"format": 1, "mode": "check", "exit": 1,
     "reports": [{"path", "title", "exit",
       "decision": {"decision_id", "point", "mode", "outcome", "findings", "limits", "policy", "input_digest"},
       "subjects": ["records/contacts-1"],
       "findings": [{"code", "level", "subject", "requirement", "remedy",
         "found", "where": {"file", "line", "field"}, "rule": {"file", "line"},
         "labels": {"row": "A16"},
         "policy_rows": [{"path", "value", "nearest": [], "where": {"file", "line"}}]}]}]}

`decision` is exactly what was recorded; `findings` adds where each points. Whatever is not known
is null. A policy row whose `where` is null does not exist; `nearest` are keys that are spelled alike.
`exit` is 0 allow, 1 deny, 2 input unreadable, 3 confirm, 4 the engine failed closed, 5 policy bundle
invalid: of one report, and of the command. `mode` is null when there is no report. The text is ASCII.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from engine.cli.formats import Context
from engine.cli.formats.show import encodable, modes
from engine.errors import Location
from engine.policy_bundle.catalogue import PolicyRow
from engine.reports.explain import Explained, Report


def render(reports: Iterable[Report], context: Context) -> str:
    """The document of the module's description."""
    document = {
        "format": 1,
        "mode": ",".join(modes(reports)) or None,
        "exit": int(context.exit),
        "reports": [_report(report) for report in reports],
    }
    return json.dumps(document, indent=2, allow_nan=False, default=str) + "\n"


def _report(report: Report) -> dict[str, Any]:
    return {
        "path": encodable(report.path),
        "title": encodable(report.title),
        "exit": int(report.exit),
        "decision": report.decision.model_dump(mode="json"),
        "subjects": [encodable(subject) for subject in report.subjects],
        "findings": [_finding(item) for item in report.explained],
    }


def _finding(item: Explained) -> dict[str, Any]:
    finding = item.finding
    return {
        "code": finding.code,
        "level": finding.level.value,
        "subject": finding.subject,
        "requirement": finding.requirement,
        "remedy": finding.remedy,
        **({} if finding.waiver is None else {"waiver": finding.waiver}),
        "found": item.found and encodable(item.found),
        "where": item.where and {**_place(item.where), "field": item.where.field and encodable(item.where.field)},
        "rule": item.rule and _place(item.rule),
        "labels": {encodable(name): encodable(value) for name, value in item.labels},
        "policy_rows": [_row(row) for row in item.rows],
    }


def _row(row: PolicyRow) -> dict[str, Any]:
    return {
        "path": encodable(row.path),
        "value": row.value,
        "nearest": [*row.nearest],
        "where": row.where and _place(row.where),
    }


def _place(where: Location) -> dict[str, Any]:
    return {"file": encodable(where.file), "line": where.line}

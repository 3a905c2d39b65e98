"""What the formats share: neutral text, names of files, and what kind of answer a report is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING

import typer

from engine.errors import Exit
from engine.facts.text.nearest import did_you_mean

if TYPE_CHECKING:
    from engine.flow import Answer
    from engine.model import Approval, Decision, Finding
    from engine.policy_bundle.build import PolicyBundle
    from engine.reports.explain import Explained, Report

DRY_RUN = "dry run: nothing was enforced"
_INVALID = "engine.request_invalid"
WHOLE = "whole request"
"""Shown as the subject of a finding about the whole request."""


class Kind(StrEnum):
    """What a reader must distinguish: a deny of the policy is not a fault of the engine."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"
    UNREADABLE = "unreadable"
    INVALID = "invalid request"
    POLICY = "invalid policy"
    FAULT = "engine fault"

    @property
    def undecided(self) -> bool:
        """Whether no rule decided: subjects without a finding are not in order either."""
        return self in {Kind.UNREADABLE, Kind.INVALID, Kind.POLICY, Kind.FAULT}


def kind(report: Report) -> Kind:
    """What kind of answer this is; if several apply, the worst. Looks at every finding: ask once."""
    if report.exit is Exit.UNREADABLE:
        invalid = any(finding.code == _INVALID for finding in report.decision.findings)
        return Kind.INVALID if invalid else Kind.UNREADABLE
    if report.exit is Exit.POLICY_INVALID:
        return Kind.POLICY
    from engine.model import is_reserved

    decided = report.exit in {Exit.ALLOW, Exit.CONFIRM, Exit.DENY}
    if not decided or any(is_reserved(finding.code) for finding in report.decision.findings):
        return Kind.FAULT
    return Kind(report.decision.outcome.value)


def claim(item: Explained) -> str:
    """A finding in a sentence: the unmet requirement, or what prevented a decision."""
    finding = item.finding
    waived = "" if finding.waiver is None else f" (waived by {clean(finding.waiver)})"
    return requirement_text(finding.code, finding.requirement) + waived


def there(item: Explained) -> str | None:
    """What was found instead of what is required, with keys of the policy that are spelled alike; None if not known."""
    rows = [f"{row.path} is not a row of the policy, {did_you_mean(row.nearest)}" for row in item.rows if row.nearest]
    return clean("; ".join(filter(None, (item.found, *rows)))) or None


def finding_text(finding: Finding, approval: Approval | None = None, found: str | None = None) -> str:
    """A finding with what was found and its remedy below it, for commands that print no report.

    `approval` is that of the decision: one that was used is shown in place of the remedy.
    """
    from engine.model import Level

    about = "" if finding.subject is None else f" ({clean(finding.subject)})"
    waived = "" if finding.waiver is None else f" (waived by {clean(finding.waiver)})"
    used = approval is not None and approval.state == "used" and finding.level is Level.CONFIRM
    end = f"approved ({clean(approval.id)})" if approval is not None and used else clean(finding.remedy)
    there_is = "" if found is None else f"\n  found: {found}"
    return f"{finding.code}{about}: {requirement_text(finding.code, finding.requirement)}{waived}{there_is}\n  {end}"


def print_findings(answer: Answer, policy: PolicyBundle | None) -> None:
    """Print every finding of an answer on standard error."""
    from engine.reports.explain import report

    for item in report("", answer, policy).explained:
        typer.echo(finding_text(item.finding, answer.decision.approval, there(item)), err=True)


def approval_lines(decision: Decision) -> list[str]:
    """What to do about a decision that waits for a person's approval."""
    if decision.approval is None or decision.approval.state != "requested":
        return []
    return [
        f"to approve it: engine approvals grant {decision.approval.id}",
        f"then repeat it with --approval {decision.approval.id}",
    ]


def requirement_text(code: str, message: str) -> str:
    """The message of a finding with this code as that sentence."""
    from engine.model import is_reserved

    return f"{'not decided' if is_reserved(code) else 'required'}: {clean(message)}"


def by_subject(report: Report) -> dict[str | None, list[Explained]]:
    """The findings of each subject: the whole request (None) first, then the subjects in their order.

    A subject without findings has an empty list; the whole request is always included.
    """
    found: dict[str | None, list[Explained]] = {None: []}
    found.update((subject, []) for subject in report.subjects)
    for item in report.explained:
        found.setdefault(item.finding.subject, []).append(item)
    return found


def modes(reports: Iterable[Report]) -> list[str]:
    """The modes that occur, sorted; one for every command there is."""
    return sorted({report.decision.mode.value for report in reports})


def clean(text: str) -> str:
    r"""Text that no terminal, log or reader interprets as a command: one line, every character visible.

    Escapes control, format and other invisible characters as `\x1b` or `\u202e`, and breaks up
    `##[`, which a GitHub log interprets anywhere in a line.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    return text.replace("##[", "##\\[") if "##[" in text else text


def encodable(text: str) -> str:
    """The same text, with invalid bytes of a file name escaped, so that it is valid UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def relative(file: str, base: str) -> str:
    """A file below the folder `base` relative to it, any other file as it is named."""
    named = PurePath(os.path.normpath(file))
    return str(named.relative_to(base) if base and named.is_relative_to(base) else named)

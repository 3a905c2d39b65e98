"""What the formats share: neutral text, names of files, and what kind of answer a report is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING

from engine.errors import Exit

if TYPE_CHECKING:
    from engine.model import Finding
    from engine.report import Explained, Report

DRY_RUN = "dry run: nothing was enforced"
WHOLE = "whole request"
"""What stands in the place of a subject when a finding is about the whole request."""


class Kind(StrEnum):
    """What a reader must tell apart: a policy's deny is not an engine that failed closed."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"
    UNREADABLE = "unreadable"
    FAULT = "engine fault"

    @property
    def undecided(self) -> bool:
        """Whether no rule decided: subjects without a finding are not in order either."""
        return self in {Kind.UNREADABLE, Kind.FAULT}


def kind(report: Report) -> Kind:
    """What kind of answer this is; when in doubt, the worst. Looks at every finding: ask once."""
    if report.exit is Exit.UNREADABLE:
        return Kind.UNREADABLE
    if any(_by_engine(finding) for finding in report.decision.findings) or report.exit not in {
        Exit.ALLOW,
        Exit.CONFIRM,
        Exit.DENY,
    }:
        return Kind.FAULT
    return Kind(report.decision.outcome.value)


def claim(item: Explained) -> str:
    """A finding in a sentence: what is required and does not hold, or what kept the engine from deciding."""
    return said(item.finding.code, item.finding.message)


def said(code: str, message: str) -> str:
    """The message of a finding with this code as that sentence."""
    from engine.model import is_reserved

    return f"{'not decided' if is_reserved(code) else 'required'}: {clean(message)}"


def _by_engine(finding: Finding) -> bool:
    from engine.model import is_reserved

    return is_reserved(finding.code)


def findings(report: Report) -> tuple[Explained, ...]:
    """Every finding of the decision once, in order, also one that nobody explained."""
    from engine.report import Explained

    told = {item.finding for item in report.explained}
    bare = (Explained(finding, None, None, (), ()) for finding in report.decision.findings if finding not in told)
    return (*report.explained, *bare)


def by_subject(report: Report) -> dict[str | None, list[Explained]]:
    """The findings of each subject: the whole request (None) first, then the subjects in their order.

    A subject without findings has an empty list; the whole request is there in any case.
    """
    found: dict[str | None, list[Explained]] = {None: []}
    found.update((subject, []) for subject in report.subjects)
    for item in findings(report):
        found.setdefault(item.finding.subject, []).append(item)
    return found


def modes(reports: Sequence[Report]) -> list[str]:
    """The modes that occur, sorted; one for every command there is."""
    return sorted({report.decision.mode.value for report in reports})


def clean(text: str) -> str:
    r"""Text that no terminal, log or reader takes for a command: one line, every character visible.

    Escapes control, format and other invisible characters as `\x1b` or `\u202e`, and breaks up
    `##[`, which a GitHub log obeys anywhere in a line.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escaped(char) for char in text)
    return text.replace("##[", "##\\[") if "##[" in text else text


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def encodable(text: str) -> str:
    """The same text, with the odd bytes of a file name written out so that UTF-8 can carry it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def relative(file: str, base: str) -> str:
    """A file below the folder `base` relative to it, any other file as it is named."""
    named = PurePath(os.path.normpath(file))
    return str(named.relative_to(base) if base and named.is_relative_to(base) else named)

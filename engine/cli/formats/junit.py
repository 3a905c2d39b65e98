"""Decisions as JUnit XML: one suite per request, one test case per subject and one for the whole request.

An unmet requirement is a failure, even if a person could still approve it; an engine
that could not decide is an error, and then the subjects are skipped, not passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from engine.cli.formats import Context
from engine.cli.formats.show import DRY_RUN, WHOLE, Kind, by_subject, claim, clean, kind, there
from engine.documents.files import counted
from engine.model import Level

if TYPE_CHECKING:
    from engine.reports.explain import Explained, Report

_TOTALS = ("tests", "failures", "errors")
_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def render(reports: Iterable[Report], context: Context) -> str:
    """A document of XML 1.0 in UTF-8."""
    root = ET.Element("testsuites", name=f"admission-engine {clean(context.version)}")
    for report in reports:
        root.append(_suite(report))
    return document(root)


def document(root: ET.Element) -> str:
    """The XML of these suites, with their numbers added up."""
    for name in _TOTALS:
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(report: Report) -> ET.Element:
    decision = report.decision
    suite = ET.Element("testsuite", name=clean(report.path))
    facts = {
        "title": report.title,
        "decision_id": decision.decision_id,
        "point": decision.point,
        "mode": decision.mode.value,
        "outcome": decision.outcome.value,
        "rules": None if decision.policy is None else decision.policy.rules,
        "values": None if decision.policy is None else decision.policy.values,
        "input_digest": decision.input_digest,
        "note": DRY_RUN if decision.mode.value == "check" else None,
    }
    properties = ET.SubElement(suite, "properties")
    for name, value in facts.items():
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=clean(value))
    answer = kind(report)
    for subject, items in by_subject(report).items():
        if subject is None:
            suite.append(_whole(report, answer, items))
        else:
            suite.append(_subject(report, answer, subject, items))
    for name, tag in _COUNTS.items():
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    return suite


def _whole(report: Report, answer: Kind, items: list[Explained]) -> ET.Element:
    """The request itself: passed only when it is allowed."""
    case = _case(report, f"{clean(report.title or report.path)} {WHOLE}", items)
    if answer is not Kind.ALLOW:
        count = len(report.decision.findings)
        message = (
            items[0].finding.code if items and answer.undecided else f"{answer.value}: {counted(count, 'finding')}"
        )
        _add_result(case, "error" if answer.undecided else "failure", answer.value, message, items)
    return case


def _subject(report: Report, answer: Kind, subject: str, items: list[Explained]) -> ET.Element:
    case = _case(report, clean(subject), items)
    biting = [item for item in items if item.finding.level is not Level.WARN]
    if answer.undecided and not biting:
        ET.SubElement(case, "skipped", message="not decided")
    elif biting:
        first = min(biting, key=lambda item: item.finding.level is not Level.DENY)
        codes = dict.fromkeys(item.finding.code for item in (first, *biting))
        message = f"{', '.join(codes)}: {claim(first)}"
        _add_result(case, "error" if answer.undecided else "failure", first.finding.level.value, message, biting)
    return case


def _case(report: Report, name: str, items: list[Explained]) -> ET.Element:
    case = ET.Element("testcase", classname=clean(report.decision.point), name=name)
    warnings = [item for item in items if item.finding.level is Level.WARN]
    if warnings:
        ET.SubElement(case, "system-out").text = _text(warnings)
    return case


def _add_result(case: ET.Element, tag: str, word: str, message: str, items: list[Explained]) -> None:
    result = ET.Element(tag, type=clean(word), message=clean(message))
    result.text = _text([item for item in items if item.finding.level is not Level.WARN])
    case.insert(0, result)  # readers expect it before the output


def _text(items: list[Explained]) -> str:
    return "".join(
        f"\n{item.finding.level.value} {clean(item.finding.code)}: {claim(item)}"
        f"{_line('found', there(item))}{_line('at', item.where)}{_line('fix', item.finding.remedy)}\n"
        for item in items
    )


def _line(name: str, value: object) -> str:
    return "" if value is None else f"\n  {name}: {clean(str(value))}"

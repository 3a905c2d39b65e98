"""Decisions as workflow commands, which GitHub shows beside the lines they refer to.

A deny is an error, a confirm or a warning is a warning, an allowed request is a notice. GitHub
shows ten of each per step; a report with more findings lists the first ones and the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from engine.cli.formats import Context
from engine.cli.formats.show import DRY_RUN, WHOLE, Kind, claim, clean, kind, relative, there
from engine.documents.files import counted
from engine.errors import Location

if TYPE_CHECKING:
    from engine.reports.explain import Explained, Report

_MOST = 50
"""Findings printed for one report without `--explain`; GitHub shows fewer, the log has all."""
_LEVELS = {"deny": "error", "confirm": "warning", "warn": "warning"}
_KINDS = {Kind.ALLOW: "notice", Kind.CONFIRM: "warning"}


def render(reports: Iterable[Report], context: Context) -> str:
    """One command a line."""
    lines = [line for report in reports for line in _commands(report, context)]
    return "".join(f"{line}\n" for line in lines)


def _commands(report: Report, context: Context) -> Iterator[str]:
    answer = kind(report)
    level = _KINDS.get(answer, "error")
    found = report.explained
    listed = found if context.explain else found[:_MOST]
    for item in listed:
        yield _finding(report, answer, item, context.base)
    if len(found) > len(listed):
        more = f"{counted(len(found) - len(listed), 'more finding')}; --explain shows all"
        yield command(level, None, answer.value, f"{_name(report)}: {more}", context.base)
    elif not found or answer is Kind.ALLOW:
        yield command(level, None, answer.value, f"{_name(report)}{_mode(report)}", context.base)


def _finding(report: Report, answer: Kind, item: Explained, base: str) -> str:
    finding = item.finding
    level = "error" if answer.undecided else _LEVELS[finding.level.value]
    title = f"{answer.value}: {finding.code}" if answer.undecided else finding.code
    subject = f"{_name(report)} {WHOLE}" if finding.subject is None else clean(finding.subject)
    found = there(item)
    message = f"{subject}: {claim(item)}\n" + (f"found: {found}\n" if found else "")
    message += f"fix: {clean(finding.remedy)}{_mode(report)}"
    return command(level, item.where, title, message, base)


def command(level: str, where: Location | None, title: str, message: str, base: str) -> str:
    """One command, such as `::error file=bundle.yaml,line=3,title=…::message`; files below `base` are relative."""
    properties = {} if where is None else {"file": relative(where.file, base)}
    if where is not None and where.line is not None:
        properties["line"] = str(where.line)
    properties["title"] = title
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {named}::{_data(message)}"


def _name(report: Report) -> str:
    title = clean(report.title)
    return f"{clean(report.path)} ({title})" if title else clean(report.path)


def _mode(report: Report) -> str:
    return f" ({DRY_RUN})" if report.decision.mode.value == "check" else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")

"""Output formats of decisions: one module each, imported on first use.

Every module has a function `render(reports, context) -> str`. The text ends with a line feed, and
equal reports give equal text. No format leaves out a finding without saying how many it left out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from json import dumps, loads  # `json` is a format here
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.cli.terminal import colored
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Answer
    from engine.reports.explain import Report


class ReportFormat(StrEnum):
    """Values of `--format` for reports."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a format needs besides the reports.

    `exit` is the code that the command ends with, `width` is in columns. Files below `base` are
    named relative to it where a format asks for relative names (SARIF, GitHub). `docs` is the address at
    which docs/requirements.md is published, if it is.
    """

    exit: Exit
    explain: bool = False
    color: bool = False
    width: int = 100
    version: str = __version__
    base: str = ""
    docs: str | None = None

    def for_output(self) -> Context:
        """The same for text on standard output, with the width and colors of a terminal if it is one."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else self.width
        return replace(self, width=width, color=colored(sys.stdout))


def render(name: ReportFormat, reports: Iterable[Report], context: Context) -> str:
    """The reports in this format, which looks at them several times."""
    text: str = import_module(f"{__name__}.{name}").render(reports, context)
    return text


def answers_text(engine: Engine, name: str, answers: Iterable[Answer], code: Exit, *, explain: bool = False) -> str:
    """Answers on what has this name, as text for standard output."""
    from engine.reports.explain import report

    reports = [report(name, one, engine.policy) for one in answers]
    return render(ReportFormat.TEXT, reports, Context(exit=code, explain=explain).for_output())


def extended(name: str, report: Report, more: dict[str, Any], lines: Iterable[str]) -> str:
    """One report for standard output, with more at its end: keys of its JSON document, or lines of its text."""
    text = render(ReportFormat(name), [report], Context(exit=report.exit).for_output())
    if name == ReportFormat.JSON:
        return dumps(loads(text) | more, indent=2, ensure_ascii=False) + "\n"
    return text + "".join(f"{line}\n" for line in lines)

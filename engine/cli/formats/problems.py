"""Problems of rules, values, tests and cases in the formats of reports; see `engine policy lint` and `test`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from engine.cli.formats import ReportFormat, github, junit, sarif
from engine.cli.formats.show import clean, relative
from engine.documents.files import counted
from engine.errors import Problem
from engine.version import __version__

_TOOL = "admission-engine"
_HELP = "Each result says what is wrong and how to fix it."


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was checked: the id and title of the check, what passed in words, and what is wrong."""

    id: str
    title: str
    passed: str
    problems: Sequence[Problem]


def render(name: ReportFormat, checked: Sequence[Checked]) -> str:
    """Everything that was checked, in this format; ends with a line feed where there is any text."""
    return _FORMATS[name](checked)


def _text(checked: Sequence[Checked]) -> str:
    lines = [str(problem) for one in checked for problem in one.problems]
    count = len(lines)
    lines += [one.passed for one in checked if not one.problems]
    lines += [counted(count, "problem")] if count else []
    return "".join(f"{line}\n" for line in lines)


def _json(checked: Sequence[Checked]) -> str:
    problems = [
        {"check": one.id, **asdict(found.where), "message": found.message, "remedy": found.remedy}
        for one in checked
        for found in one.problems
    ]
    passed = [{"check": one.id, "message": one.passed} for one in checked if not one.problems]
    return json.dumps({"problems": problems, "passed": passed}, indent=2, ensure_ascii=False) + "\n"


def _github(checked: Sequence[Checked]) -> str:
    lines = []
    for one in checked:
        for problem in one.problems:
            text = f"{clean(problem.message)}\nfix: {clean(problem.remedy)}"
            lines.append(github.command("error", problem.where, one.title, text, str(Path.cwd())))
        if not one.problems:
            lines.append(github.command("notice", None, one.title, clean(one.passed), ""))
    return "".join(f"{line}\n" for line in lines)


def _junit(checked: Sequence[Checked]) -> str:
    root = ET.Element("testsuites", name=f"{_TOOL} {__version__}")
    for one in checked:
        count = max(len(one.problems), 1)
        failures = str(len(one.problems))
        suite = ET.SubElement(root, "testsuite", name=one.title, tests=str(count), failures=failures, errors="0")
        for problem in one.problems:
            case = ET.SubElement(suite, "testcase", classname=one.id, name=clean(str(problem.where)))
            case.set("file", clean(relative(problem.where.file, str(Path.cwd()))))
            if problem.where.line is not None:
                case.set("line", str(problem.where.line))
            failure = ET.SubElement(case, "failure", type=one.id, message=clean(problem.message))
            failure.text = f"\n{clean(str(problem.where))}: {clean(problem.message)}\n  fix: {clean(problem.remedy)}\n"
        if not one.problems:
            ET.SubElement(suite, "testcase", classname=one.id, name=one.passed)
    return junit.document(root)


def _sarif(checked: Sequence[Checked]) -> str:
    rules = {one.id: one.title for one in checked}
    index = {name: number for number, name in enumerate(rules)}
    results = [_result(one, index[one.id], problem) for one in checked for problem in one.problems]
    driver = {
        "name": _TOOL,
        "version": __version__,
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": title},
                "fullDescription": {"text": title},
                "help": {"text": _HELP},
            }
            for name, title in rules.items()
        ],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return sarif.log(run)


def _result(one: Checked, index: int, problem: Problem) -> dict[str, Any]:
    return {
        "ruleId": one.id,
        "ruleIndex": index,
        "level": "error",
        "message": sarif.message(f"{clean(problem.message)}. fix: {clean(problem.remedy)}"),
        "locations": [sarif.place(problem.where.file, problem.where.line, str(Path.cwd()))],
    }


_FORMATS: Mapping[ReportFormat, Callable[[Sequence[Checked]], str]] = {
    ReportFormat.TEXT: _text,
    ReportFormat.JSON: _json,
    ReportFormat.SARIF: _sarif,
    ReportFormat.JUNIT: _junit,
    ReportFormat.GITHUB: _github,
}

"""Problems of rules, values, tests and cases in the formats of reports; see `engine policy lint` and `test`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from engine.cli.formats import ReportFormat
from engine.cli.formats.show import clean, relative
from engine.version import __version__

if TYPE_CHECKING:
    from engine.errors import Problem

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
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
    lines += [f"{count} problem{'' if count == 1 else 's'}"] if count else []
    return "".join(f"{line}\n" for line in lines)


def _json(checked: Sequence[Checked]) -> str:
    problems = [{"check": one.id, **_fields(problem)} for one in checked for problem in one.problems]
    passed = [{"check": one.id, "message": one.passed} for one in checked if not one.problems]
    return json.dumps({"problems": problems, "passed": passed}, indent=2, ensure_ascii=False) + "\n"


def _fields(problem: Problem) -> dict[str, Any]:
    where = problem.where
    place = {"file": where.file, "line": where.line, "field": where.field}
    return {**place, "message": problem.message, "remedy": problem.remedy}


def _github(checked: Sequence[Checked]) -> str:
    return "".join(f"{line}\n" for one in checked for line in _commands(one))


def _commands(one: Checked) -> Iterator[str]:
    for problem in one.problems:
        line = "" if problem.where.line is None else f",line={problem.where.line}"
        file, title = _property(_file(problem)), _property(one.title)
        message = _data(f"{clean(problem.message)}\nfix: {clean(problem.remedy)}")
        yield f"::error file={file}{line},title={title}::{message}"
    if not one.problems:
        yield f"::notice title={_property(one.title)}::{_data(clean(one.passed))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")


def _junit(checked: Sequence[Checked]) -> str:
    root = ET.Element("testsuites", name=f"{_TOOL} {__version__}")
    for one in checked:
        count = max(len(one.problems), 1)
        failures = str(len(one.problems))
        suite = ET.SubElement(root, "testsuite", name=one.title, tests=str(count), failures=failures, errors="0")
        for problem in one.problems:
            case = ET.SubElement(suite, "testcase", classname=one.id, name=clean(str(problem.where)))
            case.set("file", clean(_file(problem)))
            if problem.where.line is not None:
                case.set("line", str(problem.where.line))
            failure = ET.SubElement(case, "failure", type=one.id, message=clean(problem.message))
            failure.text = f"\n{clean(str(problem.where))}: {clean(problem.message)}\n  fix: {clean(problem.remedy)}\n"
        if not one.problems:
            ET.SubElement(suite, "testcase", classname=one.id, name=one.passed)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


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
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(one: Checked, index: int, problem: Problem) -> dict[str, Any]:
    file = _file(problem)
    uri = quote(file.encode("utf-8", "surrogateescape"), safe="/")
    place = {
        "artifactLocation": {"uri": f"file://{uri}" if PurePath(file).is_absolute() else uri},
        "region": {"startLine": problem.where.line or 1},  # GitHub shows nothing without a line
    }
    return {
        "ruleId": one.id,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": _literal(f"{clean(problem.message)}. fix: {clean(problem.remedy)}")},
        "locations": [{"physicalLocation": place}],
    }


def _literal(text: str) -> str:
    """A message in which brackets are no links and braces no placeholders."""
    for char, literal in (("{", "{{"), ("}", "}}"), ("[", "\\["), ("]", "\\]")):
        text = text.replace(char, literal)
    return text


def _file(problem: Problem) -> str:
    return relative(problem.where.file, str(Path.cwd()))


_FORMATS: Mapping[ReportFormat, Callable[[Sequence[Checked]], str]] = {
    ReportFormat.TEXT: _text,
    ReportFormat.JSON: _json,
    ReportFormat.SARIF: _sarif,
    ReportFormat.JUNIT: _junit,
    ReportFormat.GITHUB: _github,
}

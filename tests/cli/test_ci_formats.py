"""Reports as the programs that read them want them: SARIF as GitHub takes it, JUnit as its schema says.

The rules of SARIF are those of Microsoft's validator for GitHub (its ids are named) and of GitHub's page "SARIF
support for code scanning"; the content model of JUnit is that of `junit-10.xsd` of the Jenkins plugin xUnit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from engine.cli.formats.sarif import _MOST_RESULTS
from tests.cli.test_formats import ALL, denied, found, hostile, reported, told
from tests.command import Command
from tests.conftest import BUNDLES
from tests.facilities import needs

PAGE = "https://example.org/docs/requirements.md"
REPORTS = {**ALL, "hostile": [hostile()], "none": []}


@pytest.mark.parametrize("name", REPORTS)
def test_the_sarif_meets_the_requirements_of_github(name: str) -> None:
    log = json.loads(told("sarif", REPORTS[name], docs=PAGE))
    assert [f"{problem}: {log}" for problem in refused_by_github(log)] == []


def refused_by_github(log: dict[str, Any]) -> Iterator[str]:
    """What GitHub refuses, hides or warns of in a log of one run."""
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    checks = {
        "GH1011 schema": log["$schema"].endswith("/sarif-schema-2.1.0.json"),
        "GH1013 version": log["version"] == "2.1.0",
        "GH1018 driver": bool(driver["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"]),
        "GH1004 results": len(run["results"]) <= 25_000,
        "GH1004 rules": len(driver["rules"]) <= 25_000,
    }
    yield from (name for name, holds in checks.items() if not holds)
    for rule in driver["rules"]:
        yield from (f"GH2012 {rule['id']}: {lack}" for lack in _lacks_of_rule(rule))
    for result in run["results"]:
        yield from (f"{result['ruleId']}: {lack}" for lack in _lacks_of_result(result, driver["rules"]))


def _lacks_of_rule(rule: dict[str, Any]) -> Iterator[str]:
    texts = (rule["shortDescription"]["text"], rule["fullDescription"]["text"], rule["help"]["text"])
    checks = {
        "texts": all(texts) and all(len(text) <= 1_024 for text in texts[:2]),
        "markdown": bool(rule["help"]["markdown"]),
        "name": re.fullmatch(r"[A-Z]\w*", rule["name"]) and rule["name"] != rule["id"],
        "address": re.fullmatch(re.escape(PAGE) + r"#[\w:-]+", rule.get("helpUri", f"{PAGE}#none")),
        "level": rule["defaultConfiguration"]["level"] in {"error", "warning", "note"},
        "tags": len(rule["properties"]["tags"]) <= 20,
    }
    yield from (name for name, holds in checks.items() if not holds)


def _lacks_of_result(result: dict[str, Any], rules: list[dict[str, Any]]) -> Iterator[str]:
    (place,) = (location["physicalLocation"] for location in result["locations"])
    checks = {
        "GH1001, GH1005, GH1006 relative address": not place["artifactLocation"]["uri"].startswith(("/", "file:")),
        "GH1003 line": place["region"]["startLine"] >= 1,
        "GH1007 words": bool(result["message"]["text"]) and "id" not in result["message"],
        "GH1015 rule": rules[result["ruleIndex"]]["id"] == result["ruleId"],
        "GitHub shows every result as an alert": result.get("kind", "fail") == "fail" and result["level"] != "none",
        "fingerprint": re.fullmatch(r"[0-9a-f]{32}:\d+", result["partialFingerprints"]["primaryLocationLineHash"]),
    }
    yield from (name for name, holds in checks.items() if not holds)


def test_a_finding_keeps_its_fingerprint_when_its_line_moves_and_shares_it_with_no_other() -> None:
    def prints(*lines: int) -> list[str]:
        items = [found(subject=f"records/{name}", line=line) for name, line in zip("abb", lines, strict=True)]
        results = json.loads(told("sarif", [reported(*items)]))["runs"][0]["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    assert prints(1, 2, 3) == prints(4, 5, 6)
    assert len(set(prints(1, 2, 3))) == 3


@pytest.mark.full
def test_sarif_says_how_many_results_were_too_many_and_keeps_the_worst() -> None:
    items = [found("license_review_required", f"records/{number}") for number in range(_MOST_RESULTS)]
    (run,) = json.loads(told("sarif", [reported(*items), denied()]))["runs"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (len(run["results"]), notification["message"]["text"].partition(" ")[0]) == (_MOST_RESULTS, "5")


@pytest.mark.full
@needs("sarif-multitool")
def test_the_validator_of_microsoft_finds_nothing_wrong(command: Command, tmp_path: Path) -> None:
    log = tmp_path / "report.sarif"
    command.check(BUNDLES, "--output", f"sarif={log}", "--docs", PAGE, cwd=BUNDLES.parent)
    judged = tmp_path / "judged.sarif"
    line = ["Sarif.Multitool", "validate", str(log), "--rule-kind", "Sarif;Gh;Ghas", "--output", str(judged)]
    environment = {"PATH": os.environ["PATH"], "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "HOME": str(tmp_path)}
    subprocess.run(line, env=environment, capture_output=True, check=True, timeout=120)
    (run,) = json.loads(judged.read_text(encoding="utf-8-sig"))["runs"]
    assert [result for result in run["results"] if result.get("level", "warning") in {"error", "warning"}] == []


_COUNTS = {"tests", "failures", "errors"}
JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", *_COUNTS}, {"testsuite"}),
    "testsuite": (
        {"name", *_COUNTS},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    **{name: (set(), {"type", "message"}, set()) for name in ("skipped", "error", "failure")},
    **{name: (set(), set(), set()) for name in ("system-out", "system-err")},
}
"""Of each element: attributes that must be there, attributes that may be, and the elements in it."""


@pytest.mark.parametrize("name", REPORTS)
def test_junit_is_valid_by_its_schema(name: str) -> None:
    root = ET.fromstring(told("junit", REPORTS[name]))  # noqa: S314 (our own text)
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children = JUNIT[element.tag]
        assert required <= element.attrib.keys() <= required | optional, element.tag
        assert {child.tag for child in element} <= children, element.tag


def test_a_failure_of_junit_has_requirement_place_and_fix() -> None:
    root = ET.fromstring(told("junit", [reported(found())]))  # noqa: S314 (our own text)
    (failure,) = root.iterfind(".//testcase[@name='records/contacts-2']/*")
    assert failure.get("message") == "license_unknown: required: The license of every record is in our table"
    for line in (
        "deny license_unknown: required: The license of every record is in our table",
        "  at: bundles/contacts/bundle.yaml:31 (records.1.license)",
        "  fix: Ask compliance to decide on the license in policy/licenses.yaml",
    ):
        assert line in (failure.text or "").splitlines()

"""Ordinary calls are allowed and hostile ones are not, under one policy: `fixtures/tool_calls/arguments`."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.cases.run import Runner
from tests.conftest import ROOT
from tests.expect import there
from tests.first_hour.pages import blocks

SETS = ROOT / "fixtures" / "tool_calls" / "arguments"
MOST_REFUSED = 0.03
"""Share of ordinary calls that may be refused."""


PAGE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")


def read(path: Path | str) -> Any:
    return YAML(typ="safe").load(path)


def laid_over(below: Any, above: Any) -> Any:
    """JSON Merge Patch (RFC 7396)."""
    if not isinstance(above, dict):
        return above
    found = copy.deepcopy(below) if isinstance(below, dict) else {}
    for name, value in above.items():
        found[name] = laid_over(found.get(name), value)
    return {name: value for name, value in found.items() if value is not None}


def requests(path: Path) -> list[Any]:
    """The requests of a file; an entry that is no mapping is the value of its `argument`."""
    stated = read(path)
    found = []
    for entry in stated["calls"]:
        request = laid_over(stated["request"], entry if isinstance(entry, dict) else {})
        if not isinstance(entry, dict):
            request["call"].setdefault("arguments", {})[stated["argument"]] = entry
        found.append(request)
    return found


def codes(runner: Runner, request: Any) -> list[str]:
    """The codes of the findings; none for a call that is allowed."""
    decision = runner.engine(read(SETS / "values.yaml")).check("tool_call", request).decision
    found = [finding.code for finding in decision.findings]
    assert (decision.outcome == "allow") is (found == []), decision
    return found


def test_ordinary_calls_are_allowed(runner: Runner) -> None:
    asked = requests(SETS / "ordinary.yaml")
    refused = [(request["call"], found) for request in asked if (found := codes(runner, request))]
    assert len(asked) >= 90
    assert len(refused) <= MOST_REFUSED * len(asked), refused


@pytest.mark.parametrize("path", sorted((SETS / "hostile").glob("*.yaml")), ids=lambda path: path.stem)
def test_hostile_calls_are_not_allowed(runner: Runner, path: Path) -> None:
    allowed = [request["call"] for request in requests(path) if codes(runner, request) == []]
    assert allowed == []


def documented() -> list[tuple[str, Any, str]]:
    section = there(re.search(r"## Write rules about arguments\n(.*?)\n## ", PAGE, re.DOTALL))[1]
    rows = re.findall(r"^\| `(\w+)` \| `(\{.*\})` \| (\w+) \|$", section, re.MULTILINE)
    return [(tool, json.loads(arguments), outcome) for tool, arguments, outcome in rows]


@pytest.mark.parametrize(("tool", "arguments", "outcome"), documented())
def test_the_documented_rules_decide_as_documented(tool: str, arguments: Any, outcome: str, runner: Runner) -> None:
    values = next(read(block) for block in blocks("docs/tools.md", "yaml") if "refunds_create" in block)
    values = {"tools": {name: {f"+{row}": value for row, value in rows.items()} for name, rows in values.items()}}
    request = {"call": {"name": tool, "arguments": arguments}, "policy": "shop", "profile": "coding"}
    assert runner.engine(values).check("tool_call", request).decision.outcome == outcome

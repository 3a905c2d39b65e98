"""Ordinary commands are allowed and hostile ones are not, under one policy: `fixtures/tool_calls/commands`."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.cases.run import Runner
from engine.flow import Context
from tests.conftest import ROOT
from tests.points.test_tool_argument_sets import requests

SETS = ROOT / "fixtures" / "tool_calls" / "commands"
MOST_REFUSED = 0.03
"""Share of ordinary commands that may be refused."""

STEP = 100
"""Hostile commands of one test."""


def read(name: str) -> Any:
    return YAML(typ="safe").load(SETS / name)


def codes(runner: Runner, request: Any) -> list[str]:
    """The codes of the findings; none for a command that is allowed."""
    decision = runner.engine(VALUES).check("tool_call", request, Context(run="run-1")).decision
    found = [finding.code for finding in decision.findings]
    assert (decision.outcome == "allow") is (found == []), decision
    return found


VALUES = read("values.yaml")
ORDINARY, HOSTILE = requests(SETS / "ordinary.yaml"), requests(SETS / "hostile.yaml")


def test_ordinary_commands_are_allowed(runner: Runner) -> None:
    refused = [(request["call"], found) for request in ORDINARY if (found := codes(runner, request))]
    assert len(ORDINARY) >= 75
    assert len(refused) <= MOST_REFUSED * len(ORDINARY), refused


@pytest.mark.full(after=1)
@pytest.mark.parametrize("first", range(0, len(HOSTILE), STEP))
def test_hostile_commands_are_not_allowed(runner: Runner, first: int) -> None:
    assert len(HOSTILE) >= 550
    allowed = [one["call"] for one in HOSTILE[first : first + STEP] if codes(runner, one) == []]
    assert allowed == []

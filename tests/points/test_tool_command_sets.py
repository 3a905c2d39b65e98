"""Ordinary commands are allowed and hostile ones are not, under one policy: `fixtures/tool_calls/commands`."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.cases.run import Runner
from tests.conftest import ROOT

SETS = ROOT / "fixtures" / "tool_calls" / "commands"
MOST_REFUSED = 0.03
"""Share of ordinary commands that may be refused."""

STEP = 100
"""Hostile commands of one test."""


def read(name: str) -> Any:
    return YAML(typ="safe").load(SETS / name)


def codes(runner: Runner, command: Any) -> list[str]:
    """The codes of the findings; none for a command that is allowed."""
    request = {**REQUEST, "call": {**REQUEST["call"], "arguments": {"command": command}}}
    decision = runner.engine(VALUES).check("tool_call", request).decision
    found = [finding.code for finding in decision.findings]
    assert (decision.outcome == "allow") is (found == []), decision
    return found


VALUES, REQUEST = read("values.yaml"), read("ordinary.yaml")["request"]
ORDINARY, HOSTILE = read("ordinary.yaml")["calls"], read("hostile.yaml")["calls"]


def test_ordinary_commands_are_allowed(runner: Runner) -> None:
    refused = [(command, found) for command in ORDINARY if (found := codes(runner, command))]
    assert len(ORDINARY) >= 60
    assert len(refused) <= MOST_REFUSED * len(ORDINARY), refused


@pytest.mark.full(after=1)
@pytest.mark.parametrize("first", range(0, len(HOSTILE), STEP))
def test_hostile_commands_are_not_allowed(runner: Runner, first: int) -> None:
    assert len(HOSTILE) >= 250
    allowed = [one for one in HOSTILE[first : first + STEP] if codes(runner, one) == []]
    assert allowed == []

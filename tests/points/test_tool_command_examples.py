"""The examples of `Rules for commands` in docs/tools.md are decided as they say."""

from __future__ import annotations

import re

import pytest
from ruamel.yaml import YAML

from engine.cases.run import Runner
from tests.conftest import ROOT

_SECTION = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8").split("## Rules for commands")[1].split("\n## ")[0]
_EXAMPLES = [
    (command.replace("\\|", "|"), outcome)
    for command, outcome in re.findall(r"^\| `(.+)` \| (allow|confirm|deny) \|", _SECTION, re.MULTILINE)
]
_RULES = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", _SECTION, re.DOTALL)[0])
_VALUES = {
    "tools": {
        "rulesets": {"+example": _RULES},
        "policies": {"+example": {"base": "deny_all_visible", "rulesets": ["example"], "principals": "any"}},
    }
}


@pytest.mark.parametrize(("command", "outcome"), _EXAMPLES)
def test_each_documented_example_has_its_stated_outcome(runner: Runner, command: str, outcome: str) -> None:
    call = {"name": "shell", "arguments": {"command": command}}
    request = {"call": call, "policy": "example", "profile": "coding", "cwd": "/srv/project"}
    decision = runner.engine(_VALUES).check("tool_call", request).decision
    assert decision.outcome == outcome, decision


def test_examples_exist_for_every_outcome() -> None:
    assert {outcome for _, outcome in _EXAMPLES} == {"allow", "confirm", "deny"}

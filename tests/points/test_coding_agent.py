"""Calls of coding agents under the recipe `bundles/coding_agent`: `fixtures/tool_calls/coding_agent`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import Engine, Settings
from engine.flow import Context
from engine.model import Mode
from tests.conftest import ROOT
from tests.points.test_tool_argument_sets import SETS, requests

CALLS = SETS.parent / "coding_agent"
LOOKS = re.compile(r"(\(|bash -c ')?(cat|cd|diff|grep|jq|sort|wc) [^|]*")
"""Commands that read files of the project, among them some that other policies keep secret."""


@pytest.fixture(scope="module")
def coding(module_settings: Settings) -> Iterator[Engine]:
    with Engine(replace(module_settings, recipe=ROOT / "bundles" / "coding_agent")) as engine:
        yield engine


def outcomes(engine: Engine, file: Path, policy: str) -> list[tuple[Any, str]]:
    """The calls of a file, each with its outcome under this policy."""
    stated = [{**one, "policy": policy} for one in requests(file)]
    decided = engine.decide_many("tool_call", stated, Context(run="run-1"), Mode.CHECK)
    return [(one["call"], str(answer.decision.outcome)) for one, answer in zip(stated, decided, strict=True)]


def test_what_a_coding_agent_does_all_day_is_allowed(coding: Engine) -> None:
    decided = outcomes(coding, CALLS / "allowed.yaml", "coding")
    assert len(decided) >= 200
    assert [one for one in decided if one[1] != "allow"] == []


@pytest.mark.parametrize("policy", ["coding", "coding_careful"])
def test_what_leaves_the_project_or_loses_work_waits_for_a_person(coding: Engine, policy: str) -> None:
    decided = outcomes(coding, CALLS / "asked.yaml", policy)
    assert len(decided) >= 50
    assert [one for one in decided if one[1] != "confirm"] == []


def test_without_a_person_it_is_not_allowed(coding: Engine) -> None:
    decided = outcomes(coding, CALLS / "asked.yaml", "coding_unattended")
    assert [one for one in decided if one[1] == "allow"] == []


@pytest.mark.parametrize("policy", ["coding", "coding_careful", "coding_unattended"])
def test_secrets_and_system_files_are_refused(coding: Engine, policy: str) -> None:
    decided = outcomes(coding, CALLS / "refused.yaml", policy)
    assert [one for one in decided if one[1] != "deny"] == []


def test_the_careful_policy_only_looks(coding: Engine) -> None:
    decided = outcomes(coding, SETS.parent / "commands" / "hostile.yaml", "coding_careful")
    allowed = [str(one["arguments"]["command"]) for one, outcome in decided if outcome == "allow"]
    assert len(decided) >= 550
    assert [one for one in allowed if not LOOKS.fullmatch(one)] == []

"""A policy with a gap of each kind, and a record of calls under it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.coverage import Gap, Kind, ToolValues
from engine.model import Decision, Finding, Level, Limits, Mode, Outcome, Revisions
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.record.model import DecisionRecord
from engine.settings import Settings
from tests.record.samples import DIGEST, TIME, VERSIONS, open_log

TOOLS = Path(__file__).parent / "tools.yaml"
Make = Callable[[str], ToolValues]


class Permitted(Limits):
    """As much of the limits of a call as a record needs to name its rule."""

    rule: str


def subjects(gaps: list[Gap], kind: Kind) -> list[str]:
    return [gap.subject for gap in gaps if gap.kind is kind]


@pytest.fixture
def folder(policy: Path) -> Path:
    """policy/ as shipped, with the tools of tools.yaml."""
    shutil.copyfile(TOOLS, policy / "tools.yaml")
    return policy


@pytest.fixture
def make(folder: Path, settings: Settings) -> Make:
    """The values with another text in the place of tools.yaml."""

    def made(text: str) -> ToolValues:
        (folder / "tools.yaml").write_text(text, encoding="utf-8")
        sources = PolicySources(settings.rego, folder, settings.recipe)
        return ToolValues(build(sources, POINTS, find_binary(), settings.cache))

    return made


@pytest.fixture
def values(make: Make) -> ToolValues:
    return make(TOOLS.read_text(encoding="utf-8"))


def call(
    number: int, document: dict[str, Any], rule: str | None = None, *codes: str, time: str = TIME
) -> DecisionRecord:
    """The record of one decision on a tool call."""
    findings = [Finding(code=code, level=Level.DENY, requirement="-", subject=None, remedy="-") for code in codes]
    decision = Decision(
        decision_id=f"{number:032x}",
        point="tool_call",
        mode=Mode.ENFORCE,
        outcome=Outcome.ALLOW if rule else Outcome.DENY,
        findings=tuple(findings),
        limits=None if rule is None else Permitted(rule=rule),
        policy=Revisions(rules="sha256:" + "a" * 64, values="sha256:" + "b" * 64),
        input_digest=DIGEST,
    )
    durations = {"gather": 1, "decide": 1}
    return DecisionRecord.of(decision, time=time, document=document, versions=VERSIONS, durations=durations)


def asked(tool: str, *origins: str, policy: str = "assistant", profile: str = "coding") -> dict[str, Any]:
    """The input of a call that asks for these origins."""
    destinations = [{"id": f"arguments/{index}", "canonical": True, "origin": one} for index, one in enumerate(origins)]
    return {
        "point": "tool_call",
        "context": {"policy": policy, "profile": profile},
        "call": {"tool": tool},
        "destinations": [*destinations, {"id": "arguments/x", "canonical": False}],
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A state folder with a few calls in its record."""
    state = tmp_path / "recorded"
    with open_log(state) as log:
        log.append(call(1, asked("files_read"), "workspace/own_folder"))
        log.append(call(2, asked("http_get", "https://docs.example.com"), "workspace/docs"))
        later = "2026-11-22T00:00:00.000000Z"
        wanted = asked("http_get", "https://other.example.net", "https://docs.example.com")
        log.append(call(3, wanted, None, "denied_by_default", time=later))
        log.append(call(4, asked("mail_send", "https://docs.example.com"), None, "denied_by_rule", time=later))
    return state

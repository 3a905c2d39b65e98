"""What admits a tool call besides rules: prefixes that outlive a restart, and a person's approval."""

from __future__ import annotations

from contextlib import chdir
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.cases.run import Runner
from engine.engine import Engine
from engine.flow import Answer, Context
from engine.model import Caller, Via
from engine.points.tool_call import ToolCallLimits
from engine.settings import Settings
from engine.state import open_store
from engine.state.rows import PrefixRow
from tests.expect import of, there

LOADED = frozenset({"tool_call"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
AGENT = Caller(via=Via.PROCESS, principal="agent-7")


def call(engine: Engine, name: str, arguments: dict[str, Any], approval: str | None = None, **asked: Any) -> Answer:
    request = {"call": {"name": name, "arguments": arguments}, "policy": "assistant", "profile": "coding", **asked}
    return engine.decide("tool_call", {"cwd": "/work", **request}, context=Context(caller=AGENT, approval=approval))


def admitted(answer: Answer) -> tuple[str, str]:
    """The rule that admitted a call, and on which basis."""
    assert answer.decision.outcome == "allow", answer.decision.findings
    limits = of(ToolCallLimits, answer.decision.limits)
    return limits.rule, limits.basis


# covers: B09.3
def test_an_approved_prefix_is_in_force_after_a_restart(settings: Settings) -> None:
    command = {"command": ["cargo", "test", "--all"]}
    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        assert call(engine, "shell", command).decision.outcome == "confirm"
        store = open_store(settings.state)
        row = store.approve_prefix(
            PrefixRow("agent-7", "/work", "shell", ("cargo", "test"), "ana", SECONDS, SECONDS + 60)
        )
        assert admitted(call(engine, "shell", command)) == (f"prefix:{row.id}", "argument_text_prefix")
    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        assert admitted(call(engine, "shell", command)) == (f"prefix:{row.id}", "argument_text_prefix")
    with Engine(settings, now=lambda: NOW + timedelta(seconds=60), points=LOADED) as engine:
        assert call(engine, "shell", command).decision.outcome == "confirm"
    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        store.revoke_prefix(row.id, SECONDS)
        assert call(engine, "shell", command).decision.outcome == "confirm"
    store.close()


# covers: B04
@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("files_write", {"path": "notes.txt", "text": "hello"}, "base/confirm_all"),
        ("contacts_delete", {"name": "Ada"}, "workspace/ask_before_delete"),
    ],
)
def test_a_person_approves_a_call(settings: Settings, tool: str, arguments: dict[str, Any], rule: str) -> None:
    undoable: dict[str, Any] = {"environment": {"reset": True, "checkpoint": False}}
    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        asked = call(engine, tool, arguments, **undoable).decision
        assert (asked.outcome, asked.limits) == ("confirm", None)
        assert asked.approval is not None
        store = open_store(settings.state)
        store.resolve(asked.approval.id, "granted", "user:ana", "seen", SECONDS)
        store.close()
        other = call(engine, tool, {**arguments, next(iter(arguments)): "other"}, asked.approval.id, **undoable)
        assert "approval_input_changed" in {finding.code for finding in other.decision.findings}
        assert admitted(call(engine, tool, arguments, asked.approval.id, **undoable)) == (rule, "approval")
        again = call(engine, tool, arguments, asked.approval.id, **undoable)
        assert "approval_used" in {finding.code for finding in again.decision.findings}


# covers: B10
def test_the_default_findings_document_the_limits_of_prefixes(runner: Runner) -> None:
    policy = there(runner.engine({}).policy)
    for code in ("denied_by_default", "confirmation_by_default"):
        words = " ".join(policy.catalogue.points["tool_call"].requirements[code].description.split())
        assert "Prefixes compare the text of the arguments only" in words
        assert "guarantee nothing about the program that runs" in words


def test_a_tool_call_decision_is_explained(runner: Runner) -> None:
    engine = runner.engine({})
    answer = engine.check(
        "tool_call",
        {
            "call": {"name": "files_read", "arguments": {"path": "/data/a.txt"}},
            "policy": "assistant",
            "profile": "reading",
            "cwd": "/work",
        },
    )
    told = engine.opa.ask("lib/tools/explanation", there(answer.document)).result
    assert told == {
        "visible": True,
        "base": "confirm_all",
        "policy_known": True,
        "in_profile": True,
        "section": "none",
        "rule": None,
        "basis": None,
        "uncovered": {"destinations": [], "paths": ["arguments/path"], "commands": [], "values": []},
        "beyond": {},
        "needs": ["allow_rule"],
    }


def test_linked_paths_and_paths_outside_the_root_are_refused(settings: Settings, unprotected: Path) -> None:
    work = unprotected / "work"
    (work / "notes").mkdir(parents=True)
    (work / "plain.txt").write_text("x", encoding="utf-8")
    (work / "over").symlink_to("/usr")
    (work / "file.txt").symlink_to(work / "plain.txt")

    def codes(engine: Engine, path: str) -> list[str]:
        got = call(engine, "files_read", {"path": path}, cwd=str(work)).decision
        return sorted(finding.code for finding in got.findings)

    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        assert codes(engine, "plain.txt") == codes(engine, "notes/not-there.txt") == []  # the control
        assert "path_linked" in codes(engine, "over/share/dict")
        assert "path_linked" in codes(engine, "file.txt")
    with Engine(replace(settings, root=work / "notes"), now=lambda: NOW, points=LOADED) as engine:
        assert codes(engine, "notes/not-there.txt") == []
        assert codes(engine, "plain.txt") == ["path_not_looked_at"]
    relative = replace(settings, root=Path("work"))
    with chdir(unprotected), Engine(relative, now=lambda: NOW, points=LOADED) as engine:
        assert codes(engine, "plain.txt") == []

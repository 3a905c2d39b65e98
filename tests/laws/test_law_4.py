"""Law 4: an OPA that is dead or answers nonsense is a deny with a reserved code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from engine.cases.run import CaseFile, Runner
from engine.drive import run
from engine.engine import Engine
from engine.flow import Answer, Services, answer
from engine.model import Mode, Outcome, is_reserved
from engine.opa.generation import Generation
from engine.opa.supervisor import SupervisionLimits
from engine.points.registry import POINTS
from engine.settings import OpaLimits, Settings
from tests.conftest import case_id
from tests.expect import there
from tests.laws.asking import ONE_EACH, Faulty, context, parts, recorded, taken
from tests.processes import stop
from tests.threads import at_once

GARBAGE = {
    "undefined": lambda body: {"provenance": body["provenance"]},
    "null": lambda body: body | {"result": None},
    "text": lambda body: body | {"result": "allow"},
    "true": lambda body: body | {"result": True},
    "empty": lambda body: body | {"result": {}},
    "outcome_only": lambda body: body | {"result": {"outcome": "allow"}},
    "other_outcome": lambda body: body | {"result": body["result"] | {"outcome": "permit"}},
    "allow_with_a_denying_finding": lambda body: (
        body
        | {"result": {"outcome": "allow", "limits": {}, "findings": [{"code": "x", "level": "deny", "subject": None}]}}
    ),
    "allow_without_limits": lambda body: body | {"result": {"outcome": "allow", "findings": []}},
    "deny_without_findings": lambda body: body | {"result": {"outcome": "deny", "findings": []}},
    "unknown_code": lambda body: (
        body | {"result": {"outcome": "deny", "findings": [{"code": "nobody_knows", "level": "deny", "subject": None}]}}
    ),
    "reserved_code": lambda body: (
        body
        | {"result": {"outcome": "deny", "findings": [{"code": "engine.opa_error", "level": "deny", "subject": None}]}}
    ),
    "more_fields": lambda body: body | {"result": body["result"] | {"approved": True}},
}


EACH_GARBAGE = [
    pytest.param(file, name, marks=() if at % len(GARBAGE) == kind else pytest.mark.full)
    for at, file in enumerate(ONE_EACH)
    for kind, name in enumerate(GARBAGE)
]
"""Every answer at every point; in the fast lane each answer somewhere, and each point with one of them."""


# covers: H13.3 H23
@pytest.mark.parametrize(("file", "name"), EACH_GARBAGE, ids=lambda one: one if isinstance(one, str) else case_id(one))
def test_4_a_malformed_answer_is_a_deny_with_a_reserved_code(file: CaseFile, name: str, runner: Runner) -> None:
    engine, got = _changed(file, runner, GARBAGE[name])
    assert got.decision.outcome is Outcome.DENY
    assert is_reserved(got.decision.findings[0].code)
    assert got.exit == 4
    assert recorded(engine, got.decision.decision_id)["outcome"] == "deny"


def test_4_the_same_answer_as_it_was_is_an_allow(runner: Runner) -> None:
    """Positive control: nothing but the change to an answer makes it a deny."""
    for file in ONE_EACH:
        _, got = _changed(file, runner, lambda body: body)
        assert got.decision.outcome is Outcome.ALLOW, file.path


def _changed(file: CaseFile, runner: Runner, change: Callable[[Any], Any]) -> tuple[Engine, Answer]:
    engine, _, _ = taken(runner, file)
    broken = replace(parts(engine), serving=lambda: cast("Any", Faulty(engine, change=change)))
    return engine, run(answer(POINTS[file.case.point], runner.request(file), Mode.ENFORCE, broken, context(file)))


# covers: H13.1
@pytest.mark.own_opa
def test_4_a_dead_opa_is_a_deny_with_a_reserved_code(
    shared_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_again = partial(SupervisionLimits, restart_first_seconds=600)
    monkeypatch.setattr("engine.opa.supervisor.SupervisionLimits", never_again)
    with Runner(shared_settings, tmp_path) as running:
        asked = []
        for file in ONE_EACH:
            engine = running.at(file)
            ask = partial(_enforced, parts(engine), file, running.request(file))
            assert ask().decision.outcome is Outcome.ALLOW, file.path
            asked.append(ask)
        assert isinstance(engine.opa, Generation)
        monkeypatch.setattr(there(engine.opa.server._client), "_limits", OpaLimits(answer_seconds=0.5))
        stop(there(engine.opa.pid))
        slow = at_once(asked)
        engine.opa.server.kill()
        dead = [ask() for ask in asked]
    for file, got in zip(ONE_EACH * 2, slow + dead, strict=True):
        assert [got.decision.findings[0].code, got.exit] == ["policy_unavailable", 4], file.path
        assert got.decision.outcome is Outcome.DENY
        assert recorded(engine, got.decision.decision_id)["findings"][0]["code"] == "policy_unavailable"


def _enforced(services: Services, file: CaseFile, request: Any) -> Answer:
    return run(answer(POINTS[file.case.point], request, Mode.ENFORCE, services, context(file)))

"""Law 10: every decision asks OPA, and without requirements or a permit nothing runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from engine.cases.run import CaseFile, Runner
from engine.drive import run
from engine.engine import Engine
from engine.errors import WorkError
from engine.flow import Context, answer
from engine.model import Mode, Outcome, Permit, Result
from engine.points.registry import POINTS
from engine.settings import Settings
from tests.conftest import ROOT, case_id
from tests.lanes import lane
from tests.laws.asking import ALLOWED, ONE_EACH, Faulty, context, enforced, parts, point_of, recorded, taken


def test_10_without_the_requirements_nothing_is_allowed(
    runner: Runner, shared_settings: Settings, tmp_path: Path
) -> None:
    rego = tmp_path / "rego"
    shutil.copytree(ROOT / "rego", rego, ignore=shutil.ignore_patterns("requirements"))
    own = replace(shared_settings, rego=rego, state=tmp_path / "state")
    with Engine(own) as engine:
        world = parts(engine).gather_context
        for file in ONE_EACH:
            engine.services = replace(parts(engine), gather_context=file.case.world.over(world))
            got = enforced(engine, file, runner.request(file))
            assert got.decision.outcome is Outcome.DENY, file.path
            assert got.exit == 5
            assert recorded(engine, got.decision.decision_id)["outcome"] == "deny"


@pytest.mark.parametrize("file", lane(ALLOWED, point_of), ids=case_id)
def test_10_every_decision_asks_opa(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    deaf = replace(parts(engine), serving=lambda: cast("Any", Faulty(engine, code="policy_unavailable")))
    got = run(answer(POINTS[file.case.point], runner.request(file), Mode.ENFORCE, deaf, context(file)))
    assert got.decision.outcome is Outcome.DENY


def test_a_dry_run_never_gives_a_permit(runner: Runner) -> None:
    ran: list[Permit] = []

    def executor(permit: Permit, _: Any) -> Result:
        ran.append(permit)
        return Result("done", {})

    file = next(file for file in ALLOWED if file.case.bundle)
    engine, _, _ = taken(runner, file)
    for mode in (Mode.CHECK, Mode.ENFORCE):
        got = run(answer(POINTS["source"], runner.request(file), mode, parts(engine), Context(), executor))
        assert got.decision.outcome is Outcome.ALLOW
        assert len(ran) == (mode is Mode.ENFORCE)  # the control: enforced, it runs


def test_a_forged_permit_is_refused() -> None:
    limits = POINTS["source"].limits
    forged = Permit("id", "source", "sha256:" + "0" * 64, None, object())  # type: ignore[arg-type]
    with pytest.raises(WorkError) as caught:
        forged.demand("source", "sha256:" + "0" * 64, limits)
    assert caught.value.code == "engine.permit_missing"

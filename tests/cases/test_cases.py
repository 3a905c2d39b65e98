"""Every case under fixtures/cases gives the decision and the record it wants, on a real OPA."""

from __future__ import annotations

import pytest

from engine.cases import CaseFile, Runner
from engine.points.registry import POINTS
from tests.conftest import CASES, case_id


@pytest.mark.parametrize("file", CASES, ids=case_id)
def test_case(file: CaseFile, runner: Runner) -> None:
    assert runner.differences(file) == []


def test_every_point_has_a_good_and_a_bad_case() -> None:
    """Positive control of the laws: without an allowed case they would hold for nothing."""
    outcomes = {(file.case.point, file.case.want.outcome.value) for file in CASES}
    assert {(point, outcome) for point in POINTS for outcome in ("allow", "deny")} <= outcomes

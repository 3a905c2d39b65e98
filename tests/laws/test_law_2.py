"""Law 2: an unknown field is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cases.run import CaseFile, Runner
from engine.model import Outcome
from tests.conftest import case_id
from tests.lanes import lane
from tests.laws.asking import ALLOWED, OPEN, context, document, facts, outcomes, payload, shape, taken
from tests.laws.mutations import unknown


# covers: H22.1
@pytest.mark.parametrize("file", [file for file in ALLOWED if file.case.bundle], ids=case_id)
def test_2_an_unknown_field_is_refused_in_a_source_bundle(file: CaseFile, runner: Runner, tmp_path: Path) -> None:
    engine, _, _ = taken(runner, file)
    bundle, original = document(file, tmp_path / "bundle")
    found = [facts(engine, bundle, mutant) for _, mutant in unknown(original)]
    assert set(outcomes(engine, [f for f in found if f is not None])) == {"deny"}


# covers: H22.3
@pytest.mark.parametrize("file", lane(ALLOWED, shape), ids=case_id)
def test_2_an_unknown_field_is_refused_in_a_request(file: CaseFile, runner: Runner) -> None:
    engine, _, _ = taken(runner, file)
    for path, mutant in unknown(runner.request(file)):
        if payload(file.case.point, path, itself=True) or (path and path[0] in OPEN.get(file.case.point, ())):
            continue
        got = engine.check(file.case.point, mutant, context(file))
        assert got.decision.outcome is Outcome.DENY, path
        assert got.decision.findings[0].code == "engine.request_invalid"

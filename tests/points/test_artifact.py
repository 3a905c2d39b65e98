"""What is known of an artifact comes from the engine's state alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.cases.run import Runner
from engine.model import Caller, Via
from engine.points import GatherContext
from engine.points.artifact import ArtifactLimits, ArtifactRequest, gather
from engine.state import open_store
from engine.state.rows import ArtifactCheckRow
from tests.conftest import case
from tests.expect import there

SHA = "ab" * 32


def checks(folder: Path, *rows: tuple[str, bool, str]) -> list[dict[str, Any]]:
    request = ArtifactRequest(sha256=SHA, kind="code")
    ask = there(gather(request, GatherContext(clock=lambda: 0, boundaries=tuple)).state)
    with closing(open_store(folder)) as store:
        for number, (name, passed, ran_in) in enumerate(rows):
            assert name in {"sandbox", "validation"}
            store.add_artifact_check(ArtifactCheckRow(SHA, name, passed, ran_in, f"d{number}", number))  # type: ignore[arg-type]
        return ask(store, Caller(via=Via.PROCESS))["checks"]


# covers: A01
def test_the_newest_check_of_each_name_counts(tmp_path: Path) -> None:
    rows = [("sandbox", True, "container"), ("validation", True, "container"), ("sandbox", False, "restricted_process")]
    assert checks(tmp_path, *rows) == [
        {"id": "sandbox", "passed": False, "ran_in": "restricted_process", "decision_id": "d2", "at": 2},
        {"id": "validation", "passed": True, "ran_in": "container", "decision_id": "d1", "at": 1},
    ]


# covers: A01
def test_a_check_followed_by_many_others_is_ignored(tmp_path: Path) -> None:
    rows = [("validation", True, "container"), *[("sandbox", True, "container")] * 128]
    assert [one["id"] for one in checks(tmp_path, *rows)] == ["sandbox"]


# covers: A01
@pytest.mark.parametrize("name", ["checks", "passed", "ran_in", "decision_id"])
def test_a_caller_cannot_state_a_check(name: str) -> None:
    with pytest.raises(ValidationError):
        ArtifactRequest.model_validate({"sha256": SHA, "kind": "code", name: True})


# covers: A01 A02
def test_the_permit_names_the_decisions_it_stands_on(runner: Runner) -> None:
    limits = runner.answer(case("artifact", "solution_in_container")).decision.limits
    assert limits == ArtifactLimits(
        sha256=SHA, kind="solution", ran_in="container", sandbox_decision="run-1", validation_decision="run-2"
    )

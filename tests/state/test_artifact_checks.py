"""Checks of artifacts: what the engine itself saw of each, by digest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.state.rows import ArtifactCheckRow
from engine.state.store import Store
from tests.state.samples import NOW, opened, together

SHA = "c" * 64
NEW = ArtifactCheckRow(SHA, "sandbox", True, "restricted_process", "decision-1", NOW)  # noqa: FBT003


# covers: A01 A02
def test_an_artifact_has_only_its_own_checks(tmp_path: Path, store: Store) -> None:
    assert store.artifact_checks(SHA, 9) == ()
    store.add_artifact_check(NEW)
    store.add_artifact_check(replace(NEW, name="validation", passed=False, decision_id="decision-2"))
    rows = (
        ArtifactCheckRow(SHA, "validation", False, "restricted_process", "decision-2", NOW),  # noqa: FBT003
        ArtifactCheckRow(SHA, "sandbox", True, "restricted_process", "decision-1", NOW),  # noqa: FBT003
    )
    assert store.artifact_checks(SHA, 9) == rows
    assert store.artifact_checks(SHA, 1) == rows[:1]
    assert store.artifact_checks("d" * 64, 9) == ()
    with opened(tmp_path / "state") as another:
        assert another.artifact_checks(SHA, 9) == rows


def test_each_check_is_a_row_of_its_own(store: Store) -> None:
    together(8, lambda number: store.add_artifact_check(replace(NEW, passed=number % 2 == 0)))
    rows = store.artifact_checks(SHA, 99)
    assert sorted(row.passed for row in rows) == [False] * 4 + [True] * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"sha256": "sha256:" + SHA},
        {"sha256": SHA.upper()},
        {"name": "review"},
        {"passed": 1},
        {"passed": None},
        {"ran_in": ""},
        {"decision_id": "\ud800"},
        {"made_at": 1.5},
    ],
    ids=str,
)
def test_an_invalid_check_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is"):
        store.add_artifact_check(replace(NEW, **wrong))
    assert store.artifact_checks(SHA, 9) == ()
    with pytest.raises(ValueError, match="SHA-256"):
        store.artifact_checks("c", 9)

"""Attempts: each try at a task is counted before it is decided on, and has one end."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.state.rows import AttemptRow
from engine.state.store import Store
from tests.state.samples import NOW, opened, together

ID = "0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80"
CODE = "a" * 64
NEW = AttemptRow(ID, "pipeline", "task-1", CODE, NOW)
BEGUN = NEW


def numbered(number: int) -> AttemptRow:
    return replace(NEW, id=str(uuid.UUID(int=number)), code_sha256=f"{number:064x}", created_at=NOW + number)


# covers: C63
def test_an_attempt_is_visible_only_to_its_principal_and_task(tmp_path: Path, store: Store) -> None:
    store.begin_attempt(NEW)
    assert store.attempts("pipeline", "task-1", None, 9) == (BEGUN,)
    assert store.attempts("pipeline", "task-2", None, 9) == store.attempts("", "task-1", None, 9) == ()
    with opened(tmp_path / "state") as another:
        assert another.attempts("pipeline", "task-1", None, 9) == (BEGUN,)


# covers: C63
@pytest.mark.parametrize("state", ["ok", "failed"])
def test_the_first_recorded_end_is_final(store: Store, state: Any) -> None:
    store.begin_attempt(NEW)
    store.end_attempt(ID, state, NOW + 5)
    for other in ("ok", "failed"):
        store.end_attempt(ID, other, NOW + 6)
    store.begin_attempt(replace(NEW, code_sha256="b" * 64))  # the same id twice is once
    store.withdraw_attempt(ID)  # what has ended stays
    assert store.attempts("pipeline", "task-1", None, 9) == (replace(NEW, state=state, ended_at=NOW + 5),)


# covers: C63
def test_only_earlier_attempts_precede_an_attempt(store: Store) -> None:
    for number in range(5):
        store.begin_attempt(numbered(number))
    every = store.attempts("pipeline", "task-1", None, 9)
    assert [row.created_at - NOW for row in every] == [4, 3, 2, 1, 0]
    assert store.attempts("pipeline", "task-1", every[2].id, 9) == every[3:]
    assert store.attempts("pipeline", "task-1", every[0].id, 2) == every[1:3]
    assert store.attempts("pipeline", "task-1", str(uuid.UUID(int=99)), 9) == every  # nobody's try hides any
    store.begin_attempt(replace(numbered(7), task="task-2"))
    assert store.attempts("pipeline", "task-1", str(uuid.UUID(int=7)), 9) == every


def test_a_withdrawn_attempt_is_removed(store: Store) -> None:
    store.begin_attempt(NEW)
    store.withdraw_attempt(ID)
    store.withdraw_attempt(ID)
    assert store.attempts("pipeline", "task-1", None, 9) == ()


def test_concurrent_attempts_are_all_counted(store: Store) -> None:
    together(8, lambda number: store.begin_attempt(numbered(number)))
    assert len(store.attempts("pipeline", "task-1", None, 99)) == 8


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ID.upper()},
        {"id": ""},
        {"principal": None},
        {"task": ""},
        {"task": "x" * 1_025},
        {"task": "\ud800"},
        {"code_sha256": "sha256:" + CODE},
        {"created_at": -1},
        {"created_at": True},
    ],
    ids=str,
)
def test_an_invalid_attempt_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        store.begin_attempt(replace(NEW, **wrong))
    with pytest.raises(ValueError, match="must end as"):
        store.end_attempt(ID, "begun", NOW)  # type: ignore[arg-type]
    assert store.attempts("pipeline", "task-1", None, 9) == ()

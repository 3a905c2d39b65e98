"""Children: one parent each, one end each."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.state.rows import ChildRow
from engine.state.store import Store
from tests.processes import python, said, send_line
from tests.state.samples import NOW, opened, together

ID = "0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80"
NEW = ChildRow(ID, "conversation one", NOW)
RUNNING = NEW


# covers: B22
def test_a_child_has_the_parent_that_started_it(store: Store) -> None:
    assert store.child(ID) is None
    assert store.add_child(NEW) == RUNNING
    assert store.child(ID) == RUNNING
    assert store.add_child(NEW) == RUNNING
    assert store.add_child(replace(NEW, parent="conversation two", created_at=NOW + 1)) == RUNNING
    assert store.children(None, 9) == (RUNNING,)
    for unknown in ("", ID.upper(), ID[:-1], f"{ID}\n", "\ud800"):
        assert store.child(unknown) is None


@pytest.mark.parametrize("state", ["ended", "cancelled", "killed"])
def test_the_first_recorded_end_is_final(tmp_path: Path, store: Store, state: Any) -> None:
    store.add_child(NEW)
    ended = replace(RUNNING, state=state, ended_at=NOW + 5)
    assert store.end_child(ID, state, NOW + 5) == ended
    for other in ("ended", "cancelled", "killed"):
        assert store.end_child(ID, other, NOW + 6) == ended
    assert store.add_child(NEW) == ended  # what ended does not run again
    with opened(tmp_path / "state") as another:
        assert another.child(ID) == ended
    for unknown in (ID[:-1] + "1", "\ud800"):
        assert store.end_child(unknown, "ended", NOW) is None


def test_the_newest_come_first(store: Store) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(6)]
    rows = [store.add_child(ChildRow(id_, f"parent {number % 2}", NOW)) for number, id_ in enumerate(ids)]
    assert store.children(None, 99) == tuple(reversed(rows))
    assert store.children("parent 1", 2) == (rows[5], rows[3])
    assert store.children("parent", 9) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"id": "child"},
        {"id": None},
        {"id": ID.upper()},
        {"id": f"{{{ID}}}"},
        {"id": ID.replace("-", "")},
        {"id": f"{ID}\n"},
        {"id": ID.replace("0", "\u0660")},  # a digit of another script
        {"parent": ""},
        {"parent": "p" * 2000},
        {"parent": "\ud800"},
        {"created_at": -1},
    ],
    ids=lambda changes: ascii(changes)[:50],
)
def test_an_invalid_child_is_refused(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"UUID|text|2\^53"):
        store.add_child(replace(NEW, **changes))
    assert store.children(None, 9) == ()


def test_an_invalid_end_or_query_is_refused(store: Store) -> None:
    store.add_child(NEW)
    for state, now in (("running", NOW), ("gone", NOW), ("ended", -1), ("ended", True)):
        with pytest.raises(ValueError, match=r"states|2\^53"):
            store.end_child(ID, state, now)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text"):
        store.children("", 9)
    with pytest.raises(ValueError, match=r"2\^53"):
        store.children(None, -1)
    assert store.child(ID) == RUNNING


def test_of_concurrent_ends_of_a_child_the_first_is_kept(store: Store) -> None:
    store.add_child(NEW)
    rows = together(12, lambda number: store.end_child(ID, ("ended", "cancelled", "killed")[number % 3], NOW + number))
    assert set(rows) == {store.child(ID)}


CLAIMER = """
import sys
from pathlib import Path
from engine.state.rows import ChildRow
from tests.state.samples import NOW, opened

with opened(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    input()
    print(store.add_child(ChildRow(sys.argv[2], sys.argv[3], NOW)).parent, flush=True)
"""


@pytest.mark.full
def test_of_two_concurrent_processes_one_becomes_the_parent(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with python(CLAIMER, state, ID, "one") as one, python(CLAIMER, state, ID, "two") as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        send_line(one)
        send_line(two)
        parents = {said(one), said(two)}
    with opened(state) as store:
        row = store.child(ID)
    assert row is not None
    assert parents == {row.parent}

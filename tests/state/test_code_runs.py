"""Runs of generated code are found by those who may see them, the newest first, until they expire."""

from __future__ import annotations

from dataclasses import replace

from engine.state.rows import CodeRunRow
from engine.state.store import Store
from tests.state.samples import NOW

ID, OTHER = "3b241101-e2bb-4255-8caf-4136c566a962", "3b241101-e2bb-4255-8caf-4136c566a963"
RUN = CodeRunRow(ID, "process:lee", "ok", "success", None, "{}", NOW, NOW + 1, NOW + 100)


def test_a_run_is_found_until_it_expires(store: Store) -> None:
    other = replace(RUN, id=OTHER, owner="process:kim", result=None)
    for row in (RUN, other, replace(RUN, status="stopped")):
        store.add_code_run(row)
    found = store.code_runs(None, None, NOW + 99, 9)
    assert [replace(row, number=None) for row in found] == [replace(RUN, status="stopped"), other, RUN]
    assert store.code_runs("process:lee", found[0].number, NOW + 99, 9) == (found[2],)
    assert store.code_run(ID, "process:lee", NOW + 99) == found[0]
    assert store.code_run(ID, "process:kim", NOW + 99) is None
    assert store.code_run(ID, None, NOW + 100) is None

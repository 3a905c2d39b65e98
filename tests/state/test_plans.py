"""What every request asks of the state is found by an index, whatever the number of rows of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.state import database
from engine.state.store import Store
from tests.state.samples import NOW
from tests.state.test_code_runs import RUN
from tests.state.test_source_records import PLAIN

ASKED: dict[str, Callable[[Store], Any]] = {
    "add_source_record": lambda store: store.add_source_record(PLAIN, range(9)),
    "source_record": lambda store: store.source_record(PLAIN.source, PLAIN.record),
    "records_with": lambda store: store.records_with(range(9), range(9), 9),
    "blocks_in": lambda store: store.blocks_in([(PLAIN.source, "other")], range(9)),
    "add_code_run": lambda store: store.add_code_run(RUN),
    "code_runs": lambda store: store.code_runs(RUN.owner, None, NOW, 9),
    "code_run": lambda store: store.code_run(RUN.id, RUN.owner, NOW),
    "prefixes": lambda store: store.prefixes("lee", "/work", 9),
    "children": lambda store: store.children("parent", 9),
    "memories": lambda store: store.memories("lee", 9),
}


@pytest.mark.parametrize("asked", ASKED)
def test_no_query_scans_a_whole_table(asked: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add_source_record(replace(PLAIN, record="other"), range(5))
    plans: list[str] = []
    execute = database.SqliteConnection.execute

    def planned(self: database.SqliteConnection, statement: str, *values: Any) -> Any:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            plans.extend(row[3] for row in execute(self, f"EXPLAIN QUERY PLAN {statement}", *values))
        return execute(self, statement, *values)

    monkeypatch.setattr(database.SqliteConnection, "execute", planned, raising=False)
    ASKED[asked](store)
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN")] == []

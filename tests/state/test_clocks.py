"""A clock that is wrong misleads its own engine alone: what others still need stays."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from engine.state.rows import CodeRunRow, Counter
from engine.state.store import Store
from tests.processes import until
from tests.state.samples import LONG_AGO, asked, opened

DAY = 86_400
DAILY = Counter("daily", "", DAY)
TABLES = ("holds", "budgets", "idempotency", "touches", "approvals", "code_runs")


def _use(store: Store, name: str, now: int) -> None:
    """Leave a row in every table from which what is old is removed."""
    store.reserve(name, (DAILY,), now)
    store.begin("scope", name, "body", now)
    store.finish("scope", name, "{}", "rules", "values")
    store.touch(name, ["private"], name, now)
    store.keep_touches(name)
    store.request_approval(asked(requester=name, created_at=now, expires_at=now + 3600))
    store.add_code_run(CodeRunRow(_id(name), name, "ok", "success", None, None, now, now, now + 3600))


def _id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _numbers(store: Any) -> list[int]:
    queries = [f"SELECT count(*) FROM {table}" for table in TABLES]  # noqa: S608
    return [
        store._database.read(lambda connection, query=query: connection.execute(query).fetchone()[0])
        for query in queries
    ]


def _demand_kept(store: Store, now: int) -> None:
    assert store.used(DAILY, now) == 1
    assert store.begin("scope", "now", "body", now).kind == "done"
    assert store.touched("now") == ("private",)
    assert store.code_run(_id("now"), None, now) is not None
    assert store.approvals(None, 9)[-1].requester == "now"


@pytest.mark.parametrize("ahead", [26 * 3600, 8 * DAY, 90 * DAY])
def test_an_engine_whose_clock_is_ahead_removes_nothing_but_what_is_old(ahead: int, tmp_path: Path) -> None:
    now = int(time.time())
    with opened(tmp_path / "state") as store, opened(tmp_path / "state") as other:
        _use(store, "now", now)
        _use(store, "old", LONG_AGO)
        _use(other, "ahead", now + ahead)
        until(lambda: _numbers(store) == [2] * len(TABLES))
        _demand_kept(store, now)


def test_a_clock_that_is_set_ahead_and_back_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(time.time())
    with opened(tmp_path / "state") as store:
        _use(store, "now", now)
        with monkeypatch.context() as ahead:
            ahead.setattr(time, "time", lambda: now + 90 * DAY)
            _use(store, "ahead", now + 90 * DAY)
            _use(store, "more", now + 90 * DAY)
        _demand_kept(store, now)

"""Budgets: the limit also holds for concurrent requests."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine.engine import AsyncEngine, Engine
from engine.flow import Answer, Context
from engine.model import Caller, Mode, Via
from engine.record.verify import verify
from engine.settings import Settings
from tests.command import decisions
from tests.conftest import case
from tests.expect import codes

pytestmark = pytest.mark.threat("DoS")

LOADED = frozenset({"license"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

ACCEPTED: Any = case("license", "accepted").case.request
START = datetime(2026, 11, 21, tzinfo=UTC)


def ceiling(scope: str, limit: int, window: int = 0) -> tuple[str, ...]:
    value = json.dumps({"limit": limit, "window_seconds": window})
    return (f"budgets.budgets.license.{scope}={value}",)


def test_of_concurrent_spends_exactly_the_budget_is_allowed(settings: Settings, *, full: bool) -> None:
    asked = 1000 if full else 200
    with Engine(settings, values=ceiling("all", 100), now=lambda: START, points=LOADED) as engine:
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda _: engine.decide("license", ACCEPTED), range(asked)))
        assert engine.decide("license", ACCEPTED).decision.outcome == "deny"
    outcomes = Counter((answer.decision.outcome.value, *codes(answer)) for answer in answers)
    assert outcomes == {("allow",): 100, ("deny", "budget_exhausted"): asked - 100}
    assert verify(settings.state).ok
    assert Counter(one["outcome"] for one in decisions(settings.state)) == {"allow": 100, "deny": asked - 99}


@pytest.mark.full
def test_the_same_on_an_event_loop_and_in_batches(settings: Settings) -> None:
    async def spend() -> list[Answer]:
        async with AsyncEngine(settings, values=ceiling("all", 100), now=lambda: START, points=LOADED) as engine:
            singles = [engine.decide("license", ACCEPTED) for _ in range(300)]
            batches = [engine.decide_many("license", [ACCEPTED] * 50) for _ in range(4)]
            first, second = await asyncio.gather(asyncio.gather(*singles), asyncio.gather(*batches))
            return [*first, *(answer for batch in second for answer in batch)]

    answers = asyncio.run(spend())
    assert Counter(answer.decision.outcome.value for answer in answers) == {"allow": 100, "deny": 400}


def test_each_principal_and_each_run_counts_alone(settings: Settings) -> None:
    with Engine(
        settings, values=(*ceiling("principal", 1), *ceiling("run", 2)), now=lambda: START, points=LOADED
    ) as engine:

        def ask(principal: str, run: str) -> list[str]:
            caller = Caller(via=Via.PROCESS, principal=principal)
            return codes(engine.decide("license", ACCEPTED, context=Context(caller=caller, run=run)))

        assert [ask("ana", "1"), ask("ana", "2"), ask("ben", "1"), ask("eva", "1")] == [
            [],
            ["budget_exhausted"],
            [],
            ["budget_exhausted"],
        ]
        assert ask("eva", "3") == []  # what was refused was given back to every budget


def test_a_new_window_begins_again(settings: Settings) -> None:
    moment = [START]
    with Engine(settings, values=ceiling("all", 1, 3600), now=lambda: moment[0], points=LOADED) as engine:
        assert codes(engine.decide("license", ACCEPTED)) == []
        assert codes(engine.decide("license", ACCEPTED)) == ["budget_exhausted"]
        moment[0] += timedelta(hours=1)
        assert codes(engine.decide("license", ACCEPTED)) == []


def test_a_denied_request_spends_nothing(settings: Settings) -> None:
    with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
        for _ in range(5):
            assert "license_unknown" in codes(engine.decide("license", {**ACCEPTED, "license": "Nobody-1.0"}))
        assert codes(engine.decide("license", ACCEPTED)) == []


def test_a_request_that_is_interrupted_spends_nothing_and_is_recorded(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(type(engine.opa), "ask", interrupted)
            with pytest.raises(KeyboardInterrupt):
                engine.decide("license", ACCEPTED)
        assert engine.decide("license", ACCEPTED).decision.outcome == "allow"
        assert engine.decide("license", ACCEPTED).decision.outcome == "deny"  # the control: it counts
    assert [one["outcome"] for one in decisions(settings.state)] == ["deny", "allow", "deny"]


def test_a_dry_run_sees_the_count_and_spends_nothing(settings: Settings) -> None:
    with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
        assert [codes(engine.check("license", ACCEPTED)) for _ in range(3)] == [[]] * 3
        engine.decide("license", ACCEPTED)
        assert codes(engine.check("license", ACCEPTED)) == ["budget_exhausted"]


def test_an_unused_amount_is_returned_to_the_budget(settings: Settings) -> None:
    with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
        first = engine.decide("license", ACCEPTED)
        engine.settle(first.decision.decision_id, {"license.all": 0})
        assert codes(engine.decide("license", ACCEPTED)) == []


def test_the_count_outlives_the_engine(settings: Settings) -> None:
    for wanted in ([], ["budget_exhausted"]):
        with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
            assert codes(engine.decide("license", ACCEPTED)) == wanted


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.CHECK])
def test_without_the_state_nothing_that_is_counted_is_allowed(mode: Mode, settings: Settings) -> None:
    settings.state.mkdir()
    (settings.state / "state.sqlite3").write_text("no database", encoding="utf-8")
    with Engine(settings, values=ceiling("all", 1), now=lambda: START, points=LOADED) as engine:
        got = (engine.decide if mode is Mode.ENFORCE else engine.check)("license", ACCEPTED)
    assert (got.decision.outcome, codes(got), got.exit) == ("deny", ["engine.state_unavailable"], 4)


def test_a_point_without_a_row_allows_nothing(settings: Settings, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(settings.policy, policy)
    text = (policy / "budgets.yaml").read_text(encoding="utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("  license:")]
    (policy / "budgets.yaml").write_text("\n".join(kept), encoding="utf-8")
    with Engine(replace(settings, policy=policy), now=lambda: START, points=LOADED) as engine:
        assert codes(engine.decide("license", ACCEPTED)) == ["budget_unknown"]

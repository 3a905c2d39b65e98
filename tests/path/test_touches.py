"""What a run has touched: kept once a call is allowed, and given back after anything else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.engine import Engine
from engine.flow import Context
from engine.settings import Settings
from tests.conftest import case

RUN = "run-1"


@pytest.mark.parametrize(("before", "outcome"), [((), "allow"), (("outward", "untrusted"), "confirm")])
def test_the_touches_of_a_call_are_kept_if_it_is_allowed(
    settings: Settings, before: tuple[str, ...], outcome: str
) -> None:
    file = case("tool_call", "flow_first").case
    with Engine(settings, now=lambda: datetime.fromtimestamp(file.now, UTC), points=frozenset({"tool_call"})) as engine:
        store = engine.store()
        store.touch(RUN, before, "before", file.now)
        answer = engine.decide("tool_call", file.request, context=Context(caller=file.caller, run=RUN))
        assert answer.decision.outcome == outcome
        store.give_back_touches(answer.decision.decision_id)  # as a crash would: what is kept has no hold
        assert store.touched(RUN) == (*before, *(["private"] if outcome == "allow" else []))

"""An engine that keeps sandboxes ready: the same answers, and nothing left when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from admission_adapters.sandbox.run.pool import Pooled
from engine import Engine
from tests.code.conftest import Bench, golden
from tests.facilities import needs
from tests.processes import alive, until

pytestmark = needs("bubblewrap")


def test_runs_use_warm_sandboxes_and_none_outlives_the_engine(opening: Callable[..., Any]) -> None:
    asked = golden(policy_hints={"exec_timeout_seconds": 10})  # with the same bounds however late it is
    with opening("cold") as cold:
        settings = cold.engine.settings
        expected = cold.run(asked).document["aggregate"]
    with Engine(replace(settings, warm_sandboxes=2)) as engine:
        bench = Bench(engine, settings.state)
        assert bench.run(asked).document["aggregate"] == expected
        pool = engine.executors.sandboxes().backend("bubblewrap")
        assert isinstance(pool, Pooled)
        until(lambda: _waiting(pool) == 2)
        first = next(iter(pool._kinds.values())).waiting[0][1].child
        assert bench.run(asked).document["aggregate"] == expected
        assert not alive(first)
    assert _waiting(pool) == 0


def _waiting(pool: Pooled) -> int:
    return sum(len(kept.waiting) for kept in pool._kinds.values())

"""A probe of a harness that ran out of time is made again; one that failed waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.points import Probed
from engine.runner import harnesses
from engine.runner.harnesses import PROBE_SECONDS, RETRY_SECONDS, Harnesses

HARNESS = {"command": ["harness"], "custom_tools": "native", "assumed": {}}
FOUND = Probed({"toolCalls": True}, "probed")
LOOKUPS = SimpleNamespace(harnesses={"one": HARNESS}, backends={"local": {"profile": "runner"}})
ASKS: Any = SimpleNamespace(services=SimpleNamespace(lookups=LOOKUPS, on_event=lambda *_: None))


class Machine(Harnesses):
    """Whose probes take as long, and find, what the test says."""

    def __init__(self, clock: SimpleNamespace, *probes: tuple[float, Probed | None]) -> None:
        super().__init__(lambda _: pytest.fail("no sandbox is taken"), {})
        self.clock, self.probes = clock, list(probes)

    def _try(self, *_: Any) -> Probed | None:
        seconds, found = self.probes.pop(0)
        self.clock.now += seconds
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(harnesses, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_a_probe_that_was_late_is_made_again_at_the_next_request(clock: SimpleNamespace) -> None:
    machine = Machine(clock, (PROBE_SECONDS, None), (1, FOUND))
    assert machine.probed("one", ASKS) is None
    clock.now += 1
    assert machine.probed("one", ASKS) == FOUND
    assert machine.probed("one", ASKS) == FOUND


def test_a_probe_that_failed_is_made_again_later(clock: SimpleNamespace) -> None:
    machine = Machine(clock, (1, None), (1, FOUND))
    assert machine.probed("one", ASKS) is None
    assert machine.probed("one", ASKS) is None
    clock.now += RETRY_SECONDS + 1
    assert machine.probed("one", ASKS) == FOUND

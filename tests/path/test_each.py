"""`decide_each`: any number of requests, a batch in memory at a time, each with its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from engine.drive import WAVE
from engine.engine import AsyncEngine, Engine
from engine.flow import Context
from engine.model import Mode
from engine.settings import Settings
from tests.command import decisions
from tests.conftest import case

ACCEPTED: Any = case("license", "accepted").case.request
REFUSED: Any = {**ACCEPTED, "license": "no license at all"}
COUNT = WAVE + 7


class Source:
    """Requests that can be read once, of which every third is refused; counts how many were read."""

    def __init__(self, count: int = COUNT) -> None:
        self.kinds = [ACCEPTED if number % 3 else REFUSED for number in range(count)]
        self.read = 0

    def __iter__(self) -> Iterator[Any]:
        for one in self.kinds:
            self.read += 1
            yield one


def contexts() -> Iterator[Context]:
    yield from (Context(request_id=f"row {number}") for number in range(COUNT))


def test_answers_come_in_order_and_each_is_recorded(settings: Settings) -> None:
    source = Source()
    with Engine(settings) as engine:
        answers = [*engine.decide_each("license", source, contexts(), Mode.CHECK)]
        expected = engine.decide_many("license", source.kinds, mode=Mode.CHECK)
    assert [one.decision.outcome for one in answers] == [one.decision.outcome for one in expected]
    assert len({one.decision.outcome for one in answers}) == 2
    recorded = decisions(settings.state)[:COUNT]
    assert {one["decision_id"]: one["request_id"] for one in recorded} == {
        one.decision.decision_id: f"row {number}" for number, one in enumerate(answers)
    }


def test_requests_are_read_a_batch_at_a_time(settings: Settings) -> None:
    source = Source(3 * WAVE)
    with Engine(settings) as engine:
        answers = engine.decide_each("license", source)
        assert source.read == 0
        next(answers)
        assert source.read == WAVE
        del answers  # nobody wants the others
    assert (source.read, len(decisions(settings.state))) == (WAVE, WAVE)


def test_a_failing_source_raises_after_the_decided_requests(settings: Settings) -> None:
    def failing() -> Iterator[Any]:
        yield from [ACCEPTED] * WAVE
        raise OSError("the file is gone")

    with Engine(settings) as engine:
        answers = engine.decide_each("license", failing())
        assert len([next(answers) for _ in range(WAVE)]) == WAVE
        with pytest.raises(OSError, match="the file is gone"):
            next(answers)
        with pytest.raises(ValueError, match="longer"):
            [*engine.decide_each("license", [ACCEPTED], contexts())]
    assert len(decisions(settings.state)) == WAVE


def test_the_same_on_an_event_loop(settings: Settings) -> None:
    source = Source()

    async def ask() -> list[str]:
        async with AsyncEngine(settings) as engine:
            answers = engine.decide_each("license", source, contexts())
            ids = [(await anext(answers)).decision.decision_id]
            assert source.read == WAVE
            return ids + [one.decision.decision_id async for one in answers]

    assert asyncio.run(ask()) == [
        one["decision_id"]
        for one in sorted(decisions(settings.state), key=lambda one: int(one["request_id"].split()[1]))
    ]

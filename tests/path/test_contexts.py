"""`decide_many` with a context for each request: each decision is recorded with its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.engine import AsyncEngine, Engine
from engine.errors import GatherError
from engine.flow import Answer, Context
from engine.settings import Settings
from tests.command import decisions
from tests.conftest import case

ACCEPTED: Any = case("license", "accepted").case.request
CONTEXTS = [Context(request_id=f"a.jsonl:{number}") for number in range(1, 4)]


def test_each_request_has_its_context(settings: Settings) -> None:
    with Engine(settings) as engine:
        engine.decide_many("license", [ACCEPTED] * 3, CONTEXTS)
        with pytest.raises(ValueError, match="shorter"):
            engine.decide_many("license", [ACCEPTED] * 4, CONTEXTS)
    assert [one["request_id"] for one in decisions(settings.state)] == ["a.jsonl:1", "a.jsonl:2", "a.jsonl:3"]


def test_the_same_on_an_event_loop(settings: Settings) -> None:
    async def ask() -> list[Answer]:
        async with AsyncEngine(settings) as engine:
            return await engine.decide_many("license", [ACCEPTED] * 3, CONTEXTS)

    asyncio.run(ask())
    assert sorted(one["request_id"] for one in decisions(settings.state)) == ["a.jsonl:1", "a.jsonl:2", "a.jsonl:3"]


def test_arguments_of_another_type_are_told_with_a_remedy(settings: Settings) -> None:
    wrong: list[Any] = [(5, Context()), (["license"], Context()), ("license", {}), ("license", None), ("license", "me")]
    with Engine(settings) as engine:
        for point, context in wrong:
            for ask in (engine.check, engine.decide):
                with pytest.raises(GatherError) as caught:
                    ask(point, ACCEPTED, context=context)
                assert caught.value.remedy
            for ask_many in (engine.decide_many, engine.decide_each):
                with pytest.raises(GatherError):
                    [*ask_many(point, [ACCEPTED], context)]


def test_every_verb_asks_for_a_context(settings: Settings, tmp_path: Path) -> None:
    wrong: Any = {"principal": "me"}
    with Engine(settings) as engine:
        asks: list[Callable[[], Any]] = [
            lambda: engine.build(tmp_path, tmp_path / "into", None, wrong),
            lambda: engine.run_code({}, wrong),
            lambda: engine.export(tmp_path / "a.jsonl", tmp_path / "b.jsonl", wrong),
            lambda: engine.recall(None, wrong),
            lambda: engine.administer({}, wrong),
            lambda: engine.activate(wrong),
        ]
        for ask in asks:
            with pytest.raises(GatherError, match="the context is of type `dict`") as caught:
                ask()
            assert "Context(" in caught.value.remedy


def test_a_context_in_the_place_of_an_executor_is_no_work(settings: Settings) -> None:
    place: Any = Context()
    with Engine(settings) as engine, pytest.raises(GatherError, match="executor is of type `Context`") as caught:
        engine.decide("license", ACCEPTED, place)
    assert "context=" in caught.value.remedy


@pytest.mark.parametrize("fields", [{"caller": "me"}, {"run": 5}, {"approval": ["a"]}, {"idempotency_key": b"key"}])
def test_a_context_has_fields_of_its_types(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(GatherError, match=f"`{name}` of a context is of type") as caught:
        Context(**fields)
    assert caught.value.remedy

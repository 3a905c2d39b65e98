"""`decide_many` with a context for each request: each decision is recorded with its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.engine import AsyncEngine, Engine
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

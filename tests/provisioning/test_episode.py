"""Provisioned agents in episodes: only while they are active, in their role, within their constraints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.episodes.result import Episode
from engine.settings import Settings
from tests.episodes.scripts import episode, proposal
from tests.expect import there
from tests.provisioning.agents import ANA, PROVISIONER, mounted, specification


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, points=frozenset({"provisioning", "episode", "transcript"})) as running:
        yield running


def run(engine: Engine, agent: str, role: str = "Actor") -> Episode:
    """An episode of three actors, of which the last one is an agent."""
    third = {"id": "agent_c", "role": role, "agent": agent, "script": [proposal(resolution=True)]}
    definition = episode([proposal()], [proposal()], third, ceilings={"max_turns": 12})
    return engine.episode(definition, None, None, PROVISIONER)


def test_an_agent_takes_part_within_its_constraints_until_it_is_ended(engine: Engine) -> None:
    two_turns = mounted(engine, specification(constraints={"max_turns": 2, "max_tokens": 20_000}))
    used_up = run(engine, two_turns)
    assert (there(used_up.fault).code, used_up.turns) == ("agent_constraints_exceeded", 8)  # its third is the ninth
    enough = mounted(engine, specification(constraints={"max_turns": 4, "max_tokens": 20_000}))
    assert there(run(engine, enough).end).reason == "timeout"
    assert there(run(engine, enough, "Judge").fault).code == "agent_inactive"
    assert engine.administer({"act": "end_agent", "id": enough}, ANA).done is not None
    assert there(run(engine, enough).fault).code == "agent_inactive"
    assert there(run(engine, "0" * 32).fault).code == "agent_inactive"


def test_the_tokens_of_an_agent_count(engine: Engine) -> None:
    thrifty = mounted(engine, specification(name="thrifty", constraints={"max_turns": 9, "max_tokens": 150}))
    done = run(engine, thrifty)
    assert (there(done.fault).code, done.turns) == ("agent_constraints_exceeded", 8)  # 100 tokens a turn
    engine.administer({"act": "end_agent", "id": thrifty}, ANA)

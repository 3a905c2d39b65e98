"""Provisioned agents: as many as are allowed, each until it is ended, and its row for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.state.rows import AgentRow
from engine.state.store import Store
from tests.state.samples import NOW, together


def agent(number: int, **changes: Any) -> AgentRow:
    """An agent that is active."""
    return replace(AgentRow(f"agent-{number}", f"name-{number}", "reader", "{}", "user:lee", NOW), **changes)


def test_an_agent_is_active_until_it_is_ended(store: Store) -> None:
    one, two = agent(1), agent(2, requester=None)
    assert store.add_agent(one, 2)
    assert store.add_agent(two, 2)
    assert store.active_agents() == (one, two)
    ended = replace(one, ended_at=NOW + 5)
    assert store.end_agent(one.id, NOW + 5) == ended
    assert store.end_agent(one.id, NOW + 9) == ended
    assert store.end_agent("unknown", NOW) is None
    assert store.active_agents() == (two,)
    assert store.agents(9) == (two, ended)
    assert store.agents(1) == (two,)
    assert (store.agent(one.id), store.agent("unknown")) == (ended, None)


def test_no_more_agents_are_active_than_are_allowed(store: Store) -> None:
    assert not store.add_agent(agent(0), 0)
    assert [store.add_agent(agent(number), 2) for number in range(3)] == [True, True, False]
    store.end_agent("agent-0", NOW)
    assert store.add_agent(agent(3), 2)  # one that was ended does not count
    assert [row.id for row in store.active_agents()] == ["agent-1", "agent-3"]


def test_of_concurrent_additions_only_the_limit_is_stored(store: Store) -> None:
    assert sum(together(12, lambda number: store.add_agent(agent(number), 5))) == 5
    assert len(store.agents(20)) == 5


@pytest.mark.parametrize(
    "changes", [{"name": ""}, {"role": "x" * 2_000}, {"specification": "\ud800"}, {"created_at": -1}]
)
def test_an_invalid_agent_is_refused(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"text|integer"):
        store.add_agent(agent(1, **changes), 5)
    assert store.agents(9) == ()

"""Episodes of two actors for tests: what they say, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.episodes.definition import EpisodeDefinition, definition_of
from engine.settings import ReadLimits

STATE = {
    "Agent_A_Concessions": {"owner": "agent_a", "values": {"price": 120}},
    "Agent_B_Concessions": {"owner": "agent_b", "values": {"price": 80}},
}
CEILINGS = {"max_episode_tokens": 20000, "max_turns": 6}


def proposal(resolution: bool = False, tokens: int = 100, **fields: Any) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """A scripted ActionProposal."""
    usage = {"tokens": tokens, "spend_micros": 10}
    return {"proposal": {"propose_resolution": resolution, **fields}, "usage": usage}


def text(words: str, usage: Any = None) -> dict[str, Any]:
    """A scripted text."""
    return {"text": words, "usage": {"tokens": 10, "spend_micros": 1} if usage is None else usage}


def episode(
    a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]], *others: dict[str, Any], **fields: Any
) -> EpisodeDefinition:
    """An episode of agent_a and agent_b with these scripts, and of other actors; `fields` replace those of the file."""
    actors = [
        {"id": "agent_a", "role": "Actor", "script": list(a)},
        {"id": "agent_b", "role": "Actor", "script": list(b)},
        *others,
    ]
    ceilings = {**CEILINGS, **fields.pop("ceilings", {})}
    document = {"format": 1, "ceilings": ceilings, "state": STATE, "actors": actors, **fields}
    return definition_of(document, "test", ReadLimits())

"""What the decisions of a turn cost against the same loop without the engine; and episodes side by side.

A turn of an actor has two decisions at point `episode` and one at point `transcript`, each recorded before it is
applied, and the entry of the transcript. The other side calls the same scripted actors and reads their JSON.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from engine.completing import Completion, Prompt
from engine.engine import Engine
from engine.episodes.definition import EpisodeDefinition, definition_of
from engine.episodes.run import cast
from engine.settings import ReadLimits, Settings

_TURNS = 20
_SIDE_BY_SIDE = int(os.environ.get("BENCH_EPISODES", "100"))
"""Episodes that run together; the target is stated for 1,000."""


def rows(bench: Bench) -> Iterator[Row]:
    """Wall time: milliseconds of a turn on each side, and of an episode among many."""
    folder = bench.folder("episodes")
    defined = _defined(_TURNS)
    with Engine(Settings(state=folder / "state", cache=bench.cache)) as engine:
        found = interleaved(
            [partial(_decided, engine, defined), partial(_bare, defined)],
            bench.rounds,
            partial(bench.report_round, "episodes"),
        )
        many = tuple(_many(engine, _defined(4)) for _ in range(bench.rounds))
    yield Row("episodes", "decisions of a turn", None, tuple((ours - bare) * 1000 for ours, bare in found), unit="ms")
    yield Row("episodes", "the same turn without engine", None, tuple(bare * 1000 for _, bare in found), unit="ms")
    what = f"an episode of 4 turns, {_SIDE_BY_SIDE:,} side by side"
    yield Row("episodes", what, None, many, unit="ms")


def _defined(turns: int) -> EpisodeDefinition:
    proposal = {"propose_resolution": False, "dialogue": "I stay at 100.", "changes": {"A": {"price": 100}}}
    actor = {"id": "a", "role": "Actor", "script": [{"proposal": proposal}]}
    state = {"A": {"owner": "a", "values": {"price": 120}}}
    ceilings = {"max_episode_tokens": 20_000, "max_turns": turns}
    document = {"format": 1, "ceilings": ceilings, "state": state, "actors": [actor]}
    return definition_of(document, "bench", ReadLimits())


def _decided(engine: Engine, defined: EpisodeDefinition) -> float:
    started = time.perf_counter()
    done = engine.episode(defined)
    if done.end is None or done.turns != _TURNS:
        raise NotMeasuredError(f"the episode was stopped: {done.error}")
    return (time.perf_counter() - started) / _TURNS


def _bare(defined: EpisodeDefinition) -> float:
    from engine.episodes.actors import Turn

    started = time.perf_counter()
    actors, state, said = cast(defined, {}, _no_model), {"A": {"price": 120}}, []
    for number in range(_TURNS):
        reply = actors["a"](Turn("a", "Actor", (), state, 8192, 1000, number))
        proposal = json.loads(reply.text)
        for group, values in proposal["changes"].items():
            state[group].update(values)
        said.append(proposal["dialogue"])
    return (time.perf_counter() - started) / _TURNS


def _no_model(_: Prompt) -> Completion:
    raise NotMeasuredError("the actors are scripts")


def _many(engine: Engine, defined: EpisodeDefinition) -> float:
    started = time.perf_counter()
    done = engine.episodes([(None, defined)] * _SIDE_BY_SIDE)
    if any(one.end is None for one in done):
        raise NotMeasuredError("an episode was stopped")
    return (time.perf_counter() - started) / _SIDE_BY_SIDE * 1000

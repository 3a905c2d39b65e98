"""An episode that was stopped anywhere goes on from its record, and nothing counts twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from engine import drive
from engine.engine import Engine
from engine.episodes import recorded
from engine.episodes.definition import EpisodeDefinition
from engine.episodes.result import Episode
from engine.errors import GatherError
from engine.flow import Context
from engine.record import chain as chain_lines
from engine.record import reader
from engine.settings import Settings
from tests.episodes.scripts import episode, proposal, text

DEFINED = episode(
    [proposal(dialogue="I go to 110.", monologue="At least 95.", changes={"Agent_A_Concessions": {"price": 110}})],
    [text("no JSON"), proposal(dialogue="90"), text("no JSON"), proposal(dialogue="91")],
    ceilings={"max_turns": 4},
)


def stopped(engine: Engine, name: str, after: int, definition: EpisodeDefinition = DEFINED) -> int:
    """Take an episode this many steps far and abandon it, as a kill would; returns how many steps were taken."""
    with ExitStack() as claims:
        (path,) = engine._episode_steps([(name, definition)], {}, Context(), claims)
        taken, outcome = 0, None
        try:
            while taken < after:
                outcome = drive._perform(path.send(outcome))
                taken += 1
        except StopIteration:
            return taken
        path.close()
    return taken


def ended(done: Episode) -> tuple[object, ...]:
    assert done.end is not None
    return done.end.reason, done.end.penalties, done.end.scores


@pytest.fixture(scope="module")
def whole(engine: Engine) -> Episode:
    return engine.episode(DEFINED, episode="whole")


# covers: E37.2, H16.1
def test_an_interrupted_episode_resumes_or_ends_as_corrupted(engine: Engine, whole: Episode, *, full: bool) -> None:
    steps = stopped(engine, "counted", 10_000)
    assert ended(whole)[0] == "timeout"
    outcomes = set()
    for after in range(1, steps, 1 if full else 17):
        stopped(engine, f"stop-{after}", after)
        done = engine.episode(DEFINED, episode=f"stop-{after}")
        assert done.end is not None, after
        outcomes.add(done.end.reason)
        if done.end.reason == "timeout":
            assert done.end.penalties == {"agent_a": 0, "agent_b": whole.end.penalties["agent_b"]}, after  # type: ignore[union-attr]
            assert done.state == whole.state, after
        else:
            assert done.end.reason == "EpisodeCorruptedError", after
        again = engine.episode(DEFINED, episode=f"stop-{after}")
        assert ended(again) == ended(done)
    assert "timeout" in outcomes


def test_an_ended_episode_returns_its_recorded_end(engine: Engine, whole: Episode) -> None:
    again = engine.episode(DEFINED, {"agent_a": lambda _: pytest.fail("was called again")}, "whole")
    assert (again.end, again.state, again.transcript) == (whole.end, whole.state, whole.transcript)


def test_many_episodes_are_read_back_in_one_pass_over_the_record(
    engine: Engine, whole: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = engine.episode(DEFINED, episode="other")
    read, entries = [], reader.entries

    def counting(*asked: Any) -> Iterator[Any]:
        read.append(asked)
        return entries(*asked)

    monkeypatch.setattr(recorded, "entries", counting)
    ends = [ended(done) for done in engine.episodes([("whole", DEFINED), ("other", DEFINED), (None, DEFINED)])]
    assert ends == [ended(whole), ended(other), ended(whole)]
    assert len(read) == 1


def test_no_other_episode_is_parsed(engine: Engine, whole: Episode, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.episode(DEFINED, episode="other-one")
    parsed: list[bytes] = []

    def counting(line: bytes, chain: int) -> chain_lines.Entry:
        parsed.append(line)
        return chain_lines.parse(line, chain)

    monkeypatch.setattr(reader, "parse", counting)
    assert ended(engine.episode(DEFINED, episode="whole")) == ended(whole)
    assert parsed
    assert all(b'"episode":"whole"' in line for line in parsed)


# covers: E10.2
def test_a_call_that_was_interrupted_counts_the_estimate(engine: Engine) -> None:
    defined = episode([proposal()], [proposal()], ceilings={"max_turns": 1})
    after = 1
    while True:  # up to the step in which the actor is called
        stopped(engine, f"call-{after}", after, defined)
        done = engine.episode(defined, episode=f"call-{after}")
        assert done.end is not None
        if done.end.tokens != 100:
            break
        after += 1
    assert done.end.tokens == 100 + 8192
    assert done.end.penalties == {"agent_a": 0, "agent_b": 0}


def test_another_file_under_the_same_id_is_refused(engine: Engine, whole: Episode) -> None:
    other = episode([proposal()], [proposal()], ceilings={"max_turns": 2})
    with pytest.raises(GatherError, match="another episode"):
        engine.episode(other, episode=whole.id)


@pytest.mark.parametrize(
    ("damage", "end"),
    [
        (lambda text: text, "timeout"),
        (lambda text: text[: text[:-1].rindex("\n") + 1], "EpisodeCorruptedError"),
        (lambda text: text.replace("Actor", "Judge", 1), "EpisodeCorruptedError"),
        (lambda text: text.replace("I go to 110.", "I go to 101.", 1), "EpisodeCorruptedError"),
    ],
    ids=["none", "a lost line", "another role", "other words"],
)
def test_a_damaged_transcript_ends_the_episode_as_corrupted(
    settings: Settings, damage: Callable[[str], str], end: str
) -> None:
    with Engine(settings) as engine:
        steps = stopped(engine, "e", 10_000)
        stopped(engine, "damaged", steps - 12)
        file = Path(settings.state / "episodes" / "damaged.jsonl")
        intact = file.read_text(encoding="utf-8")
        file.write_text(damaged := damage(intact), encoding="utf-8")
        done = engine.episode(DEFINED, episode="damaged")
    assert done.end is not None
    assert (damaged == intact) is (end == "timeout")
    assert done.end.reason == end
    assert (done.end.scores["agent_a"] == -5) is (end == "EpisodeCorruptedError")

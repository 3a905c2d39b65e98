"""An episode that has ended is decided again from its record: to the same end, or up to what differs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.engine import Engine
from engine.episodes.definition import definition_of, read_definition
from engine.episodes.recorded import decisions_on
from engine.episodes.replay import ReplayedEpisode, replay_episode
from engine.episodes.result import Episode
from engine.errors import GatherError, RecordError
from engine.record.chain import Entry
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.replay.candidate import Candidate, opened
from engine.replay.comparing import Change
from engine.settings import OpaLimits, ReadLimits, Settings
from tests.conftest import ROOT
from tests.episodes.scripts import episode, proposal
from tests.episodes.test_resume import DEFINED, stopped
from tests.expect import there
from tests.record.samples import open_log

MARKET = read_definition(ROOT / "fixtures" / "episodes" / "market.yaml", ReadLimits())
SECRET = "sk-proj-0a1b2c3d4e5f6g7h8i9j"  # noqa: S105 (opens nothing)


@pytest.fixture(scope="module")
def market(engine: Engine) -> Episode:
    return engine.episode(MARKET, episode="market")


@pytest.fixture(scope="module")
def served(engine: Engine) -> Iterator[Candidate]:
    with opened(there(engine.policy), OpaLimits()) as found:
        yield found


def replayed(state: Path, name: str, by: Candidate) -> ReplayedEpisode:
    return replay_episode(state, TranscriptFolder(state / "episodes"), name, by)


def test_a_negotiation_replays_to_the_same_end(engine: Engine, market: Episode, served: Candidate) -> None:
    files = sorted(engine.settings.state.glob("records/*.jsonl"))
    before = [file.read_bytes() for file in files]
    found = replayed(engine.settings.state, "market", served)
    assert (found.difference, found.end, found.state) == (None, market.end, market.state)
    assert (found.decisions, found.skipped, found.turns) == (29, 0, market.turns)
    assert [file.read_bytes() for file in files] == before  # nothing was recorded


def test_the_first_decision_that_differs_is_named(engine: Engine, market: Episode, settings: Settings) -> None:
    with Engine(settings, values=("episodes.ceilings.max_turns=5",)) as other:
        stricter = there(other.policy)
    with opened(stricter, OpaLimits()) as candidate:
        found = replayed(engine.settings.state, market.id, candidate)
    difference = there(found.difference)
    assert (difference.event, difference.change) == ("turn 6.1 of judge", Change.DENIED)
    assert [one.code for one in difference.causes] == ["timeout"]
    assert found.end is None


def test_an_interrupted_and_resumed_episode_replays(engine: Engine, served: Candidate, *, full: bool) -> None:
    reasons = set()
    for after in range(1, stopped(engine, "replay-counted", 10_000), 1 if full else 23):
        stopped(engine, f"replay-{after}", after)
        done = engine.episode(DEFINED, episode=f"replay-{after}")
        found = replayed(engine.settings.state, done.id, served)
        assert (found.difference, found.end, found.state) == (None, done.end, done.state), after
        reasons.add(there(done.end).reason)
    assert "timeout" in reasons


def test_an_episode_that_lost_an_entry_replays_to_its_corrupted_end(engine: Engine, served: Candidate) -> None:
    """It was stopped after an entry was admitted and before it was written."""
    state = engine.settings.state

    def lost(after: int) -> bool:
        stopped(engine, f"lost-{after}", after)
        admitted = [one for one in decisions_on(state, f"lost-{after}") if one.point == "transcript"]
        return bool(admitted) and not TranscriptFolder(state / "episodes").read(f"lost-{after}")

    name = f"lost-{next(filter(lost, range(1, 100)))}"
    done = engine.episode(DEFINED, episode=name)
    assert there(done.end).reason == "EpisodeCorruptedError"
    found = replayed(state, name, served)
    assert (found.difference, found.end) == (None, done.end)


@pytest.mark.parametrize("damage", ["torn", "edited", "foreign", "gone", "no object", "deep"])
def test_another_transcript_is_refused(
    engine: Engine, market: Episode, served: Candidate, tmp_path: Path, damage: str
) -> None:
    state = Path(shutil.copytree(engine.settings.state, tmp_path / "state", ignore=shutil.ignore_patterns("*.sock")))
    file = state / "episodes" / f"{market.id}.jsonl"
    if damage == "foreign":
        other = engine.episode(episode([proposal(dialogue="Other words.")], [proposal()]), episode="other")
        shutil.copy(engine.settings.state / "episodes" / f"{other.id}.jsonl", file)
    changes: dict[str, Callable[[str], str]] = {
        "torn": lambda text: text[:-20],
        "edited": lambda text: text.replace("I can go down to 110.", "I can go down to 101."),
        "foreign": lambda text: text,
        "gone": lambda _: "",
        "no object": lambda text: "3\n" + text,
        "deep": lambda text: text + "[" * 100_000 + "\n",
    }
    file.write_text(changes[damage](file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(RecordError, match="not the one that was recorded"):
        replayed(state, market.id, served)


def test_a_record_that_does_not_follow_from_its_decisions_is_refused(
    engine: Engine, market: Episode, served: Candidate, tmp_path: Path
) -> None:
    found = [one.body for one in entries(engine.settings.state, Filter()) if isinstance(one, Entry)]
    bodies = [one for one in found if isinstance(one, DecisionRecord) and (one.input or {})["episode"] == market.id]
    replies = [at for at, one in enumerate(bodies) if (one.input or {}).get("reply")]
    with open_log(tmp_path / "state") as log:
        for body in [*bodies[: replies[0]], *bodies[replies[0] + 1 :]]:
            log.append(body)
    shutil.copytree(engine.settings.state / "episodes", tmp_path / "state" / "episodes")
    with pytest.raises(RecordError, match="does not follow"):
        replayed(tmp_path / "state", market.id, served)


def test_a_redacted_input_cannot_be_replayed(engine: Engine, served: Candidate) -> None:
    document = DEFINED.model_dump(mode="json") | {"parallel": False}
    document["state"]["Agent_A_Concessions"]["values"]["note"] = SECRET
    done = engine.episode(definition_of(document, "test", ReadLimits()), episode="secret")
    with pytest.raises(GatherError, match=r"redacted: input.state.\*.values.note"):
        replayed(engine.settings.state, done.id, served)


def test_only_an_ended_episode_is_replayed(engine: Engine, served: Candidate) -> None:
    stopped(engine, "replay-open", 9)
    for name in ("replay-open", "unknown"):
        with pytest.raises(GatherError, match="no ended episode"):
            replayed(engine.settings.state, name, served)

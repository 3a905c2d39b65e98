"""An episode decided again from its record: every recorded event, on the state that the new decisions lead to.

The inputs are the recorded ones. The history in each has to follow from the decisions before it, and the transcript has
to be the one that was admitted; otherwise nothing is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.documents.files import printable
from engine.drive import run
from engine.episodes.recorded import admitted, decisions_on, event_name, event_of, fits, started_with
from engine.episodes.result import Ended
from engine.episodes.standing import Standing
from engine.errors import GatherError, RecordError
from engine.record.model import DecisionRecord
from engine.replay.candidate import Candidate, undecidable, verdict_steps
from engine.replay.comparing import Cause, Change, compared


@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision that differs; `event` says which, such as `proposal 3.1 of agent_b`."""

    event: str
    change: Change
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class ReplayedEpisode:
    """What a replay found. Without a difference, `end` and `state` are the recorded ones.

    `skipped` decisions were refused by the engine itself, not by the policy, and changed nothing.
    """

    id: str
    decisions: int
    skipped: int
    turns: int
    end: Ended | None
    state: Mapping[str, Mapping[str, Any]]
    difference: Difference | None


def replay_episode(state: Path, folder: TranscriptFolder, episode: str, candidate: Candidate) -> ReplayedEpisode:
    """Decide an ended episode again, up to the first decision that differs.

    Raises GatherError for one that is unknown, has not ended or was redacted, RecordError if record and transcript do
    not fit together, DecideError while OPA does not answer.
    """
    replaying = _Replaying(episode, candidate)
    for body in _in_order(state, folder, episode):
        if replaying.differs(body):
            break
    return replaying.result()


def _in_order(state: Path, folder: TranscriptFolder, episode: str) -> list[DecisionRecord]:
    """The decisions of an ended episode. Its transcript has to be whole, unless it ended because it was not."""
    bodies = [*decisions_on(state, episode)]
    if not any(body.point == "episode" and event_of(body)["kind"] == "end" and body.limits for body in bodies):
        raise GatherError(
            f"the record has no ended episode `{printable(episode, 64)}`",
            remedy="name one that has ended; `engine episode run FILE --id ID` goes on with one that was stopped",
        )
    was_broken = any(body.point == "episode" and (body.input or {}).get("broken") for body in bodies)
    if not was_broken and not fits(folder.read(episode), admitted(bodies)):
        raise RecordError(
            f"the transcript of episode `{episode}` is not the one that was recorded",
            remedy=f"restore episodes/{episode}.jsonl in the state folder; the record has the digests of its texts",
            code="engine.episode_transcript_broken",
        )
    return bodies


class _Replaying:
    """One episode, so far as it was decided again."""

    def __init__(self, episode: str, candidate: Candidate) -> None:
        self._episode, self._candidate = episode, candidate
        self._standing: Standing | None = None
        self._decisions = self._skipped = 0
        self._difference: Difference | None = None

    def differs(self, body: DecisionRecord) -> bool:
        """Decide one recorded decision again and apply it; whether the candidate decides differently."""
        self._require_consequence(body)
        reason = undecidable(body)
        if reason is not None and reason.startswith("redacted"):
            raise GatherError(
                f"{event_name(body)} cannot be decided again: {reason}",
                remedy="only the digest of what was redacted is in the record; leave secrets out of the next episode",
            )
        if reason is not None:
            self._skipped += 1
            return False
        with self._candidate.leased() as served:
            verdict = run(verdict_steps(served, body, body.input or {}))
        self._decisions += 1
        if (changed := compared(body, verdict)) is not None:
            self._difference = Difference(event_name(body), *changed)
            return True
        if body.point == "episode" and self._standing is not None:
            self._standing.take(body.input or {}, verdict)
        return False

    def result(self) -> ReplayedEpisode:
        """What was found."""
        standing = self._standing
        return ReplayedEpisode(
            self._episode,
            self._decisions,
            self._skipped,
            0 if standing is None else standing.turns,
            None if standing is None else standing.end,
            {} if standing is None else standing.values,
            self._difference,
        )

    def _require_consequence(self, body: DecisionRecord) -> None:
        """Raise RecordError unless the recorded history follows from the decisions so far."""
        document = body.input
        if body.point != "episode" or document is None:
            return
        if self._standing is None:
            if event_of(body)["kind"] != "start" or body.limits is None:
                return  # a start that was refused
            self._standing = Standing(self._episode, started_with(document))
        standing = self._standing
        under_way = {(one["turn"], one["attempt"]) for one in standing.running}
        if any((one["turn"], one["attempt"]) in under_way for one in document["history"]):
            standing.interrupt()  # the engine was stopped here, and went on from its record
        standing.broken = document["broken"]
        own = standing.request({})
        own["history"] = [{"id": f"{one['turn']}.{one['attempt']}", **one} for one in own["history"]]
        if any(document[name] != own[name] for name in ("actors", "ceilings", "history", "running", "ended")):
            raise RecordError(
                f"{event_name(body)} does not follow from the decisions that the record has before it",
                remedy="run `engine record verify`; compare the state folder with a backup",
            )

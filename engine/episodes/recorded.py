"""Reads an episode back from its record: every decision on it, in order, and the transcript that they admitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.documents.canonical import digest
from engine.episodes.definition import ActorDefinition, EpisodeCeilings, EpisodeDefinition, Group
from engine.episodes.standing import Standing
from engine.errors import GatherError
from engine.model import Mode
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries


@dataclass(frozen=True, slots=True)
class Recorded:
    """An episode as the record has it; `started_by` is the decision on its start."""

    standing: Standing
    transcript: list[dict[str, Any]]
    started_by: str


def recorded(state: Path, folder: TranscriptFolder, requested: Mapping[str, EpisodeDefinition]) -> dict[str, Recorded]:
    """The episodes of these ids so far, without those that never started: one pass over the record for all.

    The transcript of each is complete, or it is broken. Raises GatherError if the record has another episode under an
    id, RecordError if it cannot be read.
    """
    read = {episode: _Reading(episode, definition) for episode, definition in requested.items()}
    for body in decisions_on(state, *requested):
        read[(body.input or {})["episode"]].take(body)
    found = {episode: one.result(folder) for episode, one in read.items()}
    return {episode: one for episode, one in found.items() if one is not None}


class _Reading:
    """One episode while its decisions are read."""

    def __init__(self, episode: str, definition: EpisodeDefinition) -> None:
        self._standing = Standing(episode, definition)
        self._started_by = ""
        self._appended: list[DecisionRecord] = []

    def take(self, body: DecisionRecord) -> None:
        """The next decision on it. Raises GatherError if it started with another definition."""
        if body.point == "transcript":
            self._appended.append(body)
            return
        standing, document = self._standing, body.input or {}
        if any(path.startswith(("input.", "limits.")) for path in body.redactions):
            standing.broken = True
        if document["event"]["kind"] == "start" and body.outcome.value == "allow":
            _same(standing, document)
            self._started_by = body.decision_id
        standing.apply(document, body.outcome.value, body.limits, [finding.code for finding in body.findings])

    def result(self, folder: TranscriptFolder) -> Recorded | None:
        """What was read; None if it never started."""
        standing = self._standing
        if not standing.started:
            return None
        transcript = folder.read(standing.episode)
        whole = fits(transcript, admitted(self._appended)) and len(self._appended) == standing.accepted()
        standing.broken = standing.broken or not whole
        if standing.end is None:
            standing.interrupt()
        return Recorded(standing, transcript, self._started_by)


def fits(transcript: Sequence[Any], admitted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a transcript has exactly the entries that were admitted, each with the text of its digest."""
    return len(transcript) == len(admitted) and all(map(_same_entry, transcript, admitted))


def _same_entry(entry: Any, admitted: Mapping[str, Any]) -> bool:
    text = entry.get("text") if isinstance(entry, dict) else None
    if not isinstance(text, str) or entry != {**admitted, "text": text}:
        return False
    return digest(text.encode("utf-8", "replace")) == str(admitted["digest"])


def decisions_on(state: Path, *episodes: str) -> Iterator[DecisionRecord]:
    """The enforced decisions on episodes and on their transcripts, oldest first. Raises RecordError."""
    if not episodes:
        return
    for found in entries(state, Filter(mode=Mode.ENFORCE.value, episodes=episodes)):
        body = getattr(found, "body", None)
        if isinstance(body, DecisionRecord) and body.point in {"episode", "transcript"}:
            yield body


def admitted(bodies: Sequence[DecisionRecord]) -> list[Mapping[str, Any]]:
    """The entries that decisions on a transcript admitted, in order."""
    return [entry for body in bodies if body.point == "transcript" and body.limits for entry in body.limits["entries"]]


def event_of(body: DecisionRecord) -> Mapping[str, Any]:
    """The event that a decision on an episode is about."""
    event: Mapping[str, Any] = (body.input or {})["event"]
    return event


def event_name(body: DecisionRecord) -> str:
    """What a decision on an episode or its transcript is about, such as `proposal 3.1 of agent_b`."""
    if body.point == "transcript":
        return "an entry of " + ", ".join(str(one.get("author")) for one in (body.input or {})["entries"])
    event = event_of(body)
    return (
        f"{event['kind']} {event['turn']}.{event['attempt']} of {event['actor']}" if "turn" in event else event["kind"]
    )


def started_with(document: Mapping[str, Any]) -> EpisodeDefinition:
    """The definition in the input of the decision on its start: without scripts."""
    return EpisodeDefinition(
        format=1,
        ceilings=EpisodeCeilings(**document["ceilings"]),
        state={group["id"]: Group(owner=group["owner"], values=group["values"]) for group in document["state"]},
        actors=tuple(ActorDefinition(**actor) for actor in document["actors"]),
    )


def _same(standing: Standing, document: dict[str, Any]) -> None:
    """Raise GatherError unless the episode started with this definition."""
    own = standing.request({"kind": "start"})
    if any(document[name] != own[name] for name in ("actors", "state", "ceilings")):
        raise GatherError(
            f"the record has another episode under the id `{standing.episode}`",
            remedy="use another id, or the file with which it was started",
        )

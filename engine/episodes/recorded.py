"""Reads an episode back from its record: every decision on it, in order, and the transcript that they admitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
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


def recorded(state: Path, folder: TranscriptFolder, episode: str, definition: EpisodeDefinition) -> Recorded | None:
    """The episode so far; None if it never started. Its transcript is complete, or it is broken.

    Raises GatherError if the record has another episode under this id, RecordError if it cannot be read.
    """
    standing = Standing(episode, definition)
    started_by = ""
    for body in decisions_of(state, "episode", episode):
        document: dict[str, Any] = body.input or {}
        if any(path.startswith(("input.", "limits.")) for path in body.redactions):
            standing.broken = True
        if document["event"]["kind"] == "start" and body.outcome.value == "allow":
            _same(standing, document)
            started_by = body.decision_id
        standing.apply(document, body.outcome.value, body.limits, [finding.code for finding in body.findings])
    if not standing.started:
        return None
    appended = list(decisions_of(state, "transcript", episode))
    transcript = folder.read(episode)
    whole = fits(transcript, admitted(appended)) and len(appended) == standing.accepted()
    standing.broken = standing.broken or not whole
    if standing.end is None:
        standing.interrupt()
    return Recorded(standing, transcript, started_by)


def fits(transcript: Sequence[Any], admitted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a transcript has exactly the entries that were admitted, each with the text of its digest."""
    return len(transcript) == len(admitted) and all(map(_same_entry, transcript, admitted))


def _same_entry(entry: Any, admitted: Mapping[str, Any]) -> bool:
    text = entry.get("text") if isinstance(entry, dict) else None
    if not isinstance(text, str) or entry != {**admitted, "text": text}:
        return False
    return digest(text.encode("utf-8", "replace")) == str(admitted["digest"])


def decisions_of(state: Path, point: str, episode: str) -> Iterator[DecisionRecord]:
    """The enforced decisions on an episode at a point, oldest first. Raises RecordError."""
    for found in entries(state, Filter(point=point, mode=Mode.ENFORCE.value)):
        body = getattr(found, "body", None)
        if isinstance(body, DecisionRecord) and (body.input or {}).get("episode") == episode:
            yield body


def decisions_on(state: Path, episode: str) -> list[DecisionRecord]:
    """The enforced decisions on an episode and on its transcript, oldest first. Raises RecordError."""
    points = (decisions_of(state, point, episode) for point in ("episode", "transcript"))
    return list(merge(*points, key=lambda body: body.time))


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

"""Reads an episode back from its record: every decision on it, in order, and the transcript that they admitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.documents.canonical import digest
from engine.episodes.definition import EpisodeDefinition
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
    started_by, appended = "", 0
    admitted: list[dict[str, Any]] = []
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
    for body in decisions_of(state, "transcript", episode):
        appended += 1
        admitted += [] if body.limits is None else body.limits["entries"]
    transcript = folder.read(episode)
    standing.broken = standing.broken or not fits(transcript, admitted) or appended != standing.accepted()
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


def _same(standing: Standing, document: dict[str, Any]) -> None:
    """Raise GatherError unless the episode started with this definition."""
    own = standing.request({"kind": "start"})
    if any(document[name] != own[name] for name in ("actors", "state", "ceilings")):
        raise GatherError(
            f"the record has another episode under the id `{standing.episode}`",
            remedy="use another id, or the file with which it was started",
        )

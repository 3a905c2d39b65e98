"""One episode: each decision on it in order, with the texts that were admitted, its end, and its transcript."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.api.messages import Response
from engine.documents.canonical import digest
from engine.documents.files import read_bytes
from engine.episodes.recorded import admitted, decisions_on, event_name, event_of, fits, started_with
from engine.episodes.standing import Standing
from engine.errors import GatherError
from engine.record.model import DecisionRecord
from engine.workbench.kept import KeptFile, download
from engine.workbench.pages import UnknownError
from engine.workbench.visit import Visit

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_STEPS = 500
"""Decisions of a page."""

_TRANSCRIPT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One decision on an episode. `entries` are what it let into the transcript, each with its number and text.

    `changes` are the parameters that it let a proposal change.
    """

    name: str
    body: DecisionRecord
    entries: tuple[tuple[int, Mapping[str, Any], str | None], ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()


def one(visit: Visit) -> Response:
    """An episode in full."""
    bodies, folder = _bodies(visit), visit.desk.settings.state / "episodes"
    transcript = TranscriptFolder(folder).read(visit.name)
    whole = fits(transcript, admitted(bodies))
    first = _first(visit.query.get("from"))
    steps = _steps(bodies, transcript if whole else [])
    standing = _standing(visit.name, bodies)
    return visit.page(
        "runs_episode.html",
        name=visit.name,
        steps=steps[first : first + _STEPS],
        first=first,
        further=first + _STEPS if len(steps) > first + _STEPS else None,
        count=len(steps),
        start=bodies[0],
        standing=standing,
        whole=whole,
        files=_files(folder, visit.name),
    )


def transcript(visit: Visit) -> Response:
    """Its transcript as the file that the engine keeps."""
    _bodies(visit)
    try:
        data = _read(visit.desk.settings.state / "episodes", visit.name)
    except GatherError as error:
        raise UnknownError("the transcript of this episode cannot be read", remedy=error.remedy) from error
    return download(f"{visit.name}.jsonl", data)


def _bodies(visit: Visit) -> list[DecisionRecord]:
    """The decisions on the episode that a path names. Raises UnknownError."""
    named = _ID.fullmatch(visit.name) is not None and visit.desk.settings.state.is_dir()
    bodies = [*decisions_on(visit.desk.settings.state, visit.name)] if named else []
    if not bodies:
        raise UnknownError("the record has no such episode", remedy="choose one from the list of runs")
    return bodies


def _first(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004


def _steps(bodies: list[DecisionRecord], transcript: list[dict[str, Any]]) -> list[EpisodeStep]:
    steps, number = [], 0
    for body in bodies:
        limits = body.limits or {}
        if body.point == "transcript":
            entries = []
            for entry in limits.get("entries", ()):
                text = transcript[number]["text"] if number < len(transcript) else None
                entries.append((number, entry, text))
                number += 1
            steps.append(EpisodeStep(event_name(body), body, tuple(entries)))
        else:
            proposed = (body.input or {}).get("changes", ())
            changes = tuple(one for one in proposed if one["id"] in limits.get("changes", ()))
            steps.append(EpisodeStep(event_name(body), body, (), changes))
    return steps


def _standing(episode: str, bodies: list[DecisionRecord]) -> Standing | None:
    """Where the episode stands by its decisions; None if none let it start."""
    standing = None
    for body in bodies:
        if body.point == "episode":
            if standing is None and event_of(body)["kind"] == "start" and body.limits is not None:
                standing = Standing(episode, started_with(body.input or {}))
            if standing is not None:
                codes = [finding.code for finding in body.findings]
                standing.apply(body.input or {}, body.outcome.value, body.limits, codes)
    return standing


def _files(folder: Path, episode: str) -> list[tuple[KeptFile, str]]:
    """The transcript with its address, if there is one."""
    try:
        data = _read(folder, episode)
    except GatherError:
        return []
    return [(KeptFile(f"{episode}.jsonl", digest(data), len(data)), f"/episodes/{quote(episode)}/transcript")]


def _read(folder: Path, episode: str) -> bytes:
    return read_bytes(folder / f"{episode}.jsonl", _TRANSCRIPT_BYTES)

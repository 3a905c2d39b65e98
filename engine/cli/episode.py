"""`engine episode`: run an episode of several actors, each turn decided and recorded; decide a recorded one again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.outputs import json_text, print_text
from engine.cli.waiting import Waiting
from engine.documents.files import counted, printable
from engine.errors import Exit
from engine.settings import ReadLimits

if TYPE_CHECKING:
    from engine.episodes.replay import ReplayedEpisode
    from engine.episodes.result import Ended, Episode

app = typer.Typer()


@app.command("run")
@options.sourced(*options.CALLER, "state", *options.SERVED)
def run(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File of the episode, as in docs/episodes.md.")],
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Id of the episode; a recorded one resumes where it stopped."),
    ] = None,
    env_file: options.EnvFile = None,
    ca_file: options.CaFile = None,
    how: options.Output = "text",
) -> None:
    """Run an episode with the actors of its file, scripts and models, to its end.

    Each call of an actor is decided on before it is made, and each reply afterwards. With --id, a killed run resumes,
    and an episode that has ended prints its recorded end. Exits with 0 if it was completed, aborted or timed out, and
    with 1 if a limit or the penalties of an actor ended it.
    """
    from engine.episodes.definition import read_definition

    definition = read_definition(path, ReadLimits())
    waiting = Waiting()
    progress = waiting.counting("turn", lambda turn, most: f"turn {turn} of at most {most}")
    points = ["episode", "transcript", *(["llm"] if any(one.model for one in definition.actors) else [])]
    with sources.engine(*points, progress=progress, ca_file=ca_file, env_file=env_file) as engine, waiting:
        done = engine.episode(definition, None, options.text(name), sources.context())
    if done.end is None and done.fault is not None:
        raise done.fault
    print_text(json_text(document(done)) if how == "json" else _people(done))
    raise typer.Exit(done.exit)


@app.command("replay")
@options.sourced("state", *options.RULES, "values")
def replay(
    sources: options.Sources,
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of an episode that has ended.")],
    how: options.Output = "text",
) -> None:
    """Decide every recorded event of an ended episode again, and compare each decision and the end.

    No actor is called, nothing is enforced and nothing is recorded. Exits with 0 if all is the same, and with 6 at the
    first decision that differs; with 4 if the record is broken, or the transcript is not the recorded one.
    """
    from admission_adapters.episodes.transcripts import TranscriptFolder
    from engine.cli.policy.commands import built_policy
    from engine.cli.record.commands import existing_folder, require_intact
    from engine.episodes.replay import replay_episode
    from engine.replay.candidate import opened

    folder = existing_folder(sources.state)
    policy = built_policy(sources)
    require_intact(folder)
    with opened(policy, sources.settings().opa, frozenset({"episode", "transcript"})) as candidate:
        found = replay_episode(folder, TranscriptFolder(folder / "episodes"), name, candidate)
    print_text(json_text(_replayed(found)) if how == "json" else _replayed_text(found))
    raise typer.Exit(Exit.ALLOW if found.difference is None else Exit.REPLAY_CHANGED)


def _replayed(found: ReplayedEpisode) -> dict[str, Any]:
    end, difference = found.end, found.difference
    return {
        "episode": found.id,
        "same": difference is None,
        "decisions": found.decisions,
        "skipped": found.skipped,
        "turns": found.turns,
        "difference": None if difference is None else asdict(difference),
        "reason": None if end is None else end.reason,
        "scores": {} if end is None else dict(end.scores),
        "penalties": {} if end is None else dict(end.penalties),
        "tokens": 0 if end is None else end.tokens,
        "state": {name: dict(values) for name, values in found.state.items()},
    }


def _replayed_text(found: ReplayedEpisode) -> str:
    from engine.cli.record.replayed import change_text, words

    end, difference = found.end, found.difference
    lines = [f"episode {found.id}: {counted(found.decisions, 'decision')} replayed"]
    if found.skipped:
        lines.append(f"  skipped: {found.skipped}, which the engine refused, not the policy")
    if difference is not None:
        change = difference.change.value
        lines.append(f"  first difference: {difference.event}, {words(change)}")
        for one in difference.causes:
            about = "" if one.subject is None else f" ({one.subject})"
            lines.append(f"    {printable(change_text({'change': change, **asdict(one)}) + about, 500)}")
    if end is not None:
        lines.append(
            f"  the same end: {end.reason} after {counted(found.turns, 'turn')}, {counted(end.tokens, 'token')}"
        )
        lines += [*_scores(end), *_state(found.state)]
    return "\n".join(lines)


def document(done: Episode) -> dict[str, Any]:
    """An episode as JSON."""
    end = done.end
    return {
        "episode": done.id,
        "reason": None if end is None else end.reason,
        "scores": {} if end is None else dict(end.scores),
        "penalties": {} if end is None else dict(end.penalties),
        "concessions": dict(done.concessions),
        "tokens": 0 if end is None else end.tokens,
        "spend_micros": 0 if end is None else end.spend_micros,
        "turns": done.turns,
        "state": {name: dict(values) for name, values in done.state.items()},
        "rejected": [asdict(one) for one in done.rejections],
        "review": [] if end is None else list(end.review),
        "transcript": [dict(entry) for entry in done.transcript],
    }


def _people(done: Episode) -> str:
    end = done.end
    if end is None:
        return ""
    review = [f"entry {at}, {_entry(done, at)}" for at in end.review]
    lines = [
        f"episode {done.id}: {end.reason} after {counted(done.turns, 'turn')}, {counted(end.tokens, 'token')}",
        *_scores(end),
        *(f"  rejected: {one.turn}.{one.attempt} of {one.actor}: {', '.join(one.codes)}" for one in done.rejections),
        *(f"  for review: {one}" for one in review),
        *_state(done.state),
    ]
    return "\n".join(lines)


def _scores(end: Ended) -> list[str]:
    return [f"  {actor}: score {score}, penalties {end.penalties[actor]}" for actor, score in end.scores.items()]


def _state(state: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [f"  {group}: {_values(values)}" for group, values in state.items()]


def _entry(done: Episode, at: int) -> str:
    entry = done.transcript[at]
    return f"{entry['kind']} of {entry['author']}: {printable(entry['text'])}"


def _values(values: Any) -> str:
    return ", ".join(f"{name} {printable(json_text(value))}" for name, value in values.items())

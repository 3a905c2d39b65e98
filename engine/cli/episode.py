"""`engine episode`: run an episode of several actors, each turn decided and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.outputs import json_text, write
from engine.cli.waiting import Waiting
from engine.documents.files import printable

if TYPE_CHECKING:
    from engine.episodes.result import Episode

app = typer.Typer()


@app.callback()
def episode() -> None:
    """Keep `run` a command of its own."""


@app.command("run")
@options.sourced("state", *options.SERVED)
def run(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File of the episode, as in docs/episodes.md.")],
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Id of the episode; one that the record knows goes on where it stood."),
    ] = None,
    how: options.Output = "text",
    principal: options.Principal = None,
    run_id: options.Run = None,
) -> None:
    """Run an episode with the actors of its file, to its end.

    Every call of an actor is decided on before, and every reply after it. With --id, a run that was killed goes on,
    and an episode that has ended prints its recorded end. Exits with 0 if it was completed, aborted or timed out, and
    with 1 if a limit or the penalties of an actor ended it.
    """
    from engine.episodes.definition import read_definition
    from engine.settings import ReadLimits

    definition = read_definition(path, ReadLimits())
    progress = _Progress()
    with sources.engine("episode", "transcript", progress=progress) as engine, progress:
        done = engine.episode(definition, None, options.text(name), options.context(principal, run_id))
    if done.end is None and done.fault is not None:
        raise done.fault
    write([(json_text(document(done)) + "\n" if how == "json" else _people(done), None)])
    raise typer.Exit(done.exit)


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
        "rejected": [
            {"turn": one.turn, "attempt": one.attempt, "actor": one.actor, "codes": list(one.codes)}
            for one in done.rejections
        ],
        "review": [] if end is None else list(end.review),
        "transcript": [dict(entry) for entry in done.transcript],
    }


def _people(done: Episode) -> str:
    end = done.end
    if end is None:
        return ""
    review = [f"entry {at}, {_entry(done, at)}" for at in end.review]
    lines = [
        f"episode {done.id}: {end.reason} after {done.turns} turns, {end.tokens} tokens",
        *(f"  {actor}: score {score}, penalties {end.penalties[actor]}" for actor, score in end.scores.items()),
        *(f"  rejected: {one.turn}.{one.attempt} of {one.actor}: {', '.join(one.codes)}" for one in done.rejections),
        *(f"  for review: {one}" for one in review),
        *(f"  {group}: {_values(values)}" for group, values in done.state.items()),
    ]
    return "\n".join(lines) + "\n"


def _entry(done: Episode, at: int) -> str:
    entry = done.transcript[at]
    return f"{entry['kind']} of {entry['author']}: {printable(entry['text'])}"


def _values(values: Any) -> str:
    return ", ".join(f"{name} {printable(json_text(value))}" for name, value in values.items())


class _Progress(Waiting):
    """Tells which turn it is."""

    def __call__(self, what: str, done: int, of: int) -> None:
        if what == "turn":
            self.tell(f"turn {done} of at most {of}")

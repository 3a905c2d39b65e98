"""`engine record replay`: what a candidate policy would have decided differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from engine.binaries import find_binary
from engine.cli import options
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import built_policy, refusals
from engine.cli.record.commands import Point, Principal, Since, existing_folder, report_unreadable, require_intact
from engine.cli.record.replayed import replay_page, replay_text
from engine.cli.waiting import Waiting
from engine.errors import Exit, GatherError

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle
    from engine.replay.run import Replay
    from engine.settings import Settings

_MOST_SAMPLE = 1_000_000
_BAR = 20


Form = Annotated[
    Literal["text", "json", "html"], typer.Option("--format", help="Output format; html is one page to pass on.")
]


@options.sourced("state", *options.RULES, "release", "release_key", "values")
def replay_record(
    sources: options.Sources,
    since: Since = None,
    point: Point = None,
    principal: Principal = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_SAMPLE, metavar="N", help="Replay N of the decisions, the same ones every time."),
    ] = None,
    broken: Annotated[
        bool, typer.Option("--broken", help="Replay the readable lines of a record that is broken.")
    ] = False,
    how: Form = "text",
) -> None:
    """Decide recorded inputs again by a candidate policy, and report what it would have decided differently.

    The candidate is the policy or release of these options. Nothing is enforced or recorded.
    Exits with 6 if an outcome changed, or what an allow permits; with 5 if the candidate has problems, with 4 if the
    record is broken, and with 2 if no recorded decision could be compared.
    """
    from engine.record.reader import Filter
    from engine.replay.candidate import opened
    from engine.replay.document import replay_document
    from engine.replay.run import replay
    from engine.secrets.patterns import know

    folder = existing_folder(sources.state)
    settings = sources.settings()
    policy = _candidate(sources, settings)
    lines = require_intact(folder, broken=broken)
    know(policy.lookups.forms)
    with (
        opened(policy, settings.opa, None if point is None else frozenset({point}), settings.release_key) as candidate,
        Waiting() as waiting,
    ):
        criteria = Filter(since=since, point=point, principal=principal)
        found = replay(folder, criteria, candidate, sample, lambda done, read: waiting.show(_bar(done, read, lines)))
    for place in found.unreadable:
        report_unreadable(place)
    if not found.decisions:
        raise GatherError("no recorded decision matches", remedy="widen --since, --point or --principal")
    title = f"Replay by policy {policy.name}"
    report(found, replay_document(found, policy.name, policy.revisions), how, title)


def _candidate(sources: options.Sources, settings: Settings) -> PolicyBundle:
    """The policy of these options, or a release, which may be older than the one that was served last."""
    from engine.policy_bundle.release import load_release

    if settings.release is None:
        return built_policy(sources)
    with refusals():
        return load_release(settings.release, settings.release_key, find_binary(), settings.cache, None)


def report(found: Replay, document: dict[str, Any], how: Form, title: str) -> NoReturn:
    """Print what a replay found, and end the command with its exit code."""
    if how == "html":
        text = replay_page(document, title)
    else:
        text = json_text(document) if how == "json" else replay_text(document)
    print_text(text)
    raise typer.Exit(Exit.REPLAY_CHANGED if found.changed else Exit.ALLOW if found.compared else Exit.UNREADABLE)


def _bar(done: int, read: int, lines: int) -> str:
    part = min(read / max(lines, 1), 1.0)
    return f"[{'#' * round(part * _BAR):<{_BAR}}] {part:4.0%}  decisions replayed: {done:,}"

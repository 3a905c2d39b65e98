"""`engine policy`: build, show, release and activate the policy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.binaries import find_binary
from engine.cli import options
from engine.cli.administration import acts
from engine.cli.administration.control import ControlReply, post_all
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.agreed import activate_everywhere
from engine.cli.record.commands import require_intact
from engine.cli.waiting import Waiting, during
from engine.documents.files import counted, printable
from engine.errors import EngineError, Exit, PolicyError

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle
    from engine.policy_bundle.catalogue import Requirement
    from engine.policy_bundle.release_folder import Statement

app = typer.Typer()


Folder = Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Release folder.")]
Author = Annotated[
    str | None, options.words("--author", metavar="NAME", help="Author of the release (default: the current user).")
]
Previous = Annotated[
    Path | None, options.folder("--after", help="Previous release; lists the codes that this one no longer has.")
]


@app.command("build")
@options.sourced(*options.RULES, "values")
def build_policy(
    sources: options.Sources,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder to write an unsigned release to.")
    ] = None,
    sequence: Annotated[
        int | None, typer.Option(min=1, help="Release number; must increase with each release.")
    ] = None,
    after: Annotated[
        Path | None, options.folder(help="Previous release; sets the number to the next one and lists removed codes.")
    ] = None,
    now: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            help="Build time to state in the release, such as 2026-11-21T00:00:00Z.",
            parser=options.moment,
        ),
    ] = None,
    author: Author = None,
    notes: Annotated[str | None, options.words(help="Notes for those who review the release.")] = None,
    record: Annotated[
        Path | None,
        options.folder(
            help="State folder; its recorded decisions are replayed, and the summary goes into the release."
        ),
    ] = None,
) -> None:
    """Check rules and values and build the archives that OPA serves. Exits with 5 on any problem."""
    if output is None and (sequence is not None or after is not None):
        raise typer.BadParameter("they apply to a release: add --output", param_hint="--sequence, --after")
    if output is not None and (sequence is None) == (after is None):
        raise typer.BadParameter("give one: --sequence 1 for a first release", param_hint="--sequence, --after")
    built = built_policy(sources)
    if output is None:
        print_text(f"policy  {built.name}\nrules   {built.rules.revision}\nvalues  {built.values.revision}")
        return
    from engine.policy_bundle.release import Authorship
    from engine.releasing import build_release

    by = Authorship(author or options.user(), now or datetime.now(UTC), notes or "")
    with refusals():
        summary = None if record is None else _replayed(record, built, sources)
        statement, removed = build_release(built, output, by, after or sequence or 1, summary)
    print_release("written", statement)
    _print_removed(removed)


def _replayed(state: Path, policy: PolicyBundle, sources: options.Sources) -> dict[str, Any]:
    """The summary of a replay of the record by this policy. Exits with 4 for a record that is broken."""
    from engine.releasing import replay_summary

    require_intact(state)
    with Waiting() as waiting:
        return replay_summary(
            state, policy, sources.settings().opa, lambda done, _: waiting.show(f"decisions replayed: {done:,}")
        )


@app.command("sign")
def sign_policy(
    folder: Folder, key: Annotated[Path, options.file(help="Private key: EC P-256, unencrypted PEM.")]
) -> None:
    """Sign a release, replacing its signature. Exits with 5 if the folder is not a release."""
    from engine.policy_bundle.release import sign_release

    with refusals():
        statement = sign_release(folder, key, find_binary())
    print_release("signed", statement)


@app.command("verify")
def verify_policy(folder: Folder, key: options.ReleaseKey = None, after: Previous = None) -> None:
    """Verify that a release is complete and signed with a key. Exits with 5 otherwise, naming the reason."""
    from engine.policy_bundle.release import verify_release

    if key is None:
        raise typer.BadParameter("name the public key that it must be signed with", param_hint="--release-key")
    with refusals():
        contents = verify_release(folder, key, find_binary())
        before = None if after is None else verify_release(after, key, find_binary())
    print_release("verified", contents.statement)
    if contents.approval is not None:
        print_text(f"author   {contents.statement.author}\napproved by {contents.approval.approver}")
    _print_removed(() if before is None else before.catalogue.without(contents.catalogue))


@app.command("activate")
def activate_policy(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            exists=True,
            file_okay=False,
            help="Release for all engines of the state; each must have it below its --releases.",
        ),
    ] = None,
    key: options.ReleaseKey = None,
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Make all running servers of the state folder reload their policy, or all engines of a state serve a release.

    It is recorded as done by the current user, or by the principal of the token in ENGINE_TOKEN. Exits with 5 if a
    server refuses the policy and keeps the old one, with 4 if a server does not answer. With a release, all engines
    load it before any serves it, and this command ends when no engine decides under the previous one.
    """
    if folder is not None:
        with refusals():
            activate_everywhere(folder, key, reason, state)
        return
    servers = activated(options.state_folder(state), reason)
    codes = []
    for chain, answer in servers.items():
        if len(servers) > 1:
            print_text(f"server on chain {chain}:")
        code, lines = activation_report(answer)
        if code is Exit.ALLOW:
            print_text("\n".join(lines))
        else:
            typer.echo("\n".join(lines), err=True)
        codes.append(code)
    raise typer.Exit(max(codes))


def activated(state: Path, reason: str | None) -> dict[int, ControlReply | EngineError]:
    """Have all running servers of a state folder reload their policy: what each answered, by its chain.

    They record the current user, or the principal of the token in ENGINE_TOKEN. Raises NotServedError where none runs.
    """
    body = None if reason is None else {"reason": reason}
    answers = post_all(state, "/v1/policy/activate", body, os.environ.get(acts.TOKEN))
    return {  # a program that embeds the engine accepts acts only, and has no policy to reload
        chain: answer
        for chain, answer in answers.items()
        if not isinstance(answer, ControlReply) or answer.status != HTTPStatus.NOT_FOUND
    } or answers


@app.command("show")
@options.sourced(*options.RULES, "values")
def show_policy(
    sources: options.Sources,
    point: Annotated[
        str | None, typer.Argument(help="Filter by decision point, such as source.", **options.POINT)
    ] = None,
    how: Annotated[Literal["text", "json", "rego"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """List the requirements with level, code, remedy and file."""
    built = built_policy(sources)
    chosen = sorted(built.catalogue.points) if point is None else [point]
    if how == "rego":
        print_text("\n".join(built.module(one) for one in chosen))
    elif how == "json":
        print_text(_json(built, chosen))
    else:
        print_text(_text(built, chosen))


def built_policy(sources: options.Sources) -> PolicyBundle:
    """The policy bundle of these options; its problems go to standard error."""
    with refusals():
        return build_from(sources)


def build_from(sources: options.Sources) -> PolicyBundle:
    """The same. Raises PolicyError with every problem."""
    from engine.points.registry import POINTS
    from engine.policy_bundle.build import build
    from engine.policy_bundle.sources import PolicySources

    settings = sources.settings()
    folders = PolicySources(settings.rego, settings.policy, settings.recipe, tuple(sources.values or ()))
    binary = find_binary()
    with during("building the policy"):
        return build(folders, POINTS, binary, settings.cache)


@contextmanager
def refusals() -> Iterator[None]:
    """Problems of a policy or release end the command with exit code 5."""
    try:
        yield
    except PolicyError as error:
        options.refuse_values(error.problems)
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        typer.echo(counted(len(error.problems), "problem"), err=True)
        raise typer.Exit(Exit.POLICY_INVALID) from error


def print_release(done: str, statement: Statement) -> None:
    """Print what was done to a release, and its revisions."""
    print_text(f"{done:<8} release {statement.sequence} of {statement.name}, built {statement.created_at}")
    print_text(f"rules    {statement.rules}\nvalues   {statement.values}")


def _print_removed(codes: Iterable[str]) -> None:
    for code in codes:
        print_text(f"removed  {_one_line(code)}")


def activation_report(answer: ControlReply | EngineError) -> tuple[Exit, list[str]]:
    """What a server answered to an activation, in lines, and the exit code for it."""
    if isinstance(answer, EngineError):
        return answer.exit, [f"engine: {answer}", f"  {answer.remedy}"]
    if answer.status == HTTPStatus.OK:
        return Exit.ALLOW, _activated(answer.document)
    lines = [*_refusal(answer.document)]
    if answer.status == HTTPStatus.CONFLICT:
        return Exit.POLICY_INVALID, [*lines, "engine: the policy was refused; the server keeps the previous policy"]
    return Exit.FAILED_CLOSED, [*lines, f"engine: the server did not activate the policy (HTTP {answer.status})"]


def _activated(document: dict[str, Any]) -> list[str]:
    previous = document.get("previous")
    before = previous if isinstance(previous, dict) else {}
    removed = document.get("removed_codes")
    lines = [f"{part:<7} {_replaced(before.get(part), document.get(part))}" for part in ("rules", "values")]
    return lines + [f"removed {_one_line(code)}" for code in (removed if isinstance(removed, list) else ())]


def _replaced(old: object, new: object) -> str:
    return f"{_one_line(new)} as before" if old == new else f"{_one_line(old or 'none')} → {_one_line(new)}"


def _refusal(document: dict[str, Any]) -> Iterator[str]:
    """The problems of the server's answer, or its own words where it lists none."""
    problems = document.get("problems")
    listed = [one for one in problems if isinstance(one, dict)] if isinstance(problems, list) else []
    for one in listed:
        yield f"{_one_line(one.get('where') or 'policy')}: {_one_line(one.get('message'))}"
        yield f"  {_one_line(one.get('remedy'))}"
    if not listed:
        yield f"engine: {_one_line(document.get('detail') or document.get('title'))}"
        yield f"  {_one_line(document.get('remedy') or 'see the log of the server')}"


def _one_line(text: object) -> str:
    return printable(str(text), 2_000)


def _text(built: PolicyBundle, points: list[str]) -> str:
    lines = [f"policy {built.name}: {built.metadata['description']} ({built.metadata['owner']})"]
    lines += [f"  rules   {built.rules.revision}", f"  values  {built.values.revision}"]
    for point in points:
        entries = built.display_catalogue.points[point]
        lines += ["", f"{point}: {counted(len(entries.requirements), 'requirement')}"]
        for one in entries.requirements.values():
            lines += ["", *_requirement_text(built, one)]
        lines += ["", "  always demanded"]
        lines += [f"    {words.code}  {words.title}" for words in entries.generated.values()]
        lines += _proofs_text(built, "helpers and limits with a proof", {point, "common"})
    return "\n".join(lines + _proofs_text(built, "shared helpers with a proof", {""}))


def _proofs_text(built: PolicyBundle, title: str, points: set[str]) -> list[str]:
    """Why bodies that could hold on a missing fact are safe, for reviewers."""
    found = [one for one in built.catalogue.proofs if one.point in points]
    lines = [f"    {one.rule}  {one.proof} ({built.where(one.file, one.line)})" for one in found]
    return ["", f"  {title}", *lines] if lines else []


def _requirement_text(built: PolicyBundle, one: Requirement) -> list[str]:
    labels = ", ".join(f"{name} {value}" for name, value in sorted(one.labels.items()))
    applies = "once" if one.each is None else f"for each of {one.each}"
    applies += ", which must be empty" if one.empty == "required" else ""
    return [
        f"  {one.code}  ({built.level(one.point, one.code)}{', added' if one.added else ''})",
        f"    required    {one.title}",
        f"    applies     {applies}",
        f"    fix         {one.remedy}",
        *([f"    proof       {one.proof}"] if one.proof else []),
        *([f"    labels      {labels}"] if labels else []),
        f"    written in  {built.where(one.file, one.line)}",
    ]


def _json(built: PolicyBundle, points: list[str]) -> str:
    document = {
        "policy": {**built.metadata, "rules": built.rules.revision, "values": built.values.revision},
        "points": {
            point: {
                "requirements": [
                    {"level": built.level(point, one.code), **one.model_dump(mode="json")}
                    for one in entries.requirements.values()
                ],
                "generated": [{"level": "deny", **one.model_dump(mode="json")} for one in entries.generated.values()],
            }
            for point, entries in ((point, built.catalogue.points[point]) for point in points)
        },
        "proofs": [
            one.model_dump(mode="json") for one in built.catalogue.proofs if one.point in {*points, "common", ""}
        ],
    }
    return json_text(document)

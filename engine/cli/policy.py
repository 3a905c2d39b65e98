"""`engine policy`: build, show, lint and test the policy; release it, signed; tell the server to take it."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import acts, options
from engine.errors import Exit, GatherError, Location, PolicyError, Problem
from engine.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.opa.binary import Binary
    from engine.policy_bundle.build import PolicyBundle
    from engine.policy_bundle.catalogue import Requirement
    from engine.policy_bundle.release_folder import Contents, Statement
    from engine.settings import Settings

app = typer.Typer(
    help="Build, show, lint, test, release and activate the policy: rego/ with policy/.",
    no_args_is_help=True,
)


class Format(StrEnum):
    """What `--format` takes; `rego` is what the build generates."""

    TEXT = "text"
    JSON = "json"
    REGO = "rego"


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Release folder.", show_default=False)]


@app.command("build")
def build_policy(
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="New folder to write an unsigned release to."),
    ] = None,
    sequence: Annotated[
        int | None, typer.Option("--sequence", min=1, help="Release number; must increase with each release.")
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            "--after",
            metavar="DIR",
            help="Previous release; sets the number to the next one and lists removed codes.",
        ),
    ] = None,
    now: Annotated[
        str | None,
        typer.Option("--now", metavar="TIME", help="Build time to state in the release, such as 2026-11-21T00:00:00Z."),
    ] = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """Check rules and values and build the archives that OPA serves. Exits with 5 on any problem."""
    if output is None and (sequence is not None or after is not None):
        raise typer.BadParameter("they number a release: give --output too", param_hint="--sequence, --after")
    if output is not None and (sequence is None) == (after is None):
        raise typer.BadParameter("give one of them: --sequence 1 for a first release", param_hint="--sequence, --after")
    moment = options.moment(now)
    built, _ = built_policy(policy, rego, bundle, values)
    if output is None:
        typer.echo(f"policy  {built.name}\nrules   {built.rules.revision}\nvalues  {built.values.revision}")
        return
    from engine.policy_bundle.release import write_release
    from engine.policy_bundle.release_folder import read

    with _refusals():
        before = None if after is None else read(after)
        number = sequence or _number_after(built.name, before)
        statement = write_release(built, output, number, moment)
    _tell_release("written", statement)
    _tell_gone(() if before is None else before.catalogue.without(built.catalogue))


@app.command("sign")
def sign_policy(
    folder: Folder,
    key: Annotated[Path, typer.Option("--key", metavar="PEM", help="Private key: EC P-256, unencrypted PEM.")],
) -> None:
    """Sign a release, replacing its signature. Exits with 5 if the folder is not a release."""
    from engine.opa.binary import find_binary
    from engine.policy_bundle.release import sign_release

    with _refusals():
        statement = sign_release(folder, key, find_binary())
    _tell_release("signed", statement)


@app.command("verify")
def verify_policy(
    folder: Folder,
    key: Annotated[Path, typer.Option("--key", metavar="PEM", help="Public key (PEM) that verifies the release.")],
    after: Annotated[
        Path | None,
        typer.Option("--after", metavar="DIR", help="Previous release; lists the codes that this one no longer has."),
    ] = None,
) -> None:
    """Verify that a release is complete and signed with a key. Exits with 5 otherwise, naming the reason."""
    from engine.opa.binary import find_binary
    from engine.policy_bundle.release import verify_release

    with _refusals():
        contents = verify_release(folder, key, find_binary())
        before = None if after is None else verify_release(after, key, find_binary())
    _tell_release("verified", contents.statement)
    _tell_gone(() if before is None else before.catalogue.without(contents.catalogue))


@app.command("activate")
def activate_policy(reason: acts.Reason = None, state: options.State = None) -> None:
    """Make the running server reload its policy from its folders.

    Exits with 5 if the server refuses the policy and keeps the old one, with 4 if no server answers.
    """
    from engine.cli.control import post

    body = None if reason is None else {"reason": reason}
    reply = post(options.settings(state).state, "/v1/policy/activate", body)
    if reply.status == HTTPStatus.OK:
        typer.echo(_activated(reply.document))
        return
    refused = reply.status == HTTPStatus.CONFLICT
    for line in _refusal(reply.document):
        typer.echo(line, err=True)
    if refused:
        typer.echo("engine: the policy was refused; the server keeps answering from the one it had", err=True)
    else:
        typer.echo(f"engine: the server did not activate the policy (HTTP {reply.status})", err=True)
    raise typer.Exit(Exit.POLICY_INVALID if refused else Exit.FAILED_CLOSED)


@app.command("show")
def show_policy(
    point: Annotated[str | None, typer.Argument(help="Filter by decision point, such as source.")] = None,
    how: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """List the requirements with level, code, remedy and file."""
    built, _ = built_policy(policy, rego, bundle, values)
    points = sorted(built.catalogue.points)
    if point is not None and point not in points:
        raise GatherError(f"there is no decision point `{point[:40]}`", remedy=f"use one of: {', '.join(points)}")
    chosen = points if point is None else [point]
    if how is Format.REGO:
        typer.echo("\n".join(built.module(one) for one in chosen), nl=False)
    elif how is Format.JSON:
        typer.echo(_json(built, chosen))
    else:
        typer.echo(_text(built, chosen))


@app.command("lint")
def lint_policy(
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """Report problems in rules and values with file, line and remedy. Exits with 5 if there are any."""
    try:
        built, _ = built_policy(policy, rego, bundle, values, loud=False)
    except PolicyError as error:
        _tell(error.problems)
        raise typer.Exit(Exit.POLICY_INVALID) from error
    count = len(
        {(one.file, one.code) for entries in built.catalogue.points.values() for one in entries.requirements.values()}
    )
    typer.echo(f"{count} requirements at {len(built.catalogue.points)} points: no problems")


@app.command("test")
def run_policy_tests(
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="DIR", help="Also run the case files in this folder.")
    ] = None,
) -> None:
    """Run the Rego tests. Exits with 5 if one fails or a line of rego/ is not covered."""
    from engine.opa.command import OpaCommand
    from engine.policy_bundle.testing import run_tests

    built, binary = built_policy(policy, rego, bundle, values)
    run = run_tests(built, OpaCommand(binary.path))
    if run.problems:
        _tell(run.problems)
        raise typer.Exit(Exit.POLICY_INVALID)
    typer.echo(f"{run.passed} tests passed; 100 % of lines covered in {run.files} files")
    if cases is not None:
        _run_cases(cases, options.settings(policy=policy, rego=rego, recipe=bundle), tuple(values or ()))


def _run_cases(folder: Path, settings: Settings, values: tuple[str, ...]) -> None:
    import tempfile

    from engine.cases import Runner, read_cases

    files = read_cases(folder)
    if not files:
        raise GatherError(f"there are no cases in `{shown(str(folder))}`", remedy="name a folder with case files")
    with (
        tempfile.TemporaryDirectory(prefix="admission-cases-") as scratch,
        Runner(settings, Path(scratch), values) as runner,
    ):
        found = [
            Problem(Location(str(file.path)), difference, "correct the case, or the rule or value that it caught")
            for file in files
            for difference in runner.differences(file)
        ]
    if found:
        _tell(found)
        raise typer.Exit(Exit.POLICY_INVALID)
    typer.echo(f"{len(files)} cases passed")


def built_policy(
    policy: Path | None, rego: Path | None, recipe: Path | None, values: list[str] | None, *, loud: bool = True
) -> tuple[PolicyBundle, Binary]:
    """The policy bundle of these options; its problems are told on standard error and end with 5."""
    from engine.opa.binary import find_binary
    from engine.points.registry import POINTS
    from engine.policy_bundle.build import build
    from engine.policy_bundle.sources import PolicySources

    settings = options.settings(policy=policy, rego=rego, recipe=recipe)
    sources = PolicySources(settings.rego, settings.policy, settings.recipe, tuple(values or ()))
    binary = find_binary()
    try:
        return build(sources, POINTS, binary, settings.cache), binary
    except PolicyError as error:
        if not loud:
            raise
        _tell(error.problems, err=True)
        raise typer.Exit(Exit.POLICY_INVALID) from error


def _tell(problems: Iterable[Problem], *, err: bool = False) -> None:
    told = list(problems)
    for problem in told:
        typer.echo(str(problem), err=err)
    typer.echo(f"{len(told)} problem{'s' if len(told) > 1 else ''}", err=True)


@contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with a release is told on standard error and ends with 5."""
    try:
        yield
    except PolicyError as error:
        _tell(error.problems, err=True)
        raise typer.Exit(Exit.POLICY_INVALID) from error


def _number_after(name: str, before: Contents | None) -> int:
    """The number after that of a release of the same policy; 1 where there is none."""
    if before is None:
        return 1
    statement = before.statement
    if statement.name != name:
        message = f"--after names a release of the policy `{statement.name}`, not of `{name}`"
        raise GatherError(message, remedy="name a release of the same policy, or give --sequence 1")
    return statement.sequence + 1


def _tell_release(done: str, statement: Statement) -> None:
    typer.echo(f"{done:<8} release {statement.sequence} of {statement.name}, built {statement.created_at}")
    typer.echo(f"rules    {statement.rules}\nvalues   {statement.values}")


def _tell_gone(codes: Iterable[str]) -> None:
    for code in codes:
        typer.echo(f"gone     {_one_line(code)}")


def _activated(document: dict[str, Any]) -> str:
    previous = document.get("previous")
    before = previous if isinstance(previous, dict) else {}
    gone = document.get("gone")
    lines = [
        f"{part:<7} {_one_line(before.get(part) or 'none')} → {_one_line(document.get(part))}"
        for part in ("rules", "values")
    ]
    return "\n".join(lines + [f"gone    {_one_line(code)}" for code in (gone if isinstance(gone, list) else ())])


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
    return shown(str(text), 2_000)


def _text(built: PolicyBundle, points: list[str]) -> str:
    lines = [f"policy {built.name}: {built.metadata['description']} ({built.metadata['owner']})"]
    lines += [f"  rules   {built.rules.revision}", f"  values  {built.values.revision}"]
    for point in points:
        entries = built.catalogue.points[point]
        lines += ["", f"{point}: {len(entries.requirements)} requirements"]
        for one in entries.requirements.values():
            lines += ["", *_requirement_text(built, one)]
        lines += ["", "  always demanded"]
        lines += [f"    {words.code}  {words.title}" for words in entries.generated.values()]
        lines += _proofs_text(built, "helpers and limits with a proof", {point, "common"})
    return "\n".join(lines + _proofs_text(built, "shared helpers with a proof", {""}))


def _proofs_text(built: PolicyBundle, title: str, points: set[str]) -> list[str]:
    """Why bodies that could hold on a missing fact are safe, for who reviews them."""
    found = [one for one in built.catalogue.proofs if one.point in points]
    lines = [f"    {one.rule}  {one.proof} ({built.where(one.file, one.line)})" for one in found]
    return ["", f"  {title}", *lines] if lines else []


def _requirement_text(built: PolicyBundle, one: Requirement) -> list[str]:
    labels = ", ".join(f"{name} {value}" for name, value in sorted(one.labels.items()))
    asked = "once" if one.each is None else f"for each of {one.each}"
    asked += ", which must be empty" if one.empty == "required" else ""
    return [
        f"  {one.code}  ({built.level(one.point, one.code)}{', added' if one.added else ''})",
        f"    required    {one.title}",
        f"    asked       {asked}",
        f"    fix         {one.remedy}",
        *([f"    proof       {one.proof}"] if one.proof else []),
        *([f"    labels      {labels}"] if labels else []),
        f"    written in  {built.where(one.file, one.line)}",
    ]


def _json(built: PolicyBundle, points: list[str]) -> str:
    import json

    shown: dict[str, Any] = {
        "policy": {**built.metadata, "rules": built.rules.revision, "values": built.values.revision},
        "points": {
            point: {
                "requirements": [
                    {"level": built.level(point, one.code), **one.model_dump(mode="json")}
                    for one in built.catalogue.points[point].requirements.values()
                ],
                "generated": [
                    {"level": "deny", **one.model_dump(mode="json")}
                    for one in built.catalogue.points[point].generated.values()
                ],
            }
            for point in points
        },
        "proofs": [
            one.model_dump(mode="json") for one in built.catalogue.proofs if one.point in {*points, "common", ""}
        ],
    }
    return json.dumps(shown, indent=2, ensure_ascii=False)

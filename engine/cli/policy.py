"""`engine policy`: build the policy bundle, show what it demands, lint and test it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.errors import Exit, GatherError, Location, PolicyError, Problem
from engine.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.opa.binary import Binary
    from engine.policy_bundle.build import PolicyBundle
    from engine.policy_bundle.catalogue import Requirement
    from engine.settings import Settings

app = typer.Typer(help="Build, show, lint and test the policy: rego/ with the values of policy/.", no_args_is_help=True)


class Format(StrEnum):
    """What `--format` takes; `rego` is what the build generates."""

    TEXT = "text"
    JSON = "json"
    REGO = "rego"


@app.command("build")
def build_policy(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to put both archives and the catalogue.")
    ] = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """Check rules and values and make the archives that OPA serves; ends with 5 where something is wrong."""
    built, _ = _build(policy, rego, bundle, values)
    if out is not None:
        _copy(built, out)
    typer.echo(f"policy  {built.name}")
    typer.echo(f"rules   {built.rules.revision}")
    typer.echo(f"values  {built.values.revision}")


@app.command("show")
def show_policy(
    point: Annotated[str | None, typer.Argument(help="Only this decision point, such as source.")] = None,
    how: Annotated[Format, typer.Option("--format", help="How to tell it.")] = Format.TEXT,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
) -> None:
    """Show every requirement: what must hold, what its finding does, what to do, and where it is written."""
    built, _ = _build(policy, rego, bundle, values)
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
    """Tell every problem of rules and values with file, line and remedy; ends with 5 where there is one."""
    try:
        built, _ = _build(policy, rego, bundle, values, loud=False)
    except PolicyError as error:
        _tell(error.problems)
        raise typer.Exit(Exit.POLICY_INVALID) from error
    count = sum(len(entries.requirements) for entries in built.catalogue.points.values())
    typer.echo(f"no problems in {count} requirements of {len(built.catalogue.points)} points")


@app.command("test")
def run_policy_tests(
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    values: options.Values = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="DIR", help="Also run the case files below this folder.")
    ] = None,
) -> None:
    """Run the tests beside the rules; ends with 5 where one fails, or where no test reaches a line of rego/."""
    from engine.opa.command import OpaCommand
    from engine.policy_bundle.testing import run_tests

    built, binary = _build(policy, rego, bundle, values)
    run = run_tests(built, OpaCommand(binary.path))
    if run.problems:
        _tell(run.problems)
        raise typer.Exit(Exit.POLICY_INVALID)
    typer.echo(f"{run.passed} tests passed and reach every line of {run.files} files")
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
    typer.echo(f"{len(files)} cases give what they want")


def _build(
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


def _copy(built: PolicyBundle, out: Path) -> None:
    """Put archives and catalogue into a folder; each file appears whole."""
    import os

    files = {
        "rules.tar.gz": built.rules.path,
        "values.tar.gz": built.values.path,
        "catalogue.json": built.rules.path.with_name("catalogue.json"),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, source in files.items():
            partial = out / f".{name}.{os.getpid()}.partial"
            try:
                partial.write_bytes(source.read_bytes())
                partial.replace(out / name)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or "failed").lower()
        raise GatherError(f"cannot write to `{out}`: {reason}", remedy="name a folder that can be written") from error


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
    return "\n".join(lines)


def _requirement_text(built: PolicyBundle, one: Requirement) -> list[str]:
    labels = ", ".join(f"{name} {value}" for name, value in sorted(one.labels.items()))
    asked = "once" if one.each is None else f"for each of {one.each}"
    return [
        f"  {one.code}  ({built.level(one.point, one.code)}{', added' if one.added else ''})",
        f"    must hold   {one.title}",
        f"    asked       {asked}",
        f"    what to do  {one.remedy}",
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
    }
    return json.dumps(shown, indent=2, ensure_ascii=False)

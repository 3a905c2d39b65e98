"""`engine source …`: start a source bundle from files and their metadata, and keep its hashes up to date."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli import options
from engine.cli.outputs import print_text, write_file
from engine.cli.terminal import remark
from engine.cli.usage import not_one_of
from engine.cli.waiting import Waiting
from engine.documents.files import counted, printable
from engine.errors import GatherError
from engine.settings import ReadLimits
from engine.times import seconds, time_text

if TYPE_CHECKING:
    from engine.sources.document import Statements

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder of the content.")]


Origin = Literal["auto", "hf", "croissant", "datapackage", "folder"]


@app.command("init")
@options.sourced("policy")
def init(
    sources: options.Sources,
    folder: Folder,
    origin: Annotated[
        Origin,
        typer.Option(
            "--from",
            help="Metadata to use: a Hugging Face card, Croissant, a data package, or the files alone; "
            "`auto` also reads the license in pyproject.toml, package.json and Cargo.toml.",
        ),
    ] = "auto",
    license_: Annotated[
        str | None,
        typer.Option("--license", metavar="SPDX", help="License of files for which nothing else states one."),
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="train, eval, tool or environment.")] = None,
    environment: Annotated[str | None, typer.Option(help="Environment to build from it.")] = None,
    export_license: Annotated[
        str | None, typer.Option(help="License under which the result is shared with others.")
    ] = None,
    retention_until: Annotated[
        str | None, typer.Option(metavar="DAY", help="Last day on which the content may be kept.")
    ] = None,
    retention_basis: Annotated[
        str | None, typer.Option(metavar="WORD", help="Legal basis for keeping the content.")
    ] = None,
    retrieved_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When the content was downloaded (UTC).")
    ] = None,
    decided_by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Person who accepts the licenses of exactly this content.")
    ] = None,
) -> None:
    """Write bundle.yaml for the files of a folder; asks on a terminal for what only a person can state."""
    from engine.cli.policy.commands import built_policy
    from engine.facts.archives.source_bundle import DOCUMENT
    from engine.sources import metadata
    from engine.sources.document import Statements
    from engine.sources.start import start

    target = folder / DOCUMENT
    if target.exists():
        raise GatherError(f"`{printable(str(target))}` exists", remedy="edit it, or remove it first")
    limits, values = ReadLimits(), built_policy(sources).data["sources"]
    files = {"hf": metadata.CARD, "croissant": metadata.CROISSANT, "datapackage": metadata.DATA_PACKAGE}
    described = metadata.found(folder, limits) if origin == "auto" else None
    if origin in files:
        described = metadata.read(folder / files[origin], limits)
    remote = described is not None and any(one.url for one in described.resources)
    stated = Statements(
        now=time_text(datetime.now(UTC)),
        license=license_ or (None if described and described.license else _prompt("License of the content (SPDX)")),
        purpose=purpose or _prompt("Purpose (train, eval, tool, environment)"),
        environment=environment,
        export_license=export_license or _prompt("License of the result, if it will be shared with others"),
        retention_until=retention_until or _prompt("Keep until (last day, as 2030-12-31)"),
        retention_basis=retention_basis or _prompt("Legal basis for keeping it (contract, license, consent, …)"),
        retrieved_at=retrieved_at or (_prompt("Downloaded at (UTC, as 2026-11-02T09:30:00Z)") if remote else None),
        decided_by=decided_by or _prompt("Your name, if you reviewed this content and accept its licenses"),
    )
    _refuse_words(stated, values)
    with Waiting() as waiting:
        started = start(folder, described, stated, partial(_is_admitted, values), _hashing(waiting), limits)
    write_file(target, _encoded(started.text))
    if license_ and described and described.license and described.license != license_:
        remark(f"engine: {described.file} states the license {printable(described.license)}; --license is not used")
    beside = [path for path in values["extra_files"] if (folder / path).is_file()]
    if beside and stated.license is None and not (described and described.license):
        remark(f"engine: no metadata states a license; look into {', '.join(beside)}")
    if retrieved_at and not remote:
        remark("engine: no metadata states a url, so --retrieved-at is not used and the records count as your own")
    for one in started.remarks:
        remark(f"engine: {one}")
    source = f" and {described.file}" if described else ""
    print_text(f"{printable(str(target))}: {counted(started.records, 'record')}, from the files{source}")
    check = f"run `engine check {printable(str(folder))}`"
    print_text(f"next: {f'complete the lines that begin with `#`, then {check}' if started.open else check}")


def _is_admitted(values: dict[str, Any], path: str) -> bool:
    """Whether the policy admits this file or folder beside the content."""
    name = path.rpartition("/")[2]
    return path in values["extra_files"] or any(fnmatchcase(name, pattern) for pattern in values["system_files"])


def _refuse_words(stated: Statements, values: dict[str, Any]) -> None:
    """Refuse what a check of the new source bundle would deny for its form alone. Raises BadParameter."""
    from engine.facts.archives.source_bundle import last_second

    words = {
        "--purpose": (stated.purpose, "purposes"),
        "--retention-basis": (stated.retention_basis, "retention_bases"),
    }
    for option, (word, known) in words.items():
        if word is not None and word not in values[known]:
            raise typer.BadParameter(not_one_of(word, values[known]), param_hint=option)
    times: dict[str, tuple[str | None, Callable[[str], int], str]] = {
        "--retention-until": (stated.retention_until, last_second, "2030-12-31"),
        "--retrieved-at": (stated.retrieved_at, seconds, "2026-11-02T09:30:00Z"),
    }
    for option, (text, read, such) in times.items():
        if text is None:
            continue
        try:
            read(text)
        except ValueError as error:
            raise typer.BadParameter(f"`{printable(text)}` is not written as {such}", param_hint=option) from error


@app.command("admit")
@options.sourced(*options.DECIDING, "state", *options.SERVED)
def admit(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Source bundle: a folder or an archive.")],
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="Folder into which its records are copied.")],
    how: options.Output = "text",
    digest: options.Digest = None,
) -> None:
    """Admit a source bundle: decide on it, copy exactly its records into DIR, and print the digest that exports name.

    Exits with 0 if it was admitted, else with the code of the decision.
    """
    from engine.cli.formats import extended
    from engine.cli.formats.show import approval_lines
    from engine.model import Outcome
    from engine.reports.explain import report

    with Waiting() as progress, sources.engine("source", progress=lambda what, *_: progress.show(what)) as engine:
        options.report_lowered(engine, "source")
        answer = engine.admit(path, into, digest, sources.context())
        decided = report(str(path), answer, engine.policy)
    if answer.fault is not None and answer.decision.outcome is Outcome.ALLOW:
        raise answer.fault  # the decision says nothing of work that failed
    made: dict[str, Any] | None = None
    if answer.result is not None:
        facts = answer.result.facts
        made = {**facts, "source": f"sha256:{facts['folder']}", "folder": str(into / facts["folder"])}
    lines = [f"admitted {made['source']}: {counted(made['records'], 'record')} in {made['folder']}"] if made else []
    lines = lines or ["nothing was admitted", *approval_lines(answer.decision)]
    print_text(extended(how, decided, {"admitted": made}, lines))
    raise typer.Exit(answer.exit)


@app.command("hash")
def update_hashes(folder: Folder) -> None:
    """Write the hashes of changed files into bundle.yaml; license decisions on the old content stay as they are."""
    from engine.facts.archives.source_bundle import DOCUMENT
    from engine.sources.hashes import updated

    with Waiting() as waiting:
        found = updated(folder, ReadLimits(), _hashing(waiting))
    if found.changed:
        write_file(folder / DOCUMENT, _encoded(found.text), again=True)
    for identity in found.changed:
        print_text(f"{printable(identity)}: new hash")
    for identity in found.outdated:
        print_text(f"{printable(identity)}: its license decision is for the old content; review it and decide again")
    print_text(f"{len(found.changed)} changed")


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise GatherError("a file name or an option is not UTF-8 text", remedy="rename the file") from error


def _prompt(question: str) -> str | None:
    """The answer of a person at a terminal; None without a terminal or an answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    answer: str = typer.prompt(f"{question} [leave open]", default="", show_default=False, err=True)
    return answer.strip() or None


def _hashing(waiting: Waiting) -> Callable[[int, int], None]:
    return lambda done, of: waiting.show(f"hashing {done + 1}/{of}")

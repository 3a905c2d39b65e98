"""`engine check PATH…`: a dry run on source bundles, reported to people and programs."""

from __future__ import annotations

import gc
import os
import re
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.bulk import check_rows
from engine.cli.changes import changed_since
from engine.cli.formats import Context, ReportFormat, render
from engine.cli.outputs import write
from engine.cli.terminal import notice
from engine.cli.usage import not_one_of
from engine.cli.waiting import Waiting
from engine.documents.files import printable
from engine.errors import Exit, GatherError

if TYPE_CHECKING:
    from engine.reports.spool import ReportSpool


_RANK = (Exit.ALLOW, Exit.CONFIRM, Exit.DENY, Exit.UNREADABLE, Exit.POLICY_INVALID, Exit.FAILED_CLOSED)
"""From best to worst: a deny outranks a confirm, a fault outranks both."""


def _address(text: str | None) -> str | None:
    if text and not re.fullmatch(r"https?://[!-~]+", text):
        raise typer.BadParameter("write it as https://…")
    return text.partition("#")[0] if text else None


@options.sourced("state", *options.SERVED, "values", "now")
def check(
    sources: options.Sources,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Source bundles, or folders that contain them.")],
    how: Annotated[ReportFormat, typer.Option("--format", help="Output format.")] = ReportFormat.TEXT,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="FORMAT=FILE",
            autocompletion=lambda: [f"{one}=" for one in ReportFormat],
            help="Also write a report to a file, such as sarif=report.sarif; repeatable.",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also print rules, labels, revisions and limits.")] = False,
    digest: options.Digest = None,
    docs: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="ENGINE_DOCS",
            help="Address of docs/requirements.md, for links in SARIF.",
            callback=_address,
        ),
    ] = None,
    changed: Annotated[
        str | None, typer.Option(metavar="REVISION", help="Check only what changed since this git revision.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Check rows of Parquet or JSON lines on this Ray cluster, or on a `local` one."
        ),
    ] = None,
    columns: Annotated[
        Path | None, options.file("--columns", help="Columns of the rows, as in docs/bulk.md; with --ray.")
    ] = None,
    into: Annotated[
        Path | None, options.folder(exists=False, help="Folder for the record and the admitted rows; with --ray.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers, each with an OPA (default: all processors but one); with --ray.")
    ] = None,
) -> None:
    """Check source bundles without enforcing anything; exits with the worst exit code of all."""
    if ray is not None:
        if digest is not None or changed is not None or outputs:
            raise typer.BadParameter("it excludes --digest, --changed and --output", param_hint="--ray")
        check_rows(sources, paths, how, ray, columns, into, workers)
    for value, hint in ((columns, "--columns"), (into, "--into"), (workers, "--workers")):
        if value is not None:
            raise typer.BadParameter("it needs --ray", param_hint=hint)
    from engine.reports.spool import ReportSpool

    files, named = [_output(one) for one in outputs or ()], list(map(Path, paths))
    found = discover(named)
    if changed is not None:
        found = changed_since(changed, found, named, sources)
    if digest is not None and len(found) > 1:
        raise typer.BadParameter("a digest is of one source bundle, so name only one", param_hint="--digest")
    with closing(ReportSpool()) as reports:
        _decide(found, digest, replace(sources, now=sources.now or datetime.now(UTC)), reports)
        worst = max((report.exit for report in reports), key=_RANK.index, default=Exit.ALLOW)
        shared = Context(exit=worst, explain=explain, base=str(Path.cwd()), docs=docs)
        texts: list[tuple[str, Path | None]] = [(render(format_, reports, shared), path) for format_, path in files]
        write([*texts, (render(how, reports, shared.for_output()), None)])
    raise typer.Exit(worst)


def _output(text: str) -> tuple[ReportFormat, Path]:
    """The format and the file of `FORMAT=FILE`."""
    name, equals, file = text.partition("=")
    if not (equals and file):
        raise typer.BadParameter("write it as FORMAT=FILE, such as sarif=report.sarif", param_hint="--output")
    if name not in list(ReportFormat):
        raise typer.BadParameter(not_one_of(name, ReportFormat), param_hint="--output")
    return ReportFormat(name), Path(file)


def _decide(found: list[Path], digest: str | None, sources: options.Sources, reports: ReportSpool) -> None:
    from engine.reports.explain import report

    if not found:
        return
    with _Progress(len(found)) as progress, sources.engine("source", progress=progress.part) as engine:
        options.report_lowered(engine, "source")
        for path in found:
            progress.bundle(str(path))
            answer = engine.check("source", _request(path, digest))
            reports.add(report(str(path), answer, engine.policy))
            del answer
            gc.collect()  # the parser of a document is a cycle with its buffers, and commands hardly ever collect
            gc.freeze()  # what is left stays; the next collection does not look at it again


def _request(path: Path, digest: str | None) -> dict[str, Any] | GatherError:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return GatherError("the path of the source bundle is not UTF-8 text", remedy="rename the file or folder")
    return {"path": str(path), "digest": digest}


class _Progress(Waiting):
    """Reports which source bundle is checked, and which part of it."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total
        self._done = 0
        self._path = ""

    def bundle(self, path: str) -> None:
        self._done += 1
        self._path = path
        self.part("checking", 0, 0)

    def part(self, what: str, done: int, of: int) -> None:
        parts = f" {done}/{of}" if of else ""
        self.show(f"[{self._done}/{self._total}] {what}{parts} {printable(self._path)}")


DOCUMENT = "bundle.yaml"
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


def discover(paths: list[Path]) -> list[Path]:
    """Every source bundle named, and every one below a folder that is none itself; links are not followed.

    A `bundle.yaml` means its folder. What cannot be read is passed on, so that the engine reports it: a path that
    does not exist, a folder without any source bundle or with a misspelt document, one that cannot be listed.
    """
    found: list[Path] = []
    for path in paths:
        if _is_folder_of_bundles(path):
            found += _below(path) or [path]
        else:
            found.append(path.parent if path.name == DOCUMENT and path.is_file() else path)
    return found


def _is_folder_of_bundles(path: Path) -> bool:
    try:
        return path.is_dir() and not os.path.lexists(path / DOCUMENT)
    except (OSError, ValueError):
        return False


def _below(folder: Path) -> list[Path]:
    from engine.facts.archives.archive import misspelt

    found: list[Path] = []
    closed: list[OSError] = []
    for root, folders, files in os.walk(folder, onerror=closed.append):
        for link in (Path(root) / name for name in folders if (Path(root) / name).is_symlink()):
            if os.path.lexists(link / DOCUMENT):
                notice(f"`{printable(str(link))}` is a link and is not followed; name it on the command line")
        if DOCUMENT in files or DOCUMENT in folders:
            folders.clear()
            found.append(Path(root))
            continue
        if misspelt(files):
            found.append(Path(root))
        found += [Path(root) / name for name in files if name.endswith(ARCHIVES)]
    return sorted([*found, *(Path(error.filename) for error in closed)])

"""`engine check --ray`: the rows of a corpus decided on by the workers of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from engine.cli import options
from engine.cli.formats import ReportFormat
from engine.cli.outputs import json_text, print_text, rows
from engine.cli.terminal import quiet
from engine.cli.waiting import Waiting
from engine.documents.files import counted, printable
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.ray.corpus import CorpusRun


def check_rows(
    sources: options.Sources,
    paths: list[str],
    how: ReportFormat,
    address: str,
    columns: Path | None,
    into: Path | None,
    workers: int | None,
) -> NoReturn:
    """Decide the rows of these files on a cluster, print what became of them, and exit with the worst exit code."""
    from engine.ray.columns import POINT, read_columns
    from engine.ray.corpus import check_corpus

    if how not in {ReportFormat.TEXT, ReportFormat.JSON}:
        raise typer.BadParameter("a corpus is reported as text or json", param_hint="--format")
    if columns is None or into is None:
        hint = "--columns" if columns is None else "--into"
        raise typer.BadParameter("a corpus needs it: see docs/bulk.md", param_hint=hint)
    known = read_columns(columns)
    now = None if sources.now is None else int(sources.now.timestamp())
    with sources.engine(POINT) as engine, Waiting() as waiting:
        options.report_lowered(engine, POINT)
        run = check_corpus(
            engine,
            paths,
            known,
            into,
            address=address,
            workers=workers,
            context=options.Sources().context(),
            now=now,
            on_progress=lambda done, of: waiting.show(f"deciding: {done:,} of {of:,} units"),
            progress=not quiet(),
        )
    document = _document(run, into)
    print_text(json_text(document) if how is ReportFormat.JSON else _text(document))
    raise typer.Exit(_exit(document["outcomes"]))


def _exit(outcomes: dict[str, int]) -> Exit:
    if outcomes.get("deny"):
        return Exit.DENY
    return Exit.CONFIRM if outcomes.get("confirm") else Exit.ALLOW


def _document(run: CorpusRun, into: Path) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "run": str(into),
        "time": manifest.time,
        "point": manifest.point,
        "policy": manifest.policy.model_dump(mode="json"),
        "records": manifest.outcomes.total(),
        "outcomes": dict(sorted(manifest.outcomes.items())),
        "codes": dict(sorted(manifest.codes.items(), key=lambda item: (-item[1], item[0]))),
        "first": manifest.first,
        "units": len(manifest.segments),
        "reused": run.reused,
    }


def _text(document: dict[str, Any]) -> str:
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in document["outcomes"].items())
    units = f"{document['units']:,}, of which {document['reused']:,} were whole before"
    pairs = {"units": units, "rules": document["policy"]["rules"], "values": document["policy"]["values"]}
    first = document["first"]
    codes = [
        line
        for code, count in document["codes"].items()
        for line in (f"  {count:>11,}  {code}", *([f"{'':15}{first[code]}"] if code in first else []))
    ]
    head = f"{counted(document['records'], 'row')}: {counts}"
    place = f"admitted rows and record: {printable(document['run'])}"
    return "\n".join([head, *codes, *rows(pairs, 11), place])

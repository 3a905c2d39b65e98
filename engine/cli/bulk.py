"""`engine check --ray`: the rows of a corpus decided on by the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from engine.cli import options
from engine.cli.formats import ReportFormat
from engine.cli.outputs import json_text, print_text, rows
from engine.cli.terminal import quiet
from engine.cli.waiting import Waiting
from engine.documents.files import printable
from engine.errors import Exit

if TYPE_CHECKING:
    from engine.ray.corpus import CorpusRun


@dataclass(frozen=True, slots=True)
class Bulk:
    """The options of `engine check` for a corpus; `ray` is None for a check of source bundles."""

    ray: str | None
    columns: Path | None
    into: Path | None
    workers: int | None

    def demanded(self) -> tuple[str, Path, Path]:
        """The address, the file of columns and the folder of the run. Raises a usage error if one is missing."""
        for value, hint in ((self.columns, "--columns"), (self.into, "--into")):
            if value is None:
                raise typer.BadParameter("a corpus needs it: see docs/bulk.md", param_hint=hint)
        return str(self.ray), Path(str(self.columns)), Path(str(self.into))

    def refuse(self) -> None:
        """Raise a usage error for an option that only a corpus has."""
        for value, hint in ((self.columns, "--columns"), (self.into, "--into"), (self.workers, "--workers")):
            if value is not None:
                raise typer.BadParameter("it belongs to --ray", param_hint=hint)


def check_rows(sources: options.Sources, paths: list[str], bulk: Bulk, how: ReportFormat) -> None:
    """Decide the rows of these files, print what became of them, and exit with the worst exit code."""
    from engine.ray.columns import POINT, read_columns
    from engine.ray.corpus import check_corpus

    if how not in {ReportFormat.TEXT, ReportFormat.JSON}:
        raise typer.BadParameter("a corpus is reported as text or json", param_hint="--format")
    address, file, into = bulk.demanded()
    columns = read_columns(file)
    now = None if sources.now is None else int(sources.now.timestamp())
    with sources.engine(POINT) as engine, Waiting() as waiting:
        options.tell_lowered(engine, POINT)
        run = check_corpus(
            engine,
            paths,
            columns,
            into,
            address=address,
            workers=bulk.workers,
            context=options.context(None),
            now=now,
            told=lambda done, of: waiting.tell(f"deciding: {done:,} of {of:,} units"),
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
        "time": datetime.fromisoformat(manifest.time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "point": manifest.point,
        "policy": manifest.policy.model_dump(mode="json"),
        "records": manifest.outcomes.total(),
        "outcomes": dict(sorted(manifest.outcomes.items())),
        "codes": dict(sorted(manifest.codes.items(), key=lambda item: (-item[1], item[0]))),
        "units": len(manifest.segments),
        "reused": run.reused,
    }


def _text(document: dict[str, Any]) -> str:
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in document["outcomes"].items())
    units = f"{document['units']:,}, of which {document['reused']:,} were whole before"
    pairs = {"units": units, "rules": document["policy"]["rules"], "values": document["policy"]["values"]}
    codes = [f"  {count:>11,}  {code}" for code, count in document["codes"].items()]
    head, place = f"{document['records']:,} rows: {told}", f"admitted rows and record: {printable(document['run'])}"
    return "\n".join([head, *codes, *rows(pairs, 11), place])

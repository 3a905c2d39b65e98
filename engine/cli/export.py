"""`engine export SAMPLES --into FILE`: samples into a new file, if all of them may leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.formats import answers_text
from engine.cli.outputs import json_text, print_text
from engine.cli.waiting import Waiting
from engine.documents.files import counted, printable

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.exporting import Exported


@options.sourced(*options.DECIDING, "state", *options.SERVED)
def export(
    sources: options.Sources,
    samples: Annotated[
        Path, typer.Argument(metavar="SAMPLES", help="Samples, one JSON object per line, as in docs/exporting.md.")
    ],
    into: Annotated[
        Path, typer.Option("--into", metavar="FILE", help="New file: JSON lines, or Parquet by the suffix .parquet.")
    ],
    how: options.Output = "text",
) -> None:
    """Export samples with their provenance, if every one of them may leave.

    Each sample is searched for secrets and private data, and compared with the text of all source bundles that this
    state folder has admitted. If any is refused, there is no file, and the findings name its line.
    """
    waiting = Waiting()
    progress = waiting.counting("exporting", lambda samples, _: f"exporting: {counted(samples, 'sample')}")
    with sources.engine("export", progress=progress) as engine:
        options.report_lowered(engine, "export")
        with waiting:
            done = engine.export(samples, into, sources.context())
        if done.fault is not None and how == "text":
            raise done.fault
        text = _people(engine, done, samples) if how == "text" else json_text(_document(done))
    print_text(text)
    raise typer.Exit(done.exit)


def _document(done: Exported) -> dict[str, object]:
    return {
        "file": None if done.file is None else str(done.file),
        "samples": done.samples,
        "bytes": done.bytes,
        "sha256": done.sha256,
        "fault": None if done.fault is None else done.fault.code,
        "refused": [one.decision.model_dump(mode="json") for one in done.refused],
    }


def _people(engine: Engine, done: Exported, samples: Path) -> str:
    if done.file is not None:
        count = counted(done.samples, "sample")
        return f"{printable(str(done.file))}: {count}, {done.bytes} bytes, sha256 {done.sha256}\n"
    return answers_text(engine, str(samples), done.refused, done.exit) + "nothing was written\n"

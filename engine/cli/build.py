"""`engine build BUNDLE --into DIR`: decide a source bundle, and build the environment that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli import options
from engine.cli.outputs import print_text
from engine.cli.waiting import Waiting
from engine.documents.files import counted
from engine.model import Outcome


@options.sourced(*options.DECIDING, "state", *options.SERVED)
def build(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Source bundle: a folder or an archive.")],
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="Folder in which the environment is created.")],
    how: options.Output = "text",
    digest: options.Digest = None,
) -> None:
    """Build the environment that a source bundle names, as a folder of that name in DIR.

    The source bundle is decided on first, then its material. The folder is there as a whole or not at all; one that
    exists is never changed. Exits with 0 if it was built, else with the code of the decision that stopped it.
    """
    from engine.cli.formats import extended
    from engine.cli.formats.show import approval_lines
    from engine.reports.explain import report

    with (
        Waiting() as progress,
        sources.engine("source", "environment", progress=lambda what, *_: progress.show(what)) as engine,
    ):
        answer = engine.build(path, into, digest, sources.context())
        decided = report(str(path), answer, engine.policy)
    if answer.fault is not None and answer.decision.outcome is Outcome.ALLOW:
        raise answer.fault  # the decision says nothing of work that failed
    made, lines = None, ["nothing was built"]
    if answer.result is not None and answer.result.status == "built":
        facts = answer.result.facts
        made = {**facts, "folder": str(into / facts["environment"])}
        lines = [f"built {made['folder']}: {counted(made['rows'], 'row')}, sha256 {made['sha256']}"]
    print_text(extended(how, decided, {"environment": made}, [*lines, *approval_lines(answer.decision)]))
    raise typer.Exit(answer.exit)

"""`engine release VERSION`: decide whether a version of a project may be released."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli import options
from engine.cli.outputs import print_text
from engine.cli.waiting import Waiting
from engine.documents.files import printable


@options.sourced(*options.DECIDING, "state", *options.SERVED)
def release(
    sources: options.Sources,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Version to release, such as 0.2.0.")],
    stage: Annotated[str, typer.Option(metavar="NAME", help="Stage, such as production, of policy/release.yaml.")],
    project: Annotated[
        Path, options.folder("--project", help="Folder of the project, in its git repository.")
    ] = Path(),
    features: Annotated[
        list[str] | None,
        typer.Option("--feature", metavar="NAME", help="Feature that the version enables; repeatable."),
    ] = None,
    reports: Annotated[
        list[Path] | None, typer.Option("--report", metavar="FILE", help="Report in JUnit format; repeatable.")
    ] = None,
    since: Annotated[
        str | None, options.words(metavar="REV", help="Revision of the last release (default: everything is new).")
    ] = None,
    how: options.Output = "text",
) -> None:
    """Decide whether a version may be released, by reports of its tests and checks, its documentation and its code.

    The decision is recorded. Exits with 0 if the version may be released, else with the code of the decision.
    """
    from engine.cli.formats import extended
    from engine.reports.explain import report

    request = {
        "version": options.text(version),
        "stage": stage,
        "features": features or [],
        "path": str(project.absolute()),
        "since": since,
        "reports": [str(one.absolute()) for one in reports or ()],
    }
    with Waiting() as progress, sources.engine("release", progress=lambda what, *_: progress.show(what)) as engine:
        options.report_lowered(engine, "release")
        answer = engine.decide("release", request, context=sources.context())
        decided = report(version, answer, engine.policy)
    limits = answer.decision.limits
    allowed = None if limits is None else limits.model_dump(mode="json")
    lines = [f"{printable(version)} {'may' if allowed else 'may not'} be released"]
    print_text(extended(how, decided, {"release": allowed}, lines))
    raise typer.Exit(answer.exit)

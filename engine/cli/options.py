"""Options that several commands share, and what they mean for the settings."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.flow import Context
    from engine.settings import Settings


def text(given: str | None) -> str | None:
    """What becomes a part of the record is text; the shell hands on any bytes."""
    try:
        (given or "").encode("utf-8")
    except UnicodeEncodeError as error:
        raise typer.BadParameter("it is not UTF-8 text") from error
    return given


def name(given: str) -> str:
    """A name that a list can show on one line."""
    if not (given.strip() and given.isprintable() and len(given) <= _LONGEST_NAME):
        raise typer.BadParameter(f"a name has 1 to {_LONGEST_NAME} printable characters")
    return given


_LONGEST_NAME = 256

MOST_DAYS = 1_000_000
"""The longest time that a command takes; what may be given out for so long is policy."""

Principal = Annotated[
    str | None,
    typer.Option(
        "--principal", metavar="NAME", help="Principal to decide for (default: the current user).", callback=text
    ),
]
Run = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="Id of the pipeline run to record.", callback=text)
]
Approval = Annotated[
    str | None,
    typer.Option("--approval", metavar="ID", help="Granted approval for this request.", callback=text),
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="State folder (default: $ENGINE_STATE_DIR, else the user's state folder)."
    ),
]
Policy = Annotated[
    Path | None, typer.Option("--policy", metavar="DIR", help="Folder of policy values (default: policy/).")
]
Rego = Annotated[Path | None, typer.Option("--rego", metavar="DIR", help="Folder of Rego rules (default: rego/).")]
Recipe = Annotated[
    Path | None, typer.Option("--bundle", metavar="DIR", help="Bundle recipe (default: bundles/default).")
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--values", metavar="KEY=VALUE", help="Override a policy value, such as licenses.licenses.MIT.decision=refuse."
    ),
]
Release = Annotated[
    Path | None,
    typer.Option("--release", metavar="DIR", help="Signed release to use in place of the folders of rules and values."),
]
ReleaseKey = Annotated[
    Path | None, typer.Option("--release-key", metavar="FILE", help="Public key (PEM) that verifies the release.")
]
Now = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Time to decide at (default: now), such as 2026-11-21T00:00:00Z."),
]


def settings(
    state: Path | None = None,
    policy: Path | None = None,
    rego: Path | None = None,
    recipe: Path | None = None,
    release: tuple[Path | None, Path | None] = (None, None),
) -> Settings:
    """The settings with these options in the place of the defaults; `release` is its folder and key."""
    if release[0] is not None and (policy or rego or recipe):
        raise typer.BadParameter("a release brings its own rules and values", param_hint="--release")
    if (release[0] is None) != (release[1] is None):
        raise typer.BadParameter("give --release and --release-key together", param_hint="--release")
    from engine.settings import Settings

    try:
        default = Settings()
    except RuntimeError as error:  # what Path.home() raises
        raise GatherError(
            "this user has no home folder", remedy="set ENGINE_STATE_DIR and XDG_CACHE_HOME, or HOME"
        ) from error
    return replace(
        default,
        state=state or default.state,
        policy=policy or default.policy,
        rego=rego or default.rego,
        recipe=recipe or default.recipe,
        release=release[0],
        release_key=release[1],
    )


def context(principal: str | None, run: str | None = None, approval: str | None = None) -> Context:
    """Who asks, the run that this belongs to, and the approval that is brought along."""
    from engine.flow import Context
    from engine.model import Caller, Via
    from engine.users import user_of

    caller = Caller(via=Via.PROCESS, principal=principal or user_of(os.getuid()))
    return Context(caller=caller, run=run, approval=approval)


def tell_recovered(engine: Engine) -> None:
    """Say on standard error what a crash had left unfinished in the record."""
    for cut in engine.recovered:
        typer.echo(
            f"engine: {cut.bytes} unfinished bytes were cut from the end of {cut.file} and kept in {cut.kept}", err=True
        )


def tell_lowered(engine: Engine, point: str) -> None:
    """Say on standard error which refusals of a point the policy being served has lowered."""
    for one in () if engine.policy is None else engine.policy.lowered:
        if one.point == point:
            typer.echo(f"engine: {shown(str(one), 1_500)}", err=True)


def moment(given: str | None) -> datetime:
    """The time of `--now`, else the clock's; UTC."""
    if given is None:
        return datetime.now(UTC)
    try:
        return datetime.strptime(given, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise typer.BadParameter("write the time as 2026-11-21T00:00:00Z", param_hint="--now") from error

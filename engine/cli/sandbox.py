"""`engine sandbox`: what sandboxes need that this machine does not bring."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from engine.cli import options

app = typer.Typer(help="Run programs in a sandbox; install additional sandboxes.", no_args_is_help=True)


class Installable(StrEnum):
    """What `install` knows how to build."""

    GVISOR = "gvisor"


@app.callback()
def _group() -> None:
    """Keep `install` a command of its own while it is the only one."""


@app.command("install")
def install(
    name: Annotated[Installable, typer.Argument(help="Sandbox to build from its pinned source.", metavar="gvisor")],
) -> None:
    """Build a sandbox from its pinned source into the user's cache. It is verified before every use.

    It is used once a profile in policy/sandbox.yaml names it and its probe has passed on this machine.
    """
    from engine.sandbox_install import install_gvisor

    done = install_gvisor(options.settings())
    typer.echo(f"{name.value} {done.version} is in {done.path}, sha256 {done.sha256}")

"""`engine state`: prepare a database for the state that several engines share."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli import options
from engine.cli.outputs import print_text
from engine.cli.usage import Group
from engine.documents.files import printable
from engine.state import let_serve, prepare_shared

app = typer.Typer(cls=Group, no_args_is_help=True)


@app.command("init")
def init_state(state: options.State = None) -> None:
    """Make the tables of a shared state, or migrate them to this version. Run it as their owner."""
    prepare_shared(_address(state))
    print_text("the tables are ready")


@app.command("grant")
def grant_state(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="Role of PostgreSQL that engines log in as.")],
    state: options.State = None,
) -> None:
    """Let a role serve: it may write what an engine writes, and nothing else. Run it as owner of the tables."""
    let_serve(_address(state), role)
    print_text(f"{printable(role)} may serve")


def _address(state: options.StateAt | None) -> str:
    database = options.Sources(state=state).settings().database
    if database is None:
        raise typer.BadParameter(
            "name the database as postgresql://HOST/DATABASE?user=USER; a state folder needs no preparation",
            param_hint="--state",
        )
    return database

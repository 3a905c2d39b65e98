"""`engine tools prefixes`: commands that somebody may run in one folder without asking each time."""

from __future__ import annotations

import json
import shlex
import uuid
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import acts, options, stores
from engine.errors import GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.state import PrefixRow

app = typer.Typer(help="List, approve and revoke command prefixes that run without confirmation.", no_args_is_help=True)

_DAY = 86_400
_DAYS = 7


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


@app.command("list")
def list_prefixes(
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Filter by principal.")] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Filter by working folder.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Maximum number of rows; newest first.")
    ] = 50,
    state: options.State = None,
    how: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
) -> None:
    """List approved command prefixes, newest first, including expired and revoked ones."""
    with stores.found(state) as store:
        rows = store.prefixes(principal, cwd, limit)
    now = stores.now()
    if how is Format.JSON:
        told = [{**asdict(row), "state": _state(row, now)} for row in rows]
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True))
        return
    for row in rows:
        typer.echo(f"{row.id}  {_state(row, now):<7} until {stores.told(row.expires_at)}  {_command(row)}")
        bound = f"{shown(row.principal, 256)} with {shown(row.tool, 128)} in {shown(row.cwd, 1_024)}"
        typer.echo(f"      {bound}, approved by {shown(row.approver, 256)}")
    if not rows:
        typer.echo("no such beginning of a command was approved here")


@app.command("approve")
def approve_prefix(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- WORD…", help="First words of the command, such as: -- git status", show_default=False
        ),
    ],
    principal: Annotated[
        str, typer.Option("--principal", metavar="NAME", help="Principal that may run it.", callback=options.name)
    ],
    cwd: Annotated[str, typer.Option("--cwd", metavar="DIR", help="Working folder in which it may run.")],
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="Tool that may run it.")],
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=options.MOST_DAYS, help="Lifetime in days.")
    ] = _DAYS,
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Approve a command prefix for one principal, folder and tool until it expires.

    Words are compared as text, which says nothing about what the program does. Rules still apply, and
    the approver must not be the principal.
    """
    folder, chosen = _folder(cwd), _words(words)
    _tool(tool)
    wanted = {"principal": principal, "cwd": folder, "tool": tool, "words": list(chosen), "seconds": days * _DAY}
    done = acts.act(state, {"act": "approve_prefix", "id": uuid.uuid4().hex, "reason": reason, "prefix": wanted})
    until = stores.told(done["expires_at"])
    typer.echo(f"approved by {shown(done['approver'], 256)}: {done['id']}")
    command = shown(shlex.join(done["words"]), 400)
    typer.echo(f"  {command} …  by {shown(tool, 128)} in {shown(folder, 1_024)}, until {until}")
    typer.echo(f"  to end it: engine tools prefixes revoke {done['id']}", err=True)


@app.command("revoke")
def revoke_prefix(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Prefix id, as printed by `approve` or `list`.")],
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Revoke a command prefix; takes effect at once, also in a running server."""
    with stores.found(state) as store:
        known = store.prefix(id_) is not None
    if not known:
        raise GatherError("there is no approved beginning of this id", remedy="see `engine tools prefixes list`")
    row = acts.act(state, {"act": "revoke_prefix", "id": id_, "reason": reason})
    typer.echo(f"revoked: {shown(shlex.join(row['words']), 400)} of {shown(row['principal'], 256)}")


def _words(words: list[str]) -> tuple[str, ...]:
    """The words as commands have them in decisions: no shell may read anything else in them."""
    from engine.facts.commands import MOST_WORDS, argv_facts

    facts = argv_facts(words)
    if facts.words != tuple(words) or not all(words):
        raise GatherError(
            f"`{shown(shlex.join(words))}` is no beginning of a command that could be compared",
            remedy=f"give at most {MOST_WORDS} plain words, one argument each, the first of them a program; "
            "no operator, redirection, substitution or assignment",
        )
    return facts.words


def _folder(named: str) -> str:
    """The working folder in its one form: calls state it like that, and it is compared as text."""
    from engine.facts.paths import canonical_folder

    try:
        return canonical_folder(named)
    except ValueError as error:
        raise GatherError(
            f"`{shown(named)}` is no absolute folder in its only spelling",
            remedy="write it as calls state it: from `/` on, without `..`, `//` or a slash at its end",
        ) from error


def _tool(name: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    from engine.values.tools import ToolName

    try:
        TypeAdapter(ToolName).validate_python(name)
    except ValidationError as error:
        raise GatherError(
            f"`{shown(name, 128)}` is no name of a tool", remedy="name it as policy/tools.yaml does"
        ) from error


def _state(row: PrefixRow, now: int) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "valid" if now < row.expires_at else "expired"


def _command(row: PrefixRow) -> str:
    return shown(shlex.join(row.words), 400)

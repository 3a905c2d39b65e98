"""`engine tools prefixes`: command prefixes approved for one principal and folder."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import print_text
from engine.documents.files import printable
from engine.errors import GatherError
from engine.state.rows import PrefixRow
from engine.times import time_text

app = typer.Typer(help="List, approve and revoke command prefixes that run without confirmation.", no_args_is_help=True)

_DAYS = 7


@app.command("list")
def list_prefixes(
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Filter by principal.")] = None,
    cwd: Annotated[str | None, typer.Option(metavar="DIR", help="Filter by working folder.")] = None,
    limit: acts.Limit = 50,
    state: options.State = None,
    how: options.Output = "text",
) -> None:
    """List approved command prefixes, newest first, including expired and revoked ones."""
    with acts.found(state) as store:
        rows = store.prefixes(principal, cwd, limit)
    acts.print_rows("prefixes", rows, how, acts.with_validity, _lines, _CELLS)


_CELLS: dict[str, Callable[[PrefixRow], str]] = {
    "id": lambda row: row.id,
    "state": acts.validity,
    "until": lambda row: time_text(row.expires_at),
    "command": lambda row: _command(row.words),
    "principal": lambda row: printable(row.principal, 256),
    "tool": lambda row: printable(row.tool, 128),
    "folder": lambda row: printable(row.cwd, 1_024),
    "approver": lambda row: printable(row.approver, 256),
}


def _lines(row: PrefixRow) -> list[str]:
    head = f"{row.id}  {acts.validity(row):<7} until {time_text(row.expires_at)}  {_command(row.words)}"
    bound = f"{printable(row.principal, 256)} with {printable(row.tool, 128)} in {printable(row.cwd, 1_024)}"
    return [head, f"      {bound}, approved by {printable(row.approver, 256)}"]


@app.command("approve")
@options.sourced("state", *options.SERVED)
def approve_prefix(
    sources: options.Sources,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- WORD…", help="First words of the command, such as: -- git status", show_default=False
        ),
    ],
    principal: Annotated[str, typer.Option(metavar="NAME", help="Principal that may run it.", callback=options.name)],
    cwd: Annotated[str, typer.Option(metavar="DIR", help="Working folder in which it may run.")],
    tool: Annotated[str, typer.Option(metavar="NAME", help="Tool that may run it.")],
    days: acts.Days = _DAYS,
    reason: acts.Reason = None,
) -> None:
    """Approve a command prefix for one principal, folder and tool until it expires.

    Words are compared as text, which says nothing about what the program does. Rules still apply, and
    the approver must not be the principal.
    """
    folder, chosen = _folder(cwd), _words(words)
    _tool(tool)
    prefix = {"principal": principal, "cwd": folder, "tool": tool, "words": list(chosen), "seconds": days * acts.DAY}
    try:
        done = acts.act(sources, {"act": "approve_prefix", "id": uuid.uuid4().hex, "reason": reason, "prefix": prefix})
    except acts.ActRefusedError as refused:
        raise acts.with_tools(refused, sources, tool) from None
    until = done["expires_at"]
    print_text(f"approved by {printable(done['approver'], 256)}: {done['id']}")
    bound = f"by {printable(tool, 128)} in {printable(folder, 1_024)}, until {until}"
    print_text(f"  {_command(done['words'])} …  {bound}")
    typer.echo(f"  to revoke it: engine tools prefixes revoke {done['id']}", err=True)


@app.command("revoke")
@options.sourced("state", *options.SERVED)
def revoke_prefix(
    sources: options.Sources,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Prefix id, as printed by `approve` or `list`.")],
    reason: acts.Reason = None,
) -> None:
    """Revoke a command prefix; takes effect at once, also in a running server."""
    with acts.found(sources.state) as store:
        known = store.prefix(id_) is not None
    if not known:
        raise GatherError("there is no approved command prefix with this id", remedy="see `engine tools prefixes list`")
    row = acts.act(sources, {"act": "revoke_prefix", "id": id_, "reason": reason})
    print_text(f"revoked: {_command(row['words'])} of {printable(row['principal'], 256)}")


def _words(words: list[str]) -> tuple[str, ...]:
    """The words as commands have them in decisions: no shell may read anything else in them."""
    from engine.facts.tools.commands import MOST_WORDS, is_prefix

    if not is_prefix(words):
        raise GatherError(
            f"`{printable(shlex.join(words))}` is not a valid command prefix",
            remedy=f"use at most {MOST_WORDS} plain words, one per argument, starting with a program; "
            "no operators, redirections, substitutions or assignments",
        )
    return tuple(words)


def _folder(named: str) -> str:
    """The working folder in its one form: calls state it like that, and it is compared as text."""
    from engine.facts.paths import canonical_folder

    try:
        return canonical_folder(named)
    except ValueError as error:
        raise GatherError(
            f"`{printable(named)}` is not an absolute path in canonical form",
            remedy="start with `/`, without `..`, `//` or a trailing slash",
        ) from error


def _tool(name: str) -> None:
    from engine.model import TOOL_NAME

    if TOOL_NAME.fullmatch(name) is None:
        raise GatherError(f"`{printable(name, 128)}` is not a tool name", remedy="use its name in policy/tools.yaml")


def _command(words: Sequence[str]) -> str:
    return printable(shlex.join(words), 400)

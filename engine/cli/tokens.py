"""`engine tokens`: who may ask this engine over HTTP, about what, and until when."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, stores
from engine.errors import GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.state import TokenRow

app = typer.Typer(help="Issue, list and revoke the tokens that callers present.", no_args_is_help=True)

_DAY = 86_400
_MOST_DAYS = 1_000_000  # later than that, a time has no four-digit year
_LONGEST_PRINCIPAL = 256  # characters; records and lists show it


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


@app.command("issue")
def issue_token(
    principal: Annotated[str, typer.Option("--principal", metavar="NAME", help="Whom the token speaks for.")],
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=_MOST_DAYS, help="For how many days it holds.")
    ],
    point: Annotated[
        list[str] | None,
        typer.Option("--point", metavar="POINT", help="A decision point it may ask about; repeat for more."),
    ] = None,
    all_points: Annotated[
        bool, typer.Option("--all-points", help="Every decision point of this engine, but none of a later one.")
    ] = False,
    state: options.State = None,
) -> None:
    """Make a token and print it, once, on standard output; only its digest is kept."""
    if not principal.isprintable() or not 0 < len(principal.strip()) <= len(principal) <= _LONGEST_PRINCIPAL:
        raise GatherError(
            f"`{shown(principal, 40)}` is no name of a principal",
            remedy=f"use at most {_LONGEST_PRINCIPAL} printable characters",
        )
    points, now = _points(point or [], all_points), stores.now()
    with stores.opened(state) as store:
        issued = store.issue(principal, points, now + days * _DAY, now)
    typer.echo(issued.text)
    told = f"token {issued.id} for {principal}, {', '.join(points)}, until {stores.told(now + days * _DAY)}"
    typer.echo(f"{told}\nit is shown only now; to end it: engine tokens revoke {issued.id}", err=True)


@app.command("list")
def list_tokens(
    state: options.State = None,
    how: Annotated[Format, typer.Option("--format", help="How to tell it.")] = Format.TEXT,
) -> None:
    """List every token ever issued here, newest first; never a token itself."""
    with stores.found(state) as store:
        rows = store.tokens()
    now = stores.now()
    if how is Format.JSON:
        typer.echo(json.dumps([_json(row, now) for row in rows], ensure_ascii=False, indent=2, sort_keys=True))
        return
    for row in rows:
        typer.echo(f"{row.id}  {_state(row, now):<8} until {stores.told(row.expires_at)}  {shown(row.principal, 256)}")
        typer.echo(f"      {', '.join(map(shown, row.points))}")
    if not rows:
        typer.echo("no token was issued here")


@app.command("revoke")
def revoke_token(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that `issue` told and `list` shows.")],
    state: options.State = None,
) -> None:
    """End a token at once, also for a running server."""
    with stores.found(state) as store:
        row = store.revoke(id_, stores.now()) if id_.isascii() else None
    if row is None:
        raise GatherError("there is no token of this id", remedy="see `engine tokens list` for the ids")
    typer.echo(f"token {row.id} of {shown(row.principal, 256)} is revoked")


def _points(named: list[str], all_points: bool) -> list[str]:
    from engine.points.registry import POINTS, find

    if all_points == bool(named):
        raise GatherError(
            "a token is for the points that are named, or for all of them", remedy="give --point, or --all-points"
        )
    return sorted(POINTS) if all_points else sorted({find(name).name for name in named})


def _state(row: TokenRow, now: int) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "valid" if now < row.expires_at else "expired"


def _json(row: TokenRow, now: int) -> dict[str, Any]:
    return {**asdict(row), "state": _state(row, now)}

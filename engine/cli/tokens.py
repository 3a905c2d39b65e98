"""`engine tokens`: who may ask this engine over HTTP, about what, and until when."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import acts, options, stores
from engine.errors import GatherError
from engine.files import shown

if TYPE_CHECKING:
    from engine.state import TokenRow

app = typer.Typer(help="Issue, list and revoke bearer tokens.", no_args_is_help=True)

_DAY = 86_400


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


@app.command("issue")
def issue_token(
    principal: Annotated[
        str,
        typer.Option(
            "--principal", metavar="NAME", help="Principal that the token authenticates.", callback=options.name
        ),
    ],
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, max=options.MOST_DAYS, help="Lifetime in days.")],
    point: Annotated[
        list[str] | None,
        typer.Option("--point", metavar="POINT", help="Decision point that it may ask; repeatable."),
    ] = None,
    all_points: Annotated[
        bool, typer.Option("--all-points", help="All decision points that this version has.")
    ] = False,
    approve: Annotated[
        list[str] | None,
        typer.Option("--approve", metavar="POINT", help="Decision point at which it may approve; repeatable."),
    ] = None,
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Issue a token and print it once; only its digest is stored.

    A token that may ask cannot approve, and one that approves at a point cannot approve at another.
    """
    points, approves = _points(point or [], all_points, bool(approve)), _named(approve or [])
    from engine.state.tokens import new_token_id

    scope = {"principal": principal, "points": points, "approves": approves, "seconds": days * _DAY}
    issued = acts.act(state, {"act": "issue_token", "id": new_token_id(), "reason": reason, "scope": scope})
    typer.echo(issued["text"])
    told = [", ".join(points), f"approves at {', '.join(approves)}" if approves else ""]
    head = f"token {issued['id']} for {principal}, {', '.join(filter(None, told))}"
    typer.echo(f"{head}, until {stores.told(issued['expires_at'])}", err=True)
    typer.echo(f"it is not shown again; to revoke it: engine tokens revoke {issued['id']}", err=True)


@app.command("list")
def list_tokens(
    state: options.State = None,
    how: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
) -> None:
    """List all tokens issued here, newest first, without their secrets."""
    with stores.found(state) as store:
        rows = store.tokens()
    now = stores.now()
    if how is Format.JSON:
        typer.echo(json.dumps([_json(row, now) for row in rows], ensure_ascii=False, indent=2, sort_keys=True))
        return
    for row in rows:
        typer.echo(f"{row.id}  {_state(row, now):<8} until {stores.told(row.expires_at)}  {shown(row.principal, 256)}")
        typer.echo(f"      {', '.join(map(shown, row.points)) or 'may ask no point'}")
        if row.approves:
            typer.echo(f"      approves at {', '.join(map(shown, row.approves))}")
    if not rows:
        typer.echo("no tokens")


@app.command("revoke")
def revoke_token(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Token id, as printed by `issue` or `list`.")],
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Revoke a token; takes effect at once, also in a running server."""
    with stores.found(state) as store:
        known = {row.id for row in store.tokens()}
    if id_ not in known:
        raise GatherError("there is no token of this id", remedy="see `engine tokens list` for the ids")
    row = acts.act(state, {"act": "revoke_token", "id": id_, "reason": reason})
    typer.echo(f"token {row['id']} of {shown(row['principal'], 256)} is revoked")


def _points(named: list[str], all_points: bool, approves: bool) -> list[str]:
    from engine.points.registry import POINTS

    if (all_points and named) or not (all_points or named or approves):
        raise GatherError(
            "--point and --all-points exclude each other",
            remedy="give --point, --all-points or --approve",
        )
    return sorted(POINTS) if all_points else _named(named)


def _named(points: list[str]) -> list[str]:
    from engine.points.registry import find

    return sorted({find(name).name for name in points})


def _state(row: TokenRow, now: int) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "valid" if now < row.expires_at else "expired"


def _json(row: TokenRow, now: int) -> dict[str, Any]:
    return {**asdict(row), "state": _state(row, now)}

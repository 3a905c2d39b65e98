"""`engine tokens`: who may ask this engine over HTTP, about what, and until when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import print_text
from engine.cli.terminal import remark
from engine.documents.files import printable
from engine.errors import GatherError
from engine.state.rows import TokenRow
from engine.times import time_text

app = typer.Typer()


@app.command("issue")
@options.sourced("state", *options.SERVED)
def issue_token(
    sources: options.Sources,
    principal: Annotated[
        str, typer.Option(metavar="NAME", help="Principal that the token authenticates.", callback=options.name)
    ],
    days: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Lifetime in days.")] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Lifetime in minutes, in place of --days.")
    ] = None,
    point: Annotated[
        list[str] | None, typer.Option(help="Decision point at which it may ask; repeatable.", **options.POINT)
    ] = None,
    all_points: Annotated[bool, typer.Option("--all-points", help="All decision points of this version.")] = False,
    approve: Annotated[
        list[str] | None, typer.Option(help="Decision point at which it may approve; repeatable.", **options.POINT)
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The one server that accepts it (`serve --audience`).", callback=options.audience
        ),
    ] = None,
    single_use: Annotated[bool, typer.Option("--single-use", help="Valid for one request.")] = False,
    reason: acts.Reason = None,
) -> None:
    """Issue a token and print it once; only its digest is stored.

    The right to ask at a point includes no right to approve, and each right is limited to the points named.
    """
    points, approves = _points(point or [], all_points, bool(approve)), sorted(set(approve or []))
    from engine.state.tokens import new_token_id

    if (days is None) == (minutes is None):
        raise typer.BadParameter("state the lifetime in one of them", param_hint="--days, --minutes")
    seconds = days * acts.DAY if days is not None else (minutes or 0) * 60
    scope = {"principal": principal, "points": points, "approves": approves, "seconds": seconds}
    scope |= {"audience": audience, "single_use": single_use}
    issued = acts.act(sources, {"act": "issue_token", "id": new_token_id(), "reason": reason, "scope": scope})
    print_text(issued["text"])
    extras = [", ".join(points), f"approves at {', '.join(approves)}" if approves else ""]
    extras += [f"at {audience} only" if audience else "", "for one request" if single_use else ""]
    head = f"token {issued['id']} for {principal}, {', '.join(filter(None, extras))}"
    typer.echo(f"{head}, until {issued['expires_at']}", err=True)
    remark(f"it is not shown again; to revoke it: engine tokens revoke {issued['id']}")


@app.command("list")
def list_tokens(state: options.State = None, how: options.Output = "text") -> None:
    """List all tokens issued here, newest first, without their secrets."""
    with acts.found(state) as store:
        acts.print_rows("tokens", store.tokens(), how, acts.with_validity, _lines, _CELLS)


_CELLS: dict[str, Callable[[TokenRow], str]] = {
    "id": lambda row: row.id,
    "state": acts.validity,
    "until": lambda row: time_text(row.expires_at),
    "principal": lambda row: printable(row.principal, 256),
    "may ask at": lambda row: ", ".join(map(printable, row.points)),
    "approves at": lambda row: ", ".join(map(printable, row.approves)),
    "only at": lambda row: printable(row.audience or "", 128),
    "single use": lambda row: "yes" if row.single_use else "",
}


def _lines(row: TokenRow) -> list[str]:
    until = time_text(row.expires_at)
    return [
        f"{row.id}  {acts.validity(row):<8} until {until}  {printable(row.principal, 256)}",
        f"      {', '.join(map(printable, row.points)) or 'may ask at no point'}",
        *([f"      approves at {', '.join(map(printable, row.approves))}"] if row.approves else []),
        *([f"      only at {printable(row.audience, 128)}"] if row.audience else []),
        *(["      for one request"] if row.single_use else []),
    ]


@app.command("revoke")
@options.sourced("state", *options.SERVED)
def revoke_token(
    sources: options.Sources,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Token id, as printed by `issue` or `list`.")],
    reason: acts.Reason = None,
) -> None:
    """Revoke a token; takes effect at once, also in a running server."""
    with acts.found(sources.state) as store:
        known = {row.id for row in store.tokens()}
    if id_ not in known:
        raise GatherError("there is no token with this id", remedy="see `engine tokens list` for the ids")
    row = acts.act(sources, {"act": "revoke_token", "id": id_, "reason": reason})
    print_text(f"token {row['id']} of {printable(row['principal'], 256)} is revoked")


def _points(named: list[str], all_points: bool, approves: bool) -> list[str]:
    from engine.points.registry import POINTS

    if all_points and named:
        raise typer.BadParameter("they exclude each other: give one of them", param_hint="--point, --all-points")
    if not (all_points or named or approves):
        raise typer.BadParameter("state what the token may do", param_hint="--point, --all-points, --approve")
    return sorted(POINTS if all_points else set(named))

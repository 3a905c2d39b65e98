"""`engine approvals`: what waits for a person's decision, and that decision."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli import options, stores
from engine.errors import EngineError, Exit, GatherError, RecordError
from engine.files import shown
from engine.users import user_of

if TYPE_CHECKING:
    from engine.state import ApprovalRow, Store

app = typer.Typer(help="List, show, grant and refuse requests for approval.", no_args_is_help=True)

TOKEN = "ENGINE_TOKEN"  # noqa: S105  (the name of a variable)
"""Where somebody who approves as the principal of a token puts it."""

_LONGEST_REASON = 1_000  # characters; a person's sentence or two
_RECORDED = 10_000  # the last decisions that asked for an approval at one point


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


class States(StrEnum):
    """What `--only` takes."""

    REQUESTED = "requested"
    GRANTED = "granted"
    REFUSED = "refused"
    USED = "used"


How = Annotated[Format, typer.Option("--format", help="How to tell it.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id that the decision gave and `list` shows.")]


@app.command("list")
def list_approvals(
    only: Annotated[States | None, typer.Option("--only", help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many, the newest.")] = 50,
    state: options.State = None,
    how: How = Format.TEXT,
) -> None:
    """List requests for approval, newest first."""
    with stores.found(state) as store:
        rows = store.approvals(None if only is None else only.value, limit)
    now = stores.now()
    if how is Format.JSON:
        typer.echo(_dumped([_json(row, now) for row in rows]))
        return
    for row in rows:
        head = f"{row.id}  {_state(row, now):<9} {shown(row.point):<14} until {stores.told(row.expires_at)}"
        typer.echo(f"{head}  {shown(row.requester or 'nobody named', 256)}")
        typer.echo(f"      {', '.join(map(shown, row.codes))}")
    if not rows:
        typer.echo("nothing waits here" if only is States.REQUESTED else "there is no such approval here")


@app.command("show")
def show_approval(id_: Id, state: options.State = None, how: How = Format.TEXT) -> None:
    """Show one request for approval: what is asked, by whom, under which policy, and how to see its input."""
    with stores.found(state) as store:
        row = _known(store, id_)
    folder, now = options.settings(state).state, stores.now()
    asking = _asking(folder, row)
    if how is Format.JSON:
        typer.echo(_dumped({**_json(row, now), "asked_by_decisions": asking}))
    else:
        _tell(row, now, asking, state)


@app.command("grant")
def grant_approval(
    id_: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for whoever reads it later.")] = None,
    state: options.State = None,
) -> None:
    """Grant what is asked for: this one request, under this policy, once, in time."""
    _resolve(id_, "granted", reason, state)


@app.command("refuse")
def refuse_approval(
    id_: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever asked.")],
    state: options.State = None,
) -> None:
    """Refuse what is asked for."""
    _resolve(id_, "refused", reason, state)


def approver(store: Store, environment: Mapping[str, str], now: int) -> str:
    """Who approves: the principal of the token in $ENGINE_TOKEN, else the user as the kernel knows it.

    Raises EngineError `unauthorized`, exit 1, for a token that does not hold; it is then nobody else either.
    """
    presented = environment.get(TOKEN)
    if presented is None:
        return user_of(os.getuid())
    row = store.token(presented, now)
    if row is None:
        raise _UnauthorizedError(
            f"the token in {TOKEN} is unknown, expired or revoked",
            remedy=f"put in another one, or unset {TOKEN} to approve as the user you are",
        )
    return row.principal


class _UnauthorizedError(EngineError):
    code = "unauthorized"
    exit = Exit.DENY


def _resolve(id_: str, wanted: Literal["granted", "refused"], reason: str | None, state: Path | None) -> None:
    if reason is not None and not (reason.strip() and reason.isprintable() and len(reason) <= _LONGEST_REASON):
        raise GatherError(
            "the reason is empty, too long or no text", remedy=f"write one line of at most {_LONGEST_REASON} characters"
        )
    with stores.found(state) as store:
        now = stores.now()
        who = approver(store, os.environ, now)
        row = _known(store, id_)
        row = store.resolve(row.id, wanted, who, reason, now)
    typer.echo(f"{row.state} by {shown(who, 256)}: {row.id}")
    if row.requester == who:
        typer.echo("engine: whoever asked and whoever decided are the same; the policy may not accept that", err=True)
    if row.requester is None and wanted == "granted":
        typer.echo("engine: whoever asked stated no principal: this approval cannot be used", err=True)


def _known(store: Store, id_: str) -> ApprovalRow:
    row = store.approval(id_)
    if row is None:
        raise GatherError(f"there is no approval `{shown(id_, 40)}`", remedy="see `engine approvals list` for the ids")
    return row


def _asking(folder: Path, row: ApprovalRow) -> list[str]:
    """The recorded decisions that asked for this approval, newest first."""
    from engine.record.reader import Filter, select

    try:
        chosen = select(folder, Filter(point=row.point, outcome="confirm"), _RECORDED)
    except RecordError as error:
        typer.echo(f"engine: {error}", err=True)
        return []
    bodies = [entry.body for entry in reversed(chosen.entries) if entry.body.kind == "decision"]
    return [body.decision_id for body in bodies if body.input_digest == row.input_digest]


def _tell(row: ApprovalRow, now: int, asking: list[str], state: Path | None) -> None:
    where = "" if state is None else f" --state {state}"
    search = f"engine record show --point {row.point} --outcome confirm{where}"
    typer.echo(f"{_state(row, now).upper()}  {shown(row.point)}  {row.id}")
    stores.rows(
        {
            "to approve": ", ".join(row.codes),
            "asked by": row.requester or "nobody named",
            "asked at": stores.told(row.created_at),
            "expires at": stores.told(row.expires_at),
            "input": row.input_digest,
            "rules": row.rules,
            "values": row.values,
            "decided by": row.approver,
            "decided at": None if row.resolved_at is None else stores.told(row.resolved_at),
            "reason": row.reason,
            "used by": None if row.decision_id is None else f"decision {row.decision_id}",
            "used at": None if row.used_at is None else stores.told(row.used_at),
            "what it is": f"engine record show --decision-id {asking[0]}{where}" if asking else search,
        }
    )


def _state(row: ApprovalRow, now: int) -> str:
    over = row.state in {"requested", "granted"} and now >= row.expires_at
    return "expired" if over else row.state


def _json(row: ApprovalRow, now: int) -> dict[str, Any]:
    return {**asdict(row), "expired": _state(row, now) == "expired"}


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)

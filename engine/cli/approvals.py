"""`engine approvals`: what waits for a person's decision, and that decision."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import acts, options, stores
from engine.errors import GatherError, RecordError
from engine.files import shown

if TYPE_CHECKING:
    from engine.state import ApprovalRow, Store

app = typer.Typer(help="List, show, grant and refuse approval requests.", no_args_is_help=True)

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


How = Annotated[Format, typer.Option("--format", help="Output format.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Approval id, as printed by the decision or `list`.")]


@app.command("list")
def list_approvals(
    only: Annotated[States | None, typer.Option("--only", help="Filter by state.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Maximum number of rows; newest first.")
    ] = 50,
    state: options.State = None,
    how: How = Format.TEXT,
) -> None:
    """List approval requests, newest first."""
    with stores.found(state) as store:
        rows = store.approvals(None if only is None else only.value, limit)
    now = stores.now()
    if how is Format.JSON:
        typer.echo(_dumped([_json(row, now) for row in rows]))
        return
    for row in rows:
        head = f"{row.id}  {_state(row, now):<9} {shown(row.point):<14} until {stores.told(row.expires_at)}"
        typer.echo(f"{head}  {shown(row.requester or '(unnamed)', 256)}")
        typer.echo(f"      {', '.join(map(shown, row.codes))}")
    if not rows:
        typer.echo("no approvals" if only is States.REQUESTED else "no approvals in this state")


@app.command("show")
def show_approval(id_: Id, state: options.State = None, how: How = Format.TEXT) -> None:
    """Show an approval request: what it covers, its requester and policy, and how to see its input."""
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
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Grant an approval request. It can be used once, for this request under this policy, until it expires."""
    _resolve(id_, "grant_approval", reason, state)


@app.command("refuse")
def refuse_approval(
    id_: Id,
    reason: acts.Reason = None,
    state: options.State = None,
) -> None:
    """Refuse an approval request."""
    _resolve(id_, "refuse_approval", reason, state)


def _resolve(id_: str, act: str, reason: str | None, state: Path | None) -> None:
    with stores.found(state) as store:
        row = _known(store, id_)
    done = acts.act(state, {"act": act, "id": row.id, "reason": reason})
    typer.echo(f"{done['state']} by {shown(done['approver'], 256)}: {row.id}")


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
            "asked by": row.requester or "(unnamed)",
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

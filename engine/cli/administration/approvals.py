"""`engine approvals`: what waits for a person's decision, and that decision."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import json_text, print_text, rows
from engine.cli.terminal import notice
from engine.documents.files import printable
from engine.errors import RecordError
from engine.state.rows import ApprovalRow, ApprovalUnknownError
from engine.times import row_document, time_text

if TYPE_CHECKING:
    from engine.state.store import Store

app = typer.Typer()

_CLOSED = re.compile(r"(?m)^approval_(?:resolved|overdue): .*$")
"""The finding that says of an approval that it is no longer open."""

_RECORDED = 10_000  # the last decisions that requested an approval at one point


Id = Annotated[str, typer.Argument(metavar="ID", help="Approval id, as printed by the decision or `list`.")]


@app.command("list")
def list_approvals(
    only: Annotated[
        Literal["requested", "granted", "refused", "used"] | None, typer.Option(help="Filter by state.")
    ] = None,
    limit: acts.Limit = 50,
    state: options.State = None,
    how: options.Output = "text",
) -> None:
    """List approval requests, newest first."""
    with acts.found(state) as store:
        acts.print_rows("approvals", store.approvals(only, limit), how, _json, _lines, _CELLS)


def _lines(row: ApprovalRow) -> list[str]:
    head = f"{row.id}  {_state(row):<9} {printable(row.point):<14} until {time_text(row.expires_at)}"
    return [f"{head}  {printable(row.requester or '(unnamed)', 256)}", f"      {', '.join(map(printable, row.codes))}"]


@app.command("show")
def show_approval(id_: Id, state: options.State = None, how: options.Output = "text") -> None:
    """Show an approval request: what it covers, its requester and policy, and how to see its input."""
    with acts.found(state) as store:
        row = _approval(store, id_)
    asking = _asking(options.state_folder(state), row)
    if how == "json":
        print_text(json_text({**_json(row), "requesting_decisions": asking}, sort=True))
    else:
        print_text("\n".join(_details(row, asking, state)))


@app.command("grant")
@options.sourced("state", *options.SERVED)
def grant_approval(sources: options.Sources, id_: Id, reason: acts.Reason = None) -> None:
    """Grant an approval request. It can be used once, for this request under this policy, until it expires."""
    _resolve(id_, "grant_approval", reason, sources)


@app.command("refuse")
@options.sourced("state", *options.SERVED)
def refuse_approval(sources: options.Sources, id_: Id, reason: acts.Reason = None) -> None:
    """Refuse an approval request."""
    _resolve(id_, "refuse_approval", reason, sources)


def _resolve(id_: str, act: str, reason: str | None, sources: options.Sources) -> None:
    with acts.found(sources.state) as store:
        row = _approval(store, id_)
    try:
        done = acts.act(sources, {"act": act, "id": row.id, "reason": reason})
    except acts.ActRefusedError as error:
        if (now := _resolution(row)) is None:
            raise
        message = _CLOSED.sub(lambda line: f"{line[0]}\n  found: {now}", error.message)
        raise acts.ActRefusedError(message, remedy=error.remedy, code=error.code) from error
    print_text(f"{done['state']} by {printable(done['approver'], 256)}: {row.id}")


def _resolution(row: ApprovalRow) -> str | None:
    """What became of an approval request; None while it is open."""
    state = _state(row)
    if state == "requested":
        return None
    if state == "expired":
        return f"it expired at {time_text(row.expires_at)}"
    by = f"by {printable(row.approver or 'a person', 256)}"
    return f"it was granted {by}, and used" if state == "used" else f"it was {state} {by}"


def _approval(store: Store, id_: str) -> ApprovalRow:
    row = store.approval(id_)
    if row is None:
        raise ApprovalUnknownError(id_)
    return row


def _asking(folder: Path, row: ApprovalRow) -> list[str]:
    """The recorded decisions that requested this approval, newest first."""
    from engine.record.reader import Filter, select

    try:
        chosen = select(folder, Filter(point=row.point, outcome="confirm"), _RECORDED)
    except RecordError as error:
        notice(str(error))
        return []
    bodies = [entry.body for entry in reversed(chosen.entries) if entry.body.kind == "decision"]
    return [body.decision_id for body in bodies if body.input_digest == row.input_digest]


def _details(row: ApprovalRow, asking: list[str], state: options.StateAt | None) -> list[str]:
    where = "" if state is None else f" --state {state}"
    search = f"engine record show --point {row.point} --outcome confirm{where}"
    pairs = {
        "to approve": ", ".join(row.codes),
        "asked by": row.requester or "(unnamed)",
        "asked at": time_text(row.created_at),
        "expires at": time_text(row.expires_at),
        "input": row.input_digest,
        "rules": row.rules,
        "values": row.values,
        "decided by": row.approver,
        "decided at": None if row.resolved_at is None else time_text(row.resolved_at),
        "reason": row.reason,
        "used by": None if row.decision_id is None else f"decision {row.decision_id}",
        "used at": None if row.used_at is None else time_text(row.used_at),
        "to see it": f"engine record show --decision-id {asking[0]} --format json{where}" if asking else search,
    }
    return [f"{_state(row).upper()}  {printable(row.point)}  {row.id}", *rows(pairs, 11)]


def _state(row: ApprovalRow) -> str:
    return row.state_at(time.time())


_CELLS: dict[str, Callable[[ApprovalRow], str]] = {
    "id": lambda row: row.id,
    "state": _state,
    "point": lambda row: printable(row.point),
    "until": lambda row: time_text(row.expires_at),
    "requester": lambda row: printable(row.requester or "(unnamed)", 256),
    "codes": lambda row: ", ".join(map(printable, row.codes)),
}


def _json(row: ApprovalRow) -> dict[str, Any]:
    return {**row_document(row), "expired": _state(row) == "expired"}

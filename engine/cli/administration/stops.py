"""`engine stop`: the emergency stop of everything, of one tool or of one principal."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Annotated

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import print_text
from engine.cli.terminal import notice, remark
from engine.documents.files import printable
from engine.facts.text.nearest import did_you_mean, nearest
from engine.state.rows import StopRow
from engine.times import row_document, time_text

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", help="Exact name.", callback=options.name)]


@app.command("all")
@options.sourced("state", *options.SERVED)
def stop_all(sources: options.Sources, reason: acts.Reason = None) -> None:
    """Refuse every request from now on, and end what is running; also in other processes with this state folder."""
    _stop("all", "", reason, sources)


@app.command("tool")
@options.sourced("state", *options.SERVED)
def stop_tool(sources: options.Sources, name: Name, reason: acts.Reason = None) -> None:
    """Refuse every call of one tool from now on, and end the calls in progress."""
    _stop("tool", name, reason, sources)


@app.command("principal")
@options.sourced("state", *options.SERVED)
def stop_principal(sources: options.Sources, name: Name, reason: acts.Reason = None) -> None:
    """Refuse every request of one principal from now on, and end what is running for it."""
    _stop("principal", name, reason, sources)


def _stop(scope: str, name: str, reason: str | None, sources: options.Sources) -> None:
    request = {"act": "stop", "id": uuid.uuid4().hex, "reason": reason, "stop": {"scope": scope, "name": name}}
    try:
        done = acts.act(sources, request, urgent=True)
    except acts.ActRefusedError as refused:
        raise acts.with_tools(refused, sources, name) from None
    print_text(f"stopped: {_description(done['scope'], done['name'])}: {done['id']}")
    if scope == "principal":
        _warn_if_unknown(name, sources.state)
    remark(f"to lift the stop: engine stop lift {done['id']} --reason TEXT")


def _warn_if_unknown(name: str, state: options.StateAt | None) -> None:
    """Warn of a principal that the state does not know: it may come yet, or the name is misspelt."""
    with acts.found(state) as store:
        known = {options.user(), *(row.principal for row in store.tokens())}
        known |= {row.principal for row in store.children(None, acts.MOST)}
        known |= {row.requester for row in store.approvals(None, acts.MOST) if row.requester is not None}
    if name not in known:
        near = nearest(name, known, {})
        question = f"; {did_you_mean(near)}" if near else ""
        notice(f"`{name}` has no token, approval or subagent here; it is stopped all the same{question}")


@app.command("list")
def list_stops(limit: acts.Limit = 50, state: options.State = None, how: options.Output = "text") -> None:
    """List stops, newest first, including those that were lifted."""
    with acts.found(state) as store:
        acts.print_rows("stops", store.stops(limit), how, row_document, _lines, _CELLS)


@app.command("lift")
@options.sourced("state", *options.SERVED)
def lift_stop(
    sources: options.Sources,
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the stop, as printed by `list`.", callback=options.row_id)
    ],
    reason: acts.Reason = None,
) -> None:
    """Lift a stop. What it ended stays ended."""
    done = acts.act(sources, {"act": "lift_stop", "id": id_, "reason": reason})
    print_text(f"lifted: {_description(done['scope'], done['name'])}: {done['id']}")


def _description(scope: str, name: str) -> str:
    return "everything" if scope == "all" else f"{scope} {printable(name, 256)}"


def _state(row: StopRow) -> str:
    return "in force" if row.lifted_at is None else "lifted"


_CELLS: dict[str, Callable[[StopRow], str]] = {
    "id": lambda row: row.id,
    "state": _state,
    "stopped": lambda row: _description(row.scope, row.name),
    "since": lambda row: time_text(row.created_at),
    "by": lambda row: printable(row.actor, 256),
    "reason": lambda row: printable(row.reason or ""),
}


def _lines(row: StopRow) -> list[str]:
    head = f"{row.id}  {_state(row):<8} {_description(row.scope, row.name)}"
    until = "" if row.lifted_at is None else f" until {time_text(row.lifted_at)},"
    by = f"      since {time_text(row.created_at)}{until} by {printable(row.actor, 256)}"
    return [head, by + (f": {printable(row.reason)}" if row.reason else "")]

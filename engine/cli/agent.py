"""`engine agent`: agents that were created from a specification, with the approval of a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.inputs import all_bytes
from engine.cli.outputs import json_text, print_text
from engine.documents.files import printable
from engine.state.rows import AgentRow
from engine.times import row_document, time_text

app = typer.Typer()

_BYTES = 1 << 20
"""Maximum size of a file with a specification; the point accepts less."""


@app.command("provision")
@options.sourced(*options.DECIDING, "state", *options.SERVED)
def provision(
    sources: options.Sources,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="NewAgentProvisioning as JSON; - reads standard input.")],
    how: options.Output = "text",
) -> None:
    """Create an agent from a specification, once a person has approved exactly this one.

    The first run records the specification and exits with 3; a person reads it with the command that `engine
    approvals show` prints, and grants it. The second run passes --approval and prints the id of the agent.
    """
    text = all_bytes(path, _BYTES).decode("utf-8", "replace")
    with sources.engine("provisioning") as engine:
        got = engine.provision(text, sources.context())
    if got.answer.fault is not None:
        raise got.answer.fault
    decision = got.answer.decision
    if how == "json":
        print_text(json_text({"agent": got.agent, "decision": decision.model_dump(mode="json")}))
    else:
        from engine.cli.formats.show import approval_lines, print_findings

        print_findings(got.answer, engine.policy)
        if got.agent is not None:
            print_text(f"agent {got.agent} is active")
        elif decision.approval is not None:
            waiting = f"waiting for approval {decision.approval.id}: nothing is created before it is granted"
            print_text("\n".join([waiting, *approval_lines(decision)]))
        else:
            print_text(f"not created, decision {decision.decision_id}")
    raise typer.Exit(got.answer.exit)


@app.command("list")
def list_agents(limit: acts.Limit = 50, state: options.State = None, how: options.Output = "text") -> None:
    """List agents, newest first, including those that were ended."""
    with acts.found(state) as store:
        acts.print_rows("agents", store.agents(limit), how, _json, _lines, _CELLS)


@app.command("end")
@options.sourced("state", *options.SERVED)
def end_agent(
    sources: options.Sources,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Agent id, as printed by `list`.", callback=options.row_id)],
    reason: acts.Reason = None,
) -> None:
    """End an agent: it takes no further turn, and another one may be created."""
    row = acts.act(sources, {"act": "end_agent", "id": id_, "reason": reason})
    print_text(f"agent {row['id']} ({printable(row['name'])}) is ended")


def _state(row: AgentRow) -> str:
    return "active" if row.ended_at is None else "ended"


def _json(row: AgentRow) -> dict[str, Any]:
    return {**row_document(row), "specification": json.loads(row.specification), "state": _state(row)}


_CELLS: dict[str, Callable[[AgentRow], str]] = {
    "id": lambda row: row.id,
    "state": _state,
    "name": lambda row: printable(row.name),
    "role": lambda row: printable(row.role),
    "since": lambda row: time_text(row.created_at),
    "requester": lambda row: printable(row.requester or "(unnamed)", 256),
}


def _lines(row: AgentRow) -> list[str]:
    return ["  ".join(cell(row) for cell in _CELLS.values())]

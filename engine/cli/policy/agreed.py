"""`engine policy activate DIR`, `leave` and `status`: the release that all engines of a state serve."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import typer

from engine.binaries import find_binary
from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import json_text, print_text
from engine.cli.terminal import notice
from engine.cli.waiting import during
from engine.documents.files import printable
from engine.errors import Exit, GatherError
from engine.state import open_state
from engine.state.rows import ActivationRow, Agreement, ReplicaRow
from engine.times import row_document, time_text

_HISTORY = 20
"""Activations that are listed, the newest first."""


def activate_everywhere(folder: Path, key: Path | None, reason: str | None, state: options.StateAt | None) -> None:
    """Have all engines of a state serve this release. PolicyError if they go on with another."""
    from engine.agreement.activation import activate_release

    if key is None:
        raise typer.BadParameter("name the public key that it must be signed with", param_hint="--release-key")
    settings = options.Sources(state=state).settings()
    actor = acts.actor(settings)
    with closing(open_state(settings)) as store, during("activating the release"):
        before = store.agreement().active
        row, live = activate_release(folder, key, find_binary(), store, actor, reason)
    without = [one for one in live if one.serving != row.digest]
    print_text(f"active   release {row.sequence} of {row.name}\ndigest   {row.digest}")
    if before is not None and before.id == row.id:
        notice("it is active already; nothing was changed, and no reason was recorded")
    print_text(f"engines  {len(live) - len(without)} serve it")
    for one in without:
        typer.echo("\n".join(_replica_lines(one, (row,))), err=True)
    if without:
        raise typer.Exit(Exit.FAILED_CLOSED)


@options.sourced("state", *options.SERVED)
def leave(sources: options.Sources, reason: acts.Reason = None) -> None:
    """Leave the agreement on one release: engines that have a policy of their own use it again.

    Decided and recorded as an administrative act under the agreed release. Engines that follow agreements go on with
    it, also when they start again, until another release is activated. Exits with 1 if policy refuses it.
    """
    with acts.found(sources.state) as store:
        agreement = store.agreement()
    active = agreement.active
    if active is None or active.left_at is not None:
        raise GatherError(
            "the engines of this state have agreed on no release",
            remedy="there is nothing to leave; see `engine policy status`",
        )
    done = acts.act(sources, {"act": "leave_agreement", "id": active.id, "reason": reason})
    print_text(f"left     release {done['sequence']} of {printable(done['name'])}\ndigest   {done['digest']}")


def status(state: options.State = None, how: options.Output = "text") -> None:
    """List the release that the engines of a state serve, earlier activations, and what each engine serves.

    Exits with 4 if an engine does not serve the active release; such an engine decides nothing.
    """
    with acts.found(state) as store:
        agreement, rows, replicas = store.agreement(), store.activations(_HISTORY), store.replicas()
    without = [one for one in replicas if one.serving not in agreement.served]
    if how == "json":
        found = {"activations": [row_document(row) for row in rows], "engines": [row_document(one) for one in replicas]}
        print_text(json_text(found))
    else:
        lines = [line for row in rows for line in _activation_lines(row, agreement)] or ["no release was activated yet"]
        lines += [line for one in replicas for line in _replica_lines(one, rows)]
        print_text("\n".join(lines))
    if without:
        raise typer.Exit(Exit.FAILED_CLOSED)


def _activation_lines(row: ActivationRow, agreement: Agreement) -> list[str]:
    is_past = row.state == "active" and (agreement.active is None or row.id != agreement.active.id)
    state = "was active" if is_past else row.state
    done = "activated" if row.state == "active" else "proposed"
    why = f": {row.reason}" if row.reason else ""
    at = time_text(row.ended_at or row.switched_at or row.proposed_at)
    lines = [
        f"{at}  {state}  release {row.sequence} of {row.name}, {done} by {row.actor}{why}",
        f"  built by {row.author}, approved by {row.approver}",
        f"  {row.digest}",
    ]
    if row.left_at is not None:
        why = f": {row.left_reason}" if row.left_reason else ""
        lines.append(f"  left at {time_text(row.left_at)} by {row.left_by}{why}")
    return [printable(line, 2_000) for line in lines]


def _replica_lines(one: ReplicaRow, rows: Sequence[ActivationRow]) -> list[str]:
    serves = next((f"release {row.sequence}" for row in rows if row.digest == one.serving), "another release")
    target = next((row for row in rows if row.id == one.wanted and row.digest != one.serving), None)
    lines = [f"engine {one.name} serves {serves}, last seen {time_text(one.seen_at)}"]
    if one.fault is not None:
        lines += [f"  {part}" for part in one.fault.splitlines()]
    elif target is not None:
        lines.append(f"  release {target.sequence} is {'loaded' if one.ready else 'being loaded'}")
    return [printable(line, 2_000) for line in lines]

"""`engine record shadow`: what a candidate policy decided differently beside a server, from its recorded lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.policy.commands import built_policy
from engine.cli.record.commands import Point, Principal, Since, existing_folder, require_intact
from engine.cli.record.replay import Form, report
from engine.cli.waiting import Waiting
from engine.documents.files import counted
from engine.errors import GatherError

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle
    from engine.replay.shadowed import Shadowed


@options.sourced("state", *options.RULES)
def report_shadow(
    sources: options.Sources,
    since: Since = None,
    point: Point = None,
    principal: Principal = None,
    broken: Annotated[
        bool, typer.Option("--broken", help="Report the readable lines of a record that is broken.")
    ] = False,
    how: Form = "text",
) -> None:
    """Report what the candidate of `engine serve --shadow` decided differently, from the lines that it recorded.

    The candidate is the policy of these options, as it is now. If nothing was recorded of it, the candidate that was
    recorded last is reported, without texts and places of its rules. Exits as `engine record replay` does.
    """
    from engine.record.reader import Filter
    from engine.replay.document import replay_document
    from engine.replay.shadowed import shadowed

    folder = existing_folder(sources.state)
    policy = built_policy(sources)
    require_intact(folder, broken=broken)
    with Waiting() as waiting:
        criteria = Filter(since=since, point=point, principal=principal)
        found = shadowed(
            folder, criteria, policy, lambda done, read: waiting.show(f"lines read: {read:,}, of a candidate: {done:,}")
        )
    if found is None:
        raise GatherError(
            "no recorded shadow decision matches",
            remedy="start the server with `engine serve --shadow DIR`, or widen --since, --point or --principal",
        )
    _report_left_out(found, policy)
    name = policy.name if found.known else None
    title = f"What {'a candidate' if name is None else f'policy {name}'} decided beside the server"
    report(found.found, replay_document(found.found, name, found.revisions), how, title)


def _report_left_out(found: Shadowed, policy: PolicyBundle) -> None:
    """Report on standard error what is not in the report."""
    if not found.known:
        typer.echo(
            f"nothing was recorded of policy {policy.name} as it is now; this report is about the candidate "
            "that was recorded last, without the texts of its rules",
            err=True,
        )
    for revisions, count in found.others.items():
        typer.echo(
            f"not in the report: {counted(count, 'decision')} of the candidate with rules {revisions.rules}, "
            f"values {revisions.values}",
            err=True,
        )

"""`engine policy approve`, `rollback` and `history`: who released what, who said yes to it, and when it was active."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import Author, Folder, print_release, refusals
from engine.cli.record.commands import existing_folder, report_unreadable
from engine.documents.files import printable
from engine.errors import Location

if TYPE_CHECKING:
    from engine.record.chain import Entry
    from engine.record.model import PolicyRecord


@options.sourced("state", *options.SERVED)
def approve_policy(sources: options.Sources, folder: Folder, reason: acts.Reason = None) -> None:
    """Approve a release of another person: decided and recorded as an administrative act, and written into it.

    The approval is bound to the digest of the release. Exits with 1 if policy refuses it, for example to the author.
    """
    from engine.releasing import approve

    with refusals():
        statement, approval = approve(folder, reason, lambda request: acts.act(sources, request))
    print_release("approved", statement)
    print_text(f"author   {printable(statement.author)}\napproved by {printable(approval.approver)}")


def roll_back(
    folder: Folder,
    output: Annotated[Path, typer.Option(metavar="DIR", help="New folder to write the release to.")],
    after: Annotated[Path, options.folder(help="Release that is active now; the new one gets the next number.")],
    reason: Annotated[str, options.words(help="Reason, which becomes the notes of the release.")],
    author: Author = None,
) -> None:
    """Release the content of an earlier release again, with a new number; then approve, sign and activate it.

    The content stays as it was built, byte for byte. Lower numbers stay refused everywhere.
    """
    from engine import releasing

    with refusals():
        statement = releasing.roll_back(folder, after, output, author or options.user(), reason)
    print_release("written", statement)


def history(state: options.State = None, how: options.Output = "text") -> None:
    """List when each policy became active, who activated it and why, and who built and approved its release.

    Read from the record: starts of servers, activations and refused ones, at the times when they were recorded.
    """
    from engine.record.reader import Filter, entries

    found = []
    for entry in entries(existing_folder(state), Filter(kind="policy")):
        if isinstance(entry, Location):
            report_unreadable(entry)
        elif entry.body.kind == "policy":
            found.append((entry, entry.body))
    if how == "json":
        print_text(json_text({"activations": [_document(*one) for one in found]}))
    else:
        print_text("\n".join(line for one in found for line in _lines(*one)) or "no policy was activated yet")


def _document(entry: Entry, body: PolicyRecord) -> dict[str, Any]:
    fields = body.model_dump(mode="json", exclude={"kind", "redactions", "trace", "request_id"})
    return {"chain": entry.chain, **fields}


def _lines(entry: Entry, body: PolicyRecord) -> list[str]:
    who = body.principal or "an unnamed caller"
    why = f": {body.reason}" if body.reason else ""
    code = "" if body.code is None else f" ({body.code})"
    lines = [f"{body.time}  {body.outcome}{code} by {who}{why}"]
    if (release := body.release) is not None:
        notes = f": {release.notes}" if release.notes else ""
        people = f"built by {release.author}, approved by {release.approver or 'nobody'}"
        lines.append(f"  release {release.sequence} of {release.name}, {people}{notes}")
    if body.revisions is not None:
        lines.append(f"  rules {body.revisions.rules}  values {body.revisions.values}")
    if entry.chain > 1:
        lines.append(f"  server on chain {entry.chain}")
    return [printable(line, 2_000) for line in lines]

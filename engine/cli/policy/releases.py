"""`engine policy approve`, `rollback` and `history`: who released what, who said yes to it, and when it was active."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import json_text
from engine.cli.policy.changes import changes
from engine.cli.policy.commands import Author, Folder, refusals, tell_release
from engine.documents.files import printable
from engine.errors import GatherError, Location

if TYPE_CHECKING:
    from engine.record.chain import Entry
    from engine.record.model import PolicyRecord

_ID = 32
"""Characters of a digest that name a release in an administrative act."""


def approve_policy(folder: Folder, reason: acts.Reason = None, state: options.State = None) -> None:
    """Approve a release of another person: decided and recorded as an administrative act, and written into it.

    The approval is bound to the digest of the release. Exits with 1 if policy refuses it, for example to the author.
    """
    from engine.policy_bundle.release import approve_release
    from engine.policy_bundle.release_folder import read

    with refusals():
        statement = read(folder).statement
        release = {"digest": statement.digest, **statement.model_dump(include={"name", "sequence", "author"})}
        id_ = statement.digest.removeprefix("sha256:")[:_ID]
        done = acts.act(state, {"act": "approve_release", "id": id_, "reason": reason, "release": release})
        approve_release(folder, done["approver"], reason, datetime.fromtimestamp(done["approved_at"], UTC))
    tell_release("approved", statement)
    typer.echo(f"author   {printable(statement.author)}\napproved by {printable(done['approver'])}")


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
    from engine.policy_bundle.release import About, policy_of, write_release
    from engine.policy_bundle.release_folder import read

    with refusals():
        earlier, active = read(folder), read(after)
        old, new = earlier.statement, active.statement
        if old.name != new.name or old.sequence >= new.sequence:
            message = f"release {old.sequence} of `{old.name}` is no earlier one than {new.sequence} of `{new.name}`"
            raise GatherError(
                message, remedy="name an earlier release of the same policy, and the active one as --after"
            )
        policy = policy_of(folder, earlier)
        notes = f"rollback to release {old.sequence}: {reason}"
        about = About(
            new.sequence + 1, datetime.now(UTC), author or options.user(), notes, changes(after, active, policy, None)
        )
        statement = write_release(policy, output, about)
    tell_release("written", statement)


def history(state: options.State = None, how: options.Output = "text") -> None:
    """List which policy was active from when on, who activated it and why, and who built and approved its release.

    Read from the record: starts of servers, activations and refused ones. The time of a change is that of its line.
    """
    from engine.cli.record.commands import existing_folder, tell_unreadable
    from engine.record.reader import Filter, entries

    found = []
    for entry in entries(existing_folder(state), Filter(kind="policy")):
        if isinstance(entry, Location):
            tell_unreadable(entry)
        elif entry.body.kind == "policy":
            found.append((entry, entry.body))
    if how == "json":
        typer.echo(json_text([_document(*one) for one in found]))
    else:
        typer.echo("\n".join(line for one in found for line in _lines(*one)) or "no policy was activated yet")


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

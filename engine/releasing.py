"""What people do to releases of a policy: build one with what it changes, approve that of another, roll back.

The commands and the workbench both call this.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.documents.files import opened_folder, printable, unreadable
from engine.errors import GatherError, Location, PolicyError, Problem
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.difference import difference
from engine.policy_bundle.release import Authorship, approve_release, policy_of, write_release
from engine.policy_bundle.release_folder import APPROVAL, Contents, ReleaseApproval, Statement, read
from engine.record.reader import Filter
from engine.replay.candidate import opened
from engine.replay.document import replay_document
from engine.replay.run import Progress, replay
from engine.secrets.patterns import know
from engine.settings import OpaLimits
from engine.times import moment

Act = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes an administrative act, and returns what it made as JSON. Raises EngineError, also where policy refuses it."""

_ID = 32
"""Characters of a digest that name a release in an administrative act."""


def build_release(
    built: PolicyBundle, output: Path, by: Authorship, after: Path | int, summary: dict[str, Any] | None
) -> tuple[Statement, tuple[str, ...]]:
    """Write a release of a policy with what it changes; returns it with the codes that it no longer has.

    `after` is the folder of the release before, or the number of a first one; `summary` is that of a replay.
    Raises PolicyError, GatherError.
    """
    if isinstance(after, int):
        changes = {"after": None, "difference": None, "replay": summary}
        return write_release(built, output, after, by, changes), ()
    before = read(after)
    if before.statement.name != built.name:
        message = f"the release before is one of the policy `{before.statement.name}`, not of `{built.name}`"
        raise GatherError(message, remedy="name a release of the same policy, or give --sequence 1")
    statement = _write_after(after, before, built, output, by, summary)
    return statement, before.catalogue.without(built.catalogue)


def _write_after(
    folder: Path, before: Contents, policy: PolicyBundle, output: Path, by: Authorship, summary: dict[str, Any] | None
) -> Statement:
    statement = before.statement
    changes = {
        "after": {"sequence": statement.sequence, "digest": statement.digest},
        "difference": asdict(difference(policy_of(folder, before), policy)),
        "replay": summary,
    }
    return write_release(policy, output, statement.sequence + 1, by, changes)


def replay_summary(state: Path, policy: PolicyBundle, opa: OpaLimits, progress: Progress) -> dict[str, Any]:
    """How a policy would change recorded decisions, for its release.

    The caller has verified the record. Raises RecordError, DecideError.
    """
    know(policy.lookups.forms)
    with opened(policy, opa) as candidate:
        document = replay_document(replay(state, Filter(), candidate, None, progress), policy.name, policy.revisions)
    return {name: document[name] for name in ("record", "changed", "counts", "points", "not_decided", "not_counted")}


def approve(folder: Path, reason: str | None, act: Act) -> tuple[Statement, ReleaseApproval]:
    """Approve the release of another person: decided and recorded as an administrative act, then written into it.

    Of several people who do so at the same time, one approves it. Raises EngineError: for a release that is approved
    already, where policy refuses the act, and where the folder holds another release by then.
    """
    read(folder)
    with ExitStack() as alone:  # no other process or thread approves the release in this folder meanwhile
        try:
            alone.enter_context(opened_folder(folder, alone=True))
        except OSError as error:
            raise unreadable(str(folder), error) from error
        contents = read(folder)
        statement = contents.statement
        if (before := contents.approval) is not None:
            message = f"{before.approver} approved this release already, at {before.approved_at}; nothing was recorded"
            remedy = "sign it; to have another person approve it, build it again"
            raise PolicyError((Problem(Location(str(folder / APPROVAL)), printable(message, 400), remedy),))
        release = {"digest": statement.digest, **statement.model_dump(include={"name", "sequence", "author"})}
        id_ = statement.digest.removeprefix("sha256:")[:_ID]
        done = act({"act": "approve_release", "id": id_, "reason": reason, "release": release})
        at = moment(done["approved_at"])
        return statement, approve_release(folder, done["release"], done["approver"], reason, at)


def roll_back(folder: Path, active: Path, output: Path, author: str, reason: str) -> Statement:
    """Release the content of an earlier release again, byte for byte, with the number after that of `active`.

    Raises PolicyError, GatherError.
    """
    earlier, now = read(folder), read(active)
    old, new = earlier.statement, now.statement
    if old.name != new.name or old.sequence >= new.sequence:
        message = f"release {old.sequence} of `{old.name}` is not earlier than release {new.sequence} of `{new.name}`"
        raise GatherError(message, remedy="name an earlier release of the same policy, and the active one as --after")
    if not reason.strip():
        raise GatherError("the rollback has no reason", remedy="state the reason in one line")
    by = Authorship(author, datetime.now(UTC), f"rollback to release {old.sequence}: {reason}")
    return _write_after(active, now, policy_of(folder, earlier), output, by, None)

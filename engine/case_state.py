"""What a case finds in the engine's state: approved prefixes, children, attempts, checks of artifacts.

Such a case is decided on a store of its own, so that no case sees what another one put there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from engine.model import Model, Sha256
from engine.state import (
    ApprovalRow,
    ApprovalState,
    AttemptState,
    CheckName,
    ChildState,
    NewArtifactCheck,
    NewAttempt,
    NewChild,
    NewPrefix,
    Store,
)

Moment = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
"""A time in a case file, UTC to the second."""


class CasePrefix(Model):
    """A prefix that somebody approved before, and perhaps revoked."""

    principal: str
    cwd: str
    tool: str
    words: tuple[str, ...]
    approver: str
    created_at: Moment
    expires_at: Moment
    revoked: bool = False


class CaseChild(Model):
    """A subagent's conversation that was started before, and what became of it."""

    id: str
    parent: str
    created_at: Moment
    state: ChildState = "running"


class CaseAttempt(Model):
    """A try at a task before, and how it ended."""

    id: str
    principal: str = ""
    task: str
    code_sha256: Sha256
    created_at: Moment
    state: AttemptState = "failed"


class CaseCheck(Model):
    """A check of a generated artifact that was made before."""

    sha256: Sha256
    name: CheckName
    passed: bool
    ran_in: str
    decision_id: str = "before"
    made_at: Moment


class CaseApproval(Model):
    """A request for approval, and what became of it."""

    id: str
    point: str
    requester: str | None = None
    requester_via: str
    state: ApprovalState
    expires_at: Moment

    def row(self) -> ApprovalRow:
        """The row as the state has it; its binding and findings are of no decision."""
        return ApprovalRow(
            id=self.id,
            point=self.point,
            input_digest="",
            rules="",
            values="",
            requester=self.requester,
            codes=(),
            state=self.state,
            created_at=0,
            expires_at=seconds(self.expires_at),
            requester_via=self.requester_via,
        )


class CaseState(Model):
    """What the state of a case holds, the oldest first."""

    prefixes: tuple[CasePrefix, ...] = ()
    children: tuple[CaseChild, ...] = ()
    attempts: tuple[CaseAttempt, ...] = ()
    checks: tuple[CaseCheck, ...] = ()

    def write(self, store: Store) -> None:
        """Put all of it into a store, once. Raises ValueError for what no engine would have put there."""
        for one in self.prefixes:
            made = seconds(one.created_at)
            new = NewPrefix(one.principal, one.cwd, one.tool, one.words, one.approver, made, seconds(one.expires_at))
            row = store.approve_prefix(new)
            if one.revoked:
                store.revoke_prefix(row.id, made)
        for child in self.children:
            made = seconds(child.created_at)
            store.add_child(NewChild(child.id, child.parent, made))
            if child.state != "running":
                store.end_child(child.id, child.state, made)
        for tried in self.attempts:
            made = seconds(tried.created_at)
            store.begin_attempt(NewAttempt(tried.id, tried.principal, tried.task, tried.code_sha256, made))
            if tried.state != "begun":
                store.end_attempt(tried.id, tried.state, made)
        for check in self.checks:
            made = seconds(check.made_at)
            store.add_artifact_check(
                NewArtifactCheck(check.sha256, check.name, check.passed, check.ran_in, check.decision_id, made)
            )


def moment(text: str) -> datetime:
    """The time that a case file states."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def seconds(text: str) -> int:
    """The time that a case file states, in seconds since 1970."""
    return int(moment(text).timestamp())

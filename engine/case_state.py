"""What a case finds in the engine's state: approved prefixes, and the children of conversations.

Such a case is decided on a store of its own, so that no case sees what another one put there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from engine.model import Model
from engine.state import ChildState, NewChild, NewPrefix, Store

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


class CaseState(Model):
    """What the state of a case holds, the oldest first."""

    prefixes: tuple[CasePrefix, ...] = ()
    children: tuple[CaseChild, ...] = ()

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


def moment(text: str) -> datetime:
    """The time that a case file states."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def seconds(text: str) -> int:
    """The time that a case file states, in seconds since 1970."""
    return int(moment(text).timestamp())

"""Point `subagent`: whether a conversation may start, read or end one of its subagents, and within what limits.

The parent of a conversation comes from the engine's state, never from the request. An id that is not a UUID
is never looked up (B23). Of the task only its digest and size get into the input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import Field

from engine.documents.canonical import digest
from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.model import Caller, Digest, Limits, Model
from engine.points import FactsFromState, GatherContext, Gathered, Point
from engine.points.tool_visibility import Name, ToolScope

if TYPE_CHECKING:
    from engine.state.store import Store

Operation = Literal["spawn", "run", "poll", "cancel", "kill"]
Id = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
Whole = Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_STARTING = ("spawn", "run")
"""The operations that are counted against quotas; the policy decides what they may do."""


class SubagentRequest(Model):
    """One operation on a subagent. `conversation` requests it; the embedding program chooses the ids.

    `task` is the prompt of a new subagent. `limit_turns` and `timeout_seconds` request less than the policy allows.
    """

    operation: Operation
    conversation: Id
    user: Id
    account: Id
    child_conversation_id: Annotated[str, Field(max_length=1 << 16)] | None = None
    task: Annotated[str, Field(max_length=1 << 20)] | None = None
    limit_turns: Whole | None = None
    timeout_seconds: Whole | None = None
    policy: Name | None = None
    profile: Name | None = None


class ChildFacts(Model):
    """The child that the request names; its id only when it is a UUID, in lower case."""

    stated: bool
    id_valid: bool | None = None
    id: str | None = None


class Amount(Model):
    """A number that the request may state."""

    stated: bool
    requested: int | None = None


class TaskFacts(Model):
    """The size of the task text; never the text."""

    digest: Digest
    bytes: int


class SubagentInput(Model):
    """What OPA sees; `children` and `quotas` come from the engine's state."""

    context: ToolScope
    operation: Operation
    conversation: str
    user: str
    account: str
    child: ChildFacts
    task: TaskFacts | None = None
    limit_turns: Amount
    timeout_seconds: Amount


class SubagentLimits(Limits):
    """What the operation may do: to which child (`new`: one that it starts), for how long, giving how much.

    `timeout_seconds` bounds the operation, `lifetime_seconds` the child that it starts. A line of the
    transcript is cut to `line_bytes` bytes.
    """

    operation: Operation
    child: str
    turns: Annotated[int, Field(ge=1)]
    line_bytes: Annotated[int, Field(ge=1)]
    timeout_seconds: Annotated[int, Field(ge=1)]
    lifetime_seconds: Annotated[int, Field(ge=1)]


def gather(request: SubagentRequest, _: GatherContext) -> Gathered:
    """Bring the ids into canonical form; the flow looks them up in the state."""
    own, child = conversation_of(request.conversation), _child(request.child_conversation_id)
    task = None if request.task is None else request.task.encode("utf-8")
    gathered = SubagentInput(
        context=ToolScope(policy=request.policy, profile=request.profile),
        operation=request.operation,
        conversation=own,
        user=request.user,
        account=request.account,
        child=child,
        task=None if task is None else TaskFacts(digest=digest(task), bytes=len(task)),
        limit_turns=_amount(request.limit_turns),
        timeout_seconds=_amount(request.timeout_seconds),
    )
    title = f"subagent: {request.operation}"
    if child.id_valid is False:
        return Gathered(gathered, title)  # refused before anything is read or counted
    quotas = {"conversation": own, "user": request.user, "account": request.account}
    roles = {"self": own, "child": child.id}
    ids = {role: id_ for role, id_ in roles.items() if id_ is not None and _UUID.fullmatch(id_)}
    return Gathered(
        gathered,
        title,
        state=partial(_family, ids) if ids else None,
        quotas=quotas if request.operation in _STARTING else {},
    )


def _child(stated: str | None) -> ChildFacts:
    if stated is None:
        return ChildFacts(stated=False)
    valid = _UUID.fullmatch(stated) is not None
    return ChildFacts(stated=True, id_valid=valid, id=stated.lower() if valid else None)


def conversation_of(stated: str) -> str:
    """A conversation in canonical form: all spellings of a UUID are equal, so that a child cannot hide behind one."""
    try:
        return str(UUID(stated))
    except ValueError:
        return stated


def _amount(stated: int | None) -> Amount:
    return Amount(stated=stated is not None, requested=stated)


def _family(ids: Mapping[str, str], store: Store, caller: Caller) -> FactsFromState:
    """Which of these conversations, by role, are children; `user` started one, `asking` is the caller."""
    found = [(role, store.child(id_)) for role, id_ in ids.items()]
    asking = caller.principal or ""
    return {
        "children": [
            {
                "id": row.id,
                "role": role,
                "parent": row.parent,
                "state": row.state,
                "user": row.principal,
                "asking": asking,
            }
            for role, row in found
            if row is not None
        ]
    }


POINT = Point("subagent", SubagentRequest, SubagentInput, SubagentLimits, gather, secret=True)

"""Point `subagent`: whether a conversation may start, watch or end a subagent of its own, and within what limits.

Whose child a conversation is comes from the engine's state, never from the request. An id that is no UUID
is never looked up (B23). Of the task only its digest and size get into the input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from engine.canonical import digest
from engine.model import Caller, Digest, Limits, Model
from engine.points import Gathered, Input, Point, World
from engine.state.store import LARGEST, Store

Operation = Literal["spawn", "run", "poll", "cancel", "kill"]
Id = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
Name = Annotated[str, Field(max_length=128)]
Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_STARTING = ("spawn", "run")
"""The operations that are counted against quotas; what they may do is for policy to say."""


class SubagentRequest(Model):
    """Ask for one operation. `conversation` is the one that asks; the ids are those of whoever embeds the engine.

    `task` is what a new subagent is told. `limit_turns` and `timeout_seconds` ask for less than the policy has.
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


class Asked(Model):
    """Under which tool policy and profile the operation is called."""

    policy: str | None = None
    profile: str | None = None


class ChildFacts(Model):
    """The child that the request names; its id only when it is a UUID, in lower case."""

    stated: bool
    id_valid: bool | None = None
    id: str | None = None


class Amount(Model):
    """A number that the request may state."""

    stated: bool
    asked: int | None = None


class TaskFacts(Model):
    """What the subagent is told, without a word of it."""

    digest: Digest
    bytes: int


class SubagentInput(Input):
    """What OPA sees; `children` and `quotas` come from the engine's state."""

    asked: Asked
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


def gather(request: SubagentRequest, world: World) -> Gathered:
    """Bring the ids into their one form; what the state knows of them is asked for by the flow."""
    own, child = conversation_of(request.conversation), _child(request.child_conversation_id)
    task = None if request.task is None else request.task.encode("utf-8")
    gathered = SubagentInput(
        point="subagent",
        now=world.clock(),
        asked=Asked(policy=request.policy, profile=request.profile),
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
    return Gathered(
        gathered,
        title,
        state=_family({"self": own, "child": child.id}),
        quotas=quotas if request.operation in _STARTING else {},
    )


def _child(stated: str | None) -> ChildFacts:
    if stated is None:
        return ChildFacts(stated=False)
    valid = _UUID.fullmatch(stated) is not None
    return ChildFacts(stated=True, id_valid=valid, id=stated.lower() if valid else None)


def conversation_of(stated: str) -> str:
    """A conversation in its one form: any spelling of a UUID is that UUID, or a child could hide behind one."""
    try:
        return str(UUID(stated))
    except ValueError:
        return stated


def _amount(stated: int | None) -> Amount:
    return Amount(stated=stated is not None, asked=stated)


def _family(
    asked: Mapping[str, str | None],
) -> Callable[[Store, Caller, int], Mapping[str, list[dict[str, Any]]]] | None:
    """Looks up which of these conversations, by role, are children; None where no id could be one."""
    ids = {role: id_ for role, id_ in asked.items() if id_ is not None and _UUID.fullmatch(id_)}

    def ask(store: Store, _: Caller, __: int) -> Mapping[str, list[dict[str, Any]]]:
        found = [(role, store.child(id_)) for role, id_ in ids.items()]
        return {
            "children": [
                {"id": row.id, "role": role, "parent": row.parent, "state": row.state}
                for role, row in found
                if row is not None
            ]
        }

    return ask if ids else None


POINT = Point("subagent", SubagentRequest, SubagentInput, SubagentLimits, gather, secret=True)

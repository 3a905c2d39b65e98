"""Point `code_action`: whether a proposed code action is valid, and within what limits it would run.

The first of the checks of a code run: nothing is scanned and nothing runs here. Attempts come from the engine's state.
Rows C02 to C16, C44, C63, C72, C76 to C78, H19.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from engine.facts.code.actions import ActionFacts, HintFacts, action_facts, hint_facts
from engine.facts.code.boundaries import Stated, stated
from engine.facts.code.outputs import EchoedFacts, echoed_facts
from engine.model import Caller, Count, Limits, Model, Sha256, Word
from engine.points import FactsFromState, GatherContext, Gathered, Point

if TYPE_CHECKING:
    from engine.state.store import Store

Task = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
AttemptId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]

EARLIER = 128
"""Attempts that are looked at, the newest first: more than policy can admit."""


class ActionRequest(Model):
    """A proposed action and its hints, both unchanged, and the milliseconds since the run began."""

    action: Any = None
    policy_hints: Any = None
    elapsed_ms: Count
    task: Task | None = None
    attempt: AttemptId | None = None


class CodeActionRequest(ActionRequest):
    """A proposed action: an object with `id`, `language`, `entrypoint`, `code` and `input_payload`.

    `policy_hints` may have `allowed_languages`, `max_code_chars`, `exec_timeout_seconds` and `network_access`;
    `elapsed_ms` are the milliseconds since the run began. `contract` names what the output must be, and `request` has
    the fields that the contract repeats. `attempt` is this attempt in the engine's state, if the caller has begun one;
    only earlier ones count against it.
    """

    contract: Word | None = None
    request: Any = None


class ActionInput(Model):
    """What OPA sees: no code and no payload, but their sizes and digests; `attempts` come from the engine's state."""

    action: ActionFacts
    hints: HintFacts
    elapsed_ms: int
    task: Stated


class CodeActionInput(ActionInput):
    """What OPA sees of an action, and of the fields of the request that its contract repeats."""

    contract: Stated
    echoed: tuple[EchoedFacts, ...]


class CodeActionLimits(Limits):
    """The action as it would run: names trimmed, the language in lower case, code as its digest.

    `chars` are the characters of the code; times are in seconds.
    """

    id: str
    language: str
    entrypoint: str
    code_sha256: Sha256
    code_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    chars: int
    max_code_chars: int
    exec_timeout_seconds: float
    max_seconds: float
    allowed_languages_policy: tuple[str, ...]
    allowed_languages_execution: tuple[str, ...]


def gather(request: CodeActionRequest, context: GatherContext) -> Gathered:
    """Compute facts of the action and the hints, without their content."""
    facts = action_facts(request.action)
    repeated = context.lookups.echoed_fields.get(request.contract or "", ())
    return Gathered(
        CodeActionInput(
            action=facts,
            hints=hint_facts(request.policy_hints),
            elapsed_ms=request.elapsed_ms,
            task=stated(request.task),
            contract=stated(request.contract),
            echoed=echoed_facts(request.request, repeated),
        ),
        f"code action, {facts.code.chars} characters",
        state=attempts_of(request),
    )


def attempts_of(request: ActionRequest) -> Callable[[Store, Caller], FactsFromState] | None:
    """Looks up what the caller has tried for the task before; None without a task."""
    return None if request.task is None else partial(_attempts, request.task, request.attempt)


def _attempts(task: str, attempt: str | None, store: Store, caller: Caller) -> FactsFromState:
    rows = store.attempts(caller.principal or "", task, attempt, EARLIER)
    return {"attempts": [{"id": row.id, "code_sha256": row.code_sha256, "state": row.state} for row in rows]}


POINT = Point("code_action", CodeActionRequest, CodeActionInput, CodeActionLimits, gather, secret=True)

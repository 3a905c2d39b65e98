"""Point `code_action`: whether a proposed code action is valid, and within what limits it would run.

The first of the checks of a code run: nothing is scanned and nothing runs here. Rows C02 to C16, C44, C72,
C77, C78, H19.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from engine.facts.code.actions import ActionFacts, HintFacts, action_facts, hint_facts
from engine.model import Limits, Model, Sha256
from engine.points import GatherContext, Gathered, Point

Milliseconds = Annotated[int, Field(ge=0)]


class CodeActionRequest(Model):
    """A proposed action and its hints, both unchanged, and the milliseconds since the run began."""

    action: Any = None
    policy_hints: Any = None
    elapsed_ms: Milliseconds


class CodeActionInput(Model):
    """What OPA sees: no code and no payload, but their sizes and digests."""

    action: ActionFacts
    hints: HintFacts
    elapsed_ms: int


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


def gather(request: CodeActionRequest, _: GatherContext) -> Gathered:
    """Compute facts of the action and the hints, without their content."""
    facts = action_facts(request.action)
    return Gathered(
        CodeActionInput(
            action=facts,
            hints=hint_facts(request.policy_hints),
            elapsed_ms=request.elapsed_ms,
        ),
        f"code action, {facts.code.chars} characters",
    )


POINT = Point("code_action", CodeActionRequest, CodeActionInput, CodeActionLimits, gather, secret=True)

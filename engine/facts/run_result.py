"""The result of a run on an agent runner: its closed wire model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from engine.facts.run_request import MOST_MESSAGES, Message, Text
from engine.model import ABSENT, Decision, Model


class AgentOutputs(Model):
    """What an agent returned, by the way it was asked: `invoke` is its answer, `messages` what it added to the talk."""

    invoke: Text
    messages: Annotated[tuple[Message, ...], Field(max_length=MOST_MESSAGES)] = ()


class Usage(Model):
    """Tokens that the harness reports for the run."""

    input_tokens: Annotated[int, Field(ge=0, le=1 << 40)] = 0
    output_tokens: Annotated[int, Field(ge=0, le=1 << 40)] = 0


class WireRunResult(Model):
    """The result of one run: outputs if `ok`, else the error, with the decision if that was the reason."""

    ok: bool
    run_id: str = ABSENT
    outputs: AgentOutputs | None = ABSENT
    usage: Usage | None = ABSENT
    error: str | None = ABSENT
    decision: Decision | None = ABSENT

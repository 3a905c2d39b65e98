"""policy/subagents.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.tools import ToolName

Seconds = Annotated[StrictInt, Field(ge=1, le=604_800)]


class Operation(Model):
    """One thing that a conversation may do with a subagent."""

    tool: ToolName = Field(description="The tool by which it is called; tool policies and profiles name it.")
    timeout_seconds: Seconds = Field(description="How long it may take; a request may ask for less.")


class Subagents(Model):
    """policy/subagents.yaml: what conversations may do with subagents, for how long, and how much they get to see."""

    operations: Mapping[Literal["spawn", "run", "poll", "cancel", "kill"], Operation] = Field(
        description="What there is. No row: refused."
    )
    lifetime_seconds: Seconds = Field(description="How long a subagent may live; it is ended then, whatever it does.")
    turns: Annotated[StrictInt, Field(ge=1, le=50)] = Field(
        description="The most turns of a transcript that are given at once; a request may ask for fewer."
    )
    line_bytes: Annotated[StrictInt, Field(ge=1, le=65_536)] = Field(
        description="Bytes of each line of a transcript; what is longer is cut, it is a preview."
    )

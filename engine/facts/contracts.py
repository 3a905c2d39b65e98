"""What is asked about tools that are not there yet: a proposed contract, or a tool to be registered."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from engine.facts.proposals import CHARACTERS
from engine.model import Digest, Model, Object

ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Effects = Annotated[tuple[Word, ...], Field(max_length=16)]


class Contract(Model):
    """What a tool would be. Any other field may stand beside these; all of it is looked through."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"maxProperties": 10_000})

    name: ToolName
    description: Annotated[str, Field(max_length=CHARACTERS)]
    input_schema: Object | None = None
    side_effects: Effects = ()
    environment: Word | None = None


class Proposal(Model):
    """A contract that `role` proposes."""

    role: Word
    contract: Contract


class Implementation(Model):
    """What would run: whether it is code of this machine, and the digest of its source file."""

    local: bool
    digest: Digest


class Candidate(Model):
    """A tool to be registered: its definition in any shape, and what it is, does and runs in."""

    definition: Object
    implementation: Implementation
    environment: Word
    side_effects: Effects


class ToolContractRequest(Model):
    """Ask about exactly one: a proposal, or a tool."""

    proposal: Proposal | None = None
    tool: Candidate | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.proposal is None) == (self.tool is None):
            raise ValueError("state exactly one of `proposal` and `tool`")
        return self

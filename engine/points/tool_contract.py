"""Point `tool_contract`: whether a proposed contract is accepted, and whether a tool may enter the active registry.

A proposal describes and delivers nothing that can run; accepted, it is still only a proposal. A tool is admitted by
what its definition, its implementation, its effects and its environment are, each compared with policy/tools.yaml.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from engine.documents.canonical import canonical, digest
from engine.facts.text.proposal_text import What
from engine.facts.tools.definitions import Definition, UnreadableDefinitionError, definition_of
from engine.facts.tools.proposals import CHARACTERS, WHATS, Hit, proposal_facts
from engine.facts.tools.schemas import schema_valid
from engine.model import TOOL_NAME, Digest, Limits, Model, Object, ToolName, Word
from engine.points import GatherContext, Gathered, Point

Effects = Annotated[tuple[Word, ...], Field(max_length=16)]


class Contract(Model):
    """A proposed tool. Other fields are allowed; all of them are searched."""

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
    """Require exactly one: a proposal, or a tool."""

    proposal: Proposal | None = None
    tool: Candidate | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.proposal is None) == (self.tool is None):
            raise ValueError("state exactly one of `proposal` and `tool`")
        return self


class ProposalFacts(Model):
    """Who proposes. `complete`: the contract was small enough to be looked through to its end."""

    id: str
    role: str
    complete: bool
    content: Digest


class DefinitionFacts(Model):
    """The definition. `arguments`: their names, sorted, of a valid schema of an object. `content`: as it was sent."""

    digest: Digest
    content: Digest
    arguments: tuple[str, ...] | None = None


class ToolFacts(Model):
    """The tool; it has a name and a definition only where they can be read as one of a tool."""

    id: str
    name: str | None = None
    definition: DefinitionFacts | None = None
    implementation: Implementation
    environment: str
    side_effects: tuple[str, ...]


class ToolContractInput(Model):
    """What OPA sees: one proposal or one tool, and what detectors saw in a proposal, by kind."""

    kind: Literal["proposal", "tool"]
    proposals: tuple[ProposalFacts, ...]
    detected: dict[What, tuple[Hit, ...]]
    tools: tuple[ToolFacts, ...]


class ToolContractLimits(Limits):
    """What was accepted. With `registers`, exactly this tool enters the registry; without, nothing does.

    `definition` is the digest of the definition as it was sent, `implementation` the one of its source file.
    """

    registers: bool
    name: str | None = None
    definition: Digest | None = None
    implementation: Digest | None = None
    side_effects: tuple[str, ...] | None = None
    environment: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        stated = {value is not None for name, value in self if name != "registers"}
        if stated != {self.registers}:
            raise ValueError("a tool has all of its limits, a proposal has none")
        return self


def gather(request: ToolContractRequest, _: GatherContext) -> Gathered:
    """Look a proposal through, or bring a tool's definition into its one form."""
    title = ""
    detected: dict[What, tuple[Hit, ...]] = dict.fromkeys(WHATS, ())
    proposals: tuple[ProposalFacts, ...] = ()
    tools: tuple[ToolFacts, ...] = ()
    if request.proposal is not None:
        proposal, detected = _proposal(request.proposal)
        proposals, title = (proposal,), f"proposal of `{proposal.id}`"
    if request.tool is not None:
        tool = _tool(request.tool)
        tools, title = (tool,), f"registration of `{tool.name or 'a tool without a name'}`"
    made = ToolContractInput(
        kind="tool" if tools else "proposal",
        proposals=proposals,
        detected=detected,
        tools=tools,
    )
    return Gathered(made, title)


def _proposal(proposal: Proposal) -> tuple[ProposalFacts, dict[What, tuple[Hit, ...]]]:
    contract = proposal.contract.model_dump(mode="json", exclude_unset=True)
    seen = proposal_facts(contract)
    facts = ProposalFacts(
        id=proposal.contract.name, role=proposal.role, complete=seen.complete, content=digest(canonical(contract))
    )
    return facts, {what: tuple(hits) for what, hits in seen.hits.items()}


def _tool(tool: Candidate) -> ToolFacts:
    try:
        found: Definition | None = definition_of(tool.definition)
    except UnreadableDefinitionError:
        found = None
    name = found.name if found is not None and TOOL_NAME.fullmatch(found.name) else None
    return ToolFacts(
        id=name or "#0",
        name=name,
        definition=None if found is None else _definition(found, tool.definition),
        implementation=tool.implementation,
        environment=tool.environment,
        side_effects=tool.side_effects,
    )


def _definition(found: Definition, sent: dict[str, Any]) -> DefinitionFacts:
    schema = found.input_schema or {}
    properties = schema.get("properties", {})
    readable = schema_valid(found.input_schema) and schema.get("type") == "object"
    return DefinitionFacts(
        digest=found.digest(),
        content=content_digest(sent),
        arguments=tuple(sorted(properties)) if readable else None,
    )


def content_digest(sent: dict[str, Any]) -> str:
    """The digest of JSON as it was sent, as a registrant without this engine's encoder computes it."""
    text = json.dumps(sent, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return digest(text.encode("utf-8"))


POINT = Point("tool_contract", ToolContractRequest, ToolContractInput, ToolContractLimits, gather)

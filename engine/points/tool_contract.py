"""Point `tool_contract`: whether a proposed contract is accepted, and whether a tool may enter the active registry.

A proposal describes and delivers nothing that can run; accepted, it is still only a proposal. A tool is admitted by
what its definition, its implementation, its effects and its environment are, each compared with policy/tools.yaml.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, Self

from pydantic import model_validator

from engine.canonical import canonical, digest
from engine.facts.contracts import Candidate, Implementation, Proposal, ToolContractRequest
from engine.facts.proposal_text import Form, What
from engine.facts.proposals import WHATS, proposal_facts
from engine.facts.schemas import schema_valid
from engine.facts.tool_definitions import Definition, UnreadableDefinitionError, definition_of
from engine.model import Digest, Limits, Model
from engine.points import Gathered, Input, Point, World

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ProposalFacts(Model):
    """Who proposes. `complete`: the contract was small enough to be looked through to its end."""

    id: str
    role: str
    complete: bool
    content: Digest


class HitFacts(Model):
    """Where something was seen that could be run, and in which form."""

    id: str
    form: Form


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


class ToolContractInput(Input):
    """What OPA sees: one proposal or one tool, and what detectors saw in a proposal, by kind."""

    kind: Literal["proposal", "tool"]
    proposals: tuple[ProposalFacts, ...]
    hits: dict[What, tuple[HitFacts, ...]]
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


def gather(request: ToolContractRequest, world: World) -> Gathered:
    """Look a proposal through, or bring a tool's definition into its one form."""
    title = ""
    hits: dict[What, tuple[HitFacts, ...]] = dict.fromkeys(WHATS, ())
    proposals: tuple[ProposalFacts, ...] = ()
    tools: tuple[ToolFacts, ...] = ()
    if request.proposal is not None:
        proposal, hits = _proposal(request.proposal)
        proposals, title = (proposal,), f"proposal of `{proposal.id}`"
    if request.tool is not None:
        tool = _tool(request.tool)
        tools, title = (tool,), f"registration of `{tool.name or 'a tool without a name'}`"
    made = ToolContractInput(
        point="tool_contract",
        now=world.clock(),
        kind="tool" if tools else "proposal",
        proposals=proposals,
        hits=hits,
        tools=tools,
    )
    return Gathered(made, title)


def _proposal(proposal: Proposal) -> tuple[ProposalFacts, dict[What, tuple[HitFacts, ...]]]:
    contract = proposal.contract.model_dump(mode="json", exclude_unset=True)
    seen = proposal_facts(contract)
    facts = ProposalFacts(
        id=proposal.contract.name, role=proposal.role, complete=seen.complete, content=digest(canonical(contract))
    )
    return facts, {what: tuple(HitFacts(id=hit.id, form=hit.form) for hit in hits) for what, hits in seen.hits.items()}


def _tool(tool: Candidate) -> ToolFacts:
    try:
        found: Definition | None = definition_of(tool.definition)
    except UnreadableDefinitionError:
        found = None
    name = found.name if found is not None and _NAME.fullmatch(found.name) else None
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
    """The digest of JSON as it was sent, as whoever registers the tool makes it without this engine's encoder."""
    text = json.dumps(sent, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return digest(text.encode("utf-8"))


POINT = Point("tool_contract", ToolContractRequest, ToolContractInput, ToolContractLimits, gather)

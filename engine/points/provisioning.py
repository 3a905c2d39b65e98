"""Point `provisioning`: whether a new agent may be created, as a NewAgentProvisioning describes it.

    {"name": "buyer_2", "role": "Actor", "system_prompt": "…", "tools": ["http_get"],
     "constraints": {"max_turns": 20, "max_tokens": 20000}}

The text is read as strict JSON and nothing in it is ever evaluated. A text that is none, or that does not fit, is
refused with a code of its own, so that the attempt is in the record. Rows E07, E13, E16 to E19, E23, E34.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from engine.documents.canonical import canonical, digest
from engine.documents.files import printable
from engine.documents.strict_json import (
    MAX_SAFE_INTEGER,
    AmbiguousJsonError,
    NotJsonError,
    RepeatedKeyError,
    read_strict,
)
from engine.documents.validation import message
from engine.facts.proposals import Name
from engine.facts.text.hidden import is_blank
from engine.model import Caller, Digest, Limits, Model, Named
from engine.points import FactsFromState, GatherContext, Gathered, Point
from engine.points.episode import agent_facts

if TYPE_CHECKING:
    from engine.state.store import Store

_LEVELS = 4
_MOST_PROBLEMS = 20
_PROBLEMS = {"extra_forbidden": "unknown", "missing": "missing"}
"""What pydantic's errors are called; any other one is a wrong type or form."""


def _seen(text: str) -> str:
    if is_blank(text):
        raise ValueError("must not be blank")
    return text


class Constraints(Model):
    """What the agent may use of each episode."""

    max_turns: Annotated[int, Field(ge=1, le=1 << 40)]
    max_tokens: Annotated[int, Field(ge=1, le=1 << 40)]


class NewAgentProvisioning(Model):
    """The specification of a new agent; all fields are required."""

    name: Name
    role: Name
    system_prompt: Annotated[str, Field(min_length=1), AfterValidator(_seen)]
    tools: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], Field(strict=False, max_length=256)
    ]
    constraints: Constraints


class ProvisioningRequest(Model):
    """A new agent. `specification` is the text as it was written, the JSON of a NewAgentProvisioning."""

    specification: Annotated[str, Field(max_length=1 << 18)]


class ProblemFacts(Model):
    """A field that does not fit the schema of a NewAgentProvisioning; `repeated`: the key is there twice."""

    id: str
    problem: Literal["unknown", "repeated", "type", "missing"]


class SpecificationFacts(Model):
    """A specification that fits the schema."""

    name: str
    role: str
    system_prompt: str
    prompt_bytes: int
    constraints: Constraints


class ProvisioningInput(Model):
    """What OPA sees. Without problems there is a `specification`; `digest` is its digest, else that of the text."""

    digest: Digest
    readable: bool
    problems: tuple[ProblemFacts, ...]
    specification: SpecificationFacts | None = None
    tools: tuple[Named, ...]


class ProvisioningLimits(Limits):
    """Exactly this specification may be mounted, unless `max_agents` agents are active."""

    specification: Digest
    max_agents: Annotated[int, Field(ge=1)]


def gather(request: ProvisioningRequest, _: GatherContext) -> Gathered:
    """Read the specification as JSON."""
    readable, problems, found, notes = True, list[ProblemFacts](), None, dict[str, str]()
    try:
        value = read_strict(request.specification, levels=_LEVELS, largest=MAX_SAFE_INTEGER)
        readable = isinstance(value, dict)
        if readable:
            found = NewAgentProvisioning.model_validate_json(canonical(value))
    except RepeatedKeyError as error:
        problems = [ProblemFacts(id=printable(error.place()[0], 100), problem="repeated")]
    except ValidationError as error:
        problems, notes = _problems(error)
    except NotJsonError:
        readable = False
    except AmbiguousJsonError as error:
        readable, notes = False, {"": f"the text {error.problem}: {error.remedy}"}
    content = request.specification.encode("utf-8") if found is None else canonical(found.model_dump(mode="json"))
    facts = ProvisioningInput(
        digest=digest(content),
        readable=readable,
        problems=tuple(problems),
        specification=None if found is None else _facts(found),
        tools=() if found is None else tuple(Named(id=name) for name in found.tools),
    )
    name = "an agent" if found is None else f"agent {found.name}"
    return Gathered(facts, f"provisioning of {name}", opened=found, notes=notes, state=_active)


def _problems(error: ValidationError) -> tuple[list[ProblemFacts], dict[str, str]]:
    """The problems, and of each what the key must be."""
    problems = error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
    ids = [printable(".".join(map(str, one["loc"])), 100) for one in problems]
    facts = [
        ProblemFacts.model_validate({"id": id_, "problem": _PROBLEMS.get(one["type"], "type")})
        for id_, one in zip(ids, problems, strict=True)
    ]
    messages = (message(one, NewAgentProvisioning) for one in problems)
    return facts, {f"problems/{id_}": text for id_, text in zip(ids, messages, strict=True)}


def _facts(found: NewAgentProvisioning) -> SpecificationFacts:
    return SpecificationFacts(
        name=found.name,
        role=found.role,
        system_prompt=found.system_prompt,
        prompt_bytes=len(found.system_prompt.encode("utf-8")),
        constraints=found.constraints,
    )


def _active(store: Store, _: Caller) -> FactsFromState:
    """Every active agent."""
    return {"agents": [agent_facts(row) for row in store.active_agents()]}


POINT = Point("provisioning", ProvisioningRequest, ProvisioningInput, ProvisioningLimits, gather)

"""Facts about an ActionProposal: the reply of an actor that may change the state of an episode.

    {"propose_resolution": false, "abort_episode": false, "justification": "…", "dialogue": "…", "monologue": "…",
     "changes": {"Agent_A_Concessions": {"price": 90}}}

Only `propose_resolution` is required. The text is read as strict JSON and never evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.documents.files import printable
from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict
from engine.model import Model

TEXT_CHARACTERS = 1_000
"""Maximum length of a text value of a parameter."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
Scalar = bool | int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=TEXT_CHARACTERS)]
Values = Annotated[dict[Name, Scalar], Field(max_length=1_000)]

PROPOSAL_LEVELS = 4
MOST_PROBLEMS = 20

_FIELDS: Mapping[str, type] = {
    "propose_resolution": bool,
    "abort_episode": bool,
    "justification": str,
    "dialogue": str,
    "monologue": str,
    "changes": dict,
}


class StateGroup(Model):
    """Parameters of the state with their values; only the owner may change them."""

    id: Name
    owner: Name
    values: Values


class ProblemFacts(Model):
    """A field that does not fit the schema of an ActionProposal."""

    id: str
    problem: Literal["unknown", "type", "missing"]


class ChangeFacts(Model):
    """A parameter `group.parameter`, its owner and its new value, of the same type as before."""

    id: str
    group: str
    parameter: str
    owner: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was read of a reply; `readable` if it is a JSON object."""

    readable: bool
    fields: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[ChangeFacts, ...] = ()
    problems: tuple[ProblemFacts, ...] = ()

    def text(self, name: str) -> str:
        """A text field; empty if it is missing or no text."""
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


def read_proposal(text: str, state: Iterable[StateGroup] = ()) -> Proposal:
    """Read a reply as an ActionProposal on this state. Never raises."""
    try:
        value = read_strict(text, levels=PROPOSAL_LEVELS, largest=MAX_SAFE_INTEGER)
    except (NotJsonError, AmbiguousJsonError):
        return Proposal(readable=False)
    if not isinstance(value, dict):
        return Proposal(readable=False)
    problems = [_problem(name, "unknown") for name in value if name not in _FIELDS]
    problems += [_problem(name, "type") for name, kind in _FIELDS.items() if type(value.get(name, kind())) is not kind]
    problems += [_problem("propose_resolution", "missing")] if "propose_resolution" not in value else []
    changes, wrong = _changes(value.get("changes"), {group.id: group for group in state})
    return Proposal(
        readable=True, fields=value, changes=tuple(changes), problems=tuple((problems + wrong)[:MOST_PROBLEMS])
    )


def _changes(stated: Any, state: Mapping[str, StateGroup]) -> tuple[list[ChangeFacts], list[ProblemFacts]]:
    """The changes of declared parameters, and what else is stated as one."""
    changes: list[ChangeFacts] = []
    problems: list[ProblemFacts] = []
    for group, values in stated.items() if isinstance(stated, dict) else ():
        known = state.get(group)
        if known is None or not isinstance(values, dict):
            problems.append(_problem(f"changes.{group}", "unknown" if known is None else "type"))
            continue
        for parameter, value in values.items():
            name = f"{group}.{parameter}"
            if parameter not in known.values:
                problems.append(_problem(f"changes.{name}", "unknown"))
            elif not _fits(known.values[parameter], value):
                problems.append(_problem(f"changes.{name}", "type"))
            else:
                changes.append(ChangeFacts(id=name, group=group, parameter=parameter, owner=known.owner, value=value))
    return changes, problems


def _fits(declared: Scalar, value: Any) -> bool:
    if isinstance(declared, bool) or isinstance(value, bool):
        return type(declared) is type(value)
    if isinstance(declared, str):
        return isinstance(value, str) and len(value) <= TEXT_CHARACTERS
    return isinstance(value, int | float)


def _problem(name: str, problem: Literal["unknown", "type", "missing"]) -> ProblemFacts:
    return ProblemFacts(id=printable(name, 100), problem=problem)

"""Facts about an ActionProposal: the reply of an actor that may change the state of an episode.

    {"propose_resolution": false, "abort_episode": false, "justification": "…", "dialogue": "…", "monologue": "…",
     "changes": {"Agent_A_Concessions": {"price": 90}}}

Only `propose_resolution` is required. The text is read as strict JSON and never evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.documents.files import printable
from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict

Scalar = bool | int | float | str
State = Mapping[str, Mapping[str, Scalar]]
"""The parameters of an episode by group."""

PROPOSAL_LEVELS = 4
TEXT_CHARACTERS = 1_000
"""Maximum length of a text value of a parameter."""

MOST_PROBLEMS = 20

_FIELDS: Mapping[str, type] = {
    "propose_resolution": bool,
    "abort_episode": bool,
    "justification": str,
    "dialogue": str,
    "monologue": str,
    "changes": dict,
}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A field of a proposal that does not fit the schema."""

    id: str
    problem: Literal["unknown", "type", "missing"]


@dataclass(frozen=True, slots=True)
class Change:
    """A declared parameter and its new value, of the same type."""

    group: str
    parameter: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was read of a reply; `readable` if it is a JSON object."""

    readable: bool
    fields: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    problems: tuple[FieldProblem, ...] = ()

    def text(self, name: str) -> str:
        """A text field; empty if it is missing or no text."""
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


def read_proposal(text: str, state: State) -> Proposal:
    """Read a reply as an ActionProposal on this state. Never raises."""
    try:
        value = read_strict(text, levels=PROPOSAL_LEVELS, largest=MAX_SAFE_INTEGER)
    except (NotJsonError, AmbiguousJsonError):
        return Proposal(readable=False)
    if not isinstance(value, dict):
        return Proposal(readable=False)
    problems = [FieldProblem(_shown(name), "unknown") for name in value if name not in _FIELDS]
    problems += [
        FieldProblem(name, "type") for name, kind in _FIELDS.items() if name in value and type(value[name]) is not kind
    ]
    problems += [FieldProblem("propose_resolution", "missing")] if "propose_resolution" not in value else []
    changes, wrong = _changes(value.get("changes"), state)
    return Proposal(
        readable=True, fields=value, changes=tuple(changes), problems=tuple((problems + wrong)[:MOST_PROBLEMS])
    )


def _changes(stated: Any, state: State) -> tuple[list[Change], list[FieldProblem]]:
    """The changes of declared parameters, and what else is stated as one."""
    changes: list[Change] = []
    problems: list[FieldProblem] = []
    for group, values in stated.items() if isinstance(stated, dict) else ():
        if not isinstance(values, dict):
            problems.append(FieldProblem(_shown(f"changes.{group}"), "type"))
            continue
        for parameter, value in values.items():
            declared = state.get(group, {}).get(parameter)
            if declared is None:
                problems.append(FieldProblem(_shown(f"changes.{group}.{parameter}"), "unknown"))
            elif not _fits(declared, value):
                problems.append(FieldProblem(_shown(f"changes.{group}.{parameter}"), "type"))
            else:
                changes.append(Change(group, parameter, value))
    return changes, problems


def _fits(declared: Scalar, value: Any) -> bool:
    if isinstance(declared, bool) or isinstance(value, bool):
        return type(declared) is type(value)
    if isinstance(declared, str):
        return isinstance(value, str) and len(value) <= TEXT_CHARACTERS
    return isinstance(value, int | float)


def _shown(name: str) -> str:
    return printable(name, 100)

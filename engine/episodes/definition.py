"""The file of an episode: its ceilings, its state and its actors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from engine.documents.canonical import canonical, digest
from engine.documents.files import load, printable, read_bytes
from engine.documents.validation import validate
from engine.facts.proposals import Name, Values
from engine.model import Model
from engine.points.episode import AgentId, Ceilings, Positive
from engine.settings import ReadLimits

_MOST = 1 << 40
"""A ceiling that the file does not state: the policy has a lower one."""

_NO_USAGE = {"tokens": 0, "spend_micros": 0}


class EpisodeCeilings(Ceilings):
    """What the episode may use. The policy has ceilings for all of these; the lower one applies."""

    max_steps: Positive = _MOST
    max_spend_micros: Positive = _MOST
    forced_concession_threshold: Positive = _MOST
    retries: Annotated[int, Field(ge=0, le=_MOST)] = _MOST


class Line(Model):
    """A scripted reply: a text, or a proposal that is written as JSON. Without `usage`, none was used."""

    text: Annotated[str, Field(max_length=1 << 20)] | None = None
    proposal: dict[str, Any] | None = None
    usage: Any = Field(default_factory=_NO_USAGE.copy)

    def reply(self) -> str:
        """The text of the reply."""
        return json.dumps(self.proposal) if self.text is None else self.text

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.text is None) == (self.proposal is None):
            raise ValueError("state `text` or `proposal`")
        return self


class ModelActor(Model):
    """The remote model as an actor: its name, its system prompt, and the maximum number of tokens of one reply."""

    name: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,128}$")]
    instructions: Annotated[str, Field(min_length=1, max_length=1 << 16)]
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 1_024


class ActorDefinition(Model):
    """An actor: a script, or the remote model. Without either, the program that runs the episode passes it.

    `agent`: the id of the provisioned agent that it is. `rounds`: those in which it has a turn (default: all).
    `recipient`: for whom its hints are. A script goes on with its last line.
    """

    id: Name
    role: Name
    agent: AgentId | None = None
    rounds: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, min_length=1)] | None = None
    recipient: Name | None = None
    script: Annotated[tuple[Line, ...], Field(strict=False, min_length=1)] | None = None
    model: ModelActor | None = None

    @model_validator(mode="after")
    def _one_at_most(self) -> Self:
        if self.script is not None and self.model is not None:
            raise ValueError("state `script` or `model`, not both")
        return self


class Group(Model):
    """Parameters of the state and their owner."""

    owner: Name
    values: Values


class EpisodeDefinition(Model):
    """An episode, format 1. With `parallel`, the actors of a round reply at the same time."""

    format: Literal[1]
    ceilings: EpisodeCeilings
    state: dict[Name, Group]
    actors: Annotated[tuple[ActorDefinition, ...], Field(strict=False, min_length=1)]
    parallel: bool = False

    @property
    def digest(self) -> str:
        """Identifies the definition."""
        return digest(canonical(self.model_dump(mode="json")))

    @model_validator(mode="after")
    def _goes_on(self) -> Self:
        if all(actor.rounds is not None for actor in self.actors):
            raise ValueError("at least one actor needs a turn in every round")
        return self


def read_definition(path: Path, limits: ReadLimits) -> EpisodeDefinition:
    """Read the file of an episode. Raises GatherError."""
    name = printable(path.name)
    document = load(read_bytes(path, limits.document_bytes), name, limits)
    return definition_of(document.value, name, limits)


def definition_of(value: Any, name: str, limits: ReadLimits) -> EpisodeDefinition:
    """An episode from plain JSON. Raises GatherError."""
    remedy = "docs/episodes.md describes the file"
    return validate(EpisodeDefinition, canonical(value), f"episode `{name}`", remedy, limits)

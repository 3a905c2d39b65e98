"""policy/episodes.yaml: what episodes may use, what their transcripts may contain, and how they are scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints
from pydantic_core import InitErrorDetails

from engine.model import Model
from engine.values.fields import Checked, Items, Word, unknown

Positive = Annotated[StrictInt, Field(ge=1, le=1 << 40)]
Calls = Annotated[StrictInt, Field(ge=1, le=5_000)]
"""Every request of an episode states all calls before it."""

Score = Annotated[StrictInt, Field(ge=-1_000, le=1_000)]
Role = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class EpisodeCeilings(Model):
    """What one episode may use. The lower of these and its own ceilings apply."""

    max_episode_tokens: Positive = Field(
        description="Maximum number of tokens of all calls, those of rejected replies included. More end the episode."
    )
    max_turns: Calls = Field(description="Maximum number of turns of all actors together.")
    max_steps: Calls = Field(description="Maximum number of calls of actors, retries included.")
    max_spend_micros: Positive = Field(
        description="Maximum spend of all calls, in millionths of the currency that the provider bills."
    )
    forced_concession_threshold: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Number of penalties of one actor that end the episode as corrupted."
    )
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = Field(
        description="Maximum number of further calls in a turn after a rejected reply."
    )


class CallLimits(Model):
    """One call of an actor."""

    tokens: Positive = Field(description="Tokens reserved for a call while it runs.")
    milliseconds: Annotated[StrictInt, Field(ge=1, le=3_600_000)] = Field(
        description="Maximum duration of a call, in milliseconds. A later reply is dropped."
    )
    reply_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 24)] = Field(
        description="Maximum size of a reply, in bytes. A larger one is rejected."
    )


class UsageEstimate(Model):
    """What a call counts if its usage is missing or invalid."""

    tokens: Positive = Field(description="Minimum number of tokens; each byte sent or received counts as one, too.")
    spend_micros: Positive = Field(description="Spend, in millionths of the currency.")


class EpisodeScores(Model):
    """Judge score of each proposing actor, by the reason for which the episode ended."""

    completed: Score = Field(description="All proposing actors agreed.")
    aborted: Score = Field(description="An actor aborted with a justification.")
    timeout: Score = Field(description="No agreement within the maximum number of turns.")
    step_limit_exceeded: Score = Field(description="The calls were used up.")
    spend_limit_exceeded: Score = Field(description="The spend was exceeded.")
    CostLimitExceededError: Score = Field(description="The tokens were exceeded.")
    EpisodeCorruptedError: Score = Field(description="An actor reached the maximum number of penalties.")


class EpisodeRole(Model):
    """What actors of one role reply, and which entries of the transcript they may have."""

    replies: Literal["proposal", "text"] = Field(description="Form of a reply: an ActionProposal as JSON, or text.")
    entry: Word = Field(description="Kind of transcript entry that a reply, or the dialogue of a proposal, becomes.")
    aside: Word = Field(description="Kind of transcript entry that the monologue of a proposal becomes.")
    entries: Items[Word] = Field(description="Kinds of transcript entries that the role may have.")


class Episodes(Checked):
    """policy/episodes.yaml: what episodes may use, what their transcripts may contain, and how they are scored."""

    ceilings: EpisodeCeilings = Field(description="What one episode may use.")
    max_agents: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Maximum number of actors of one episode. An episode with more does not start."
    )
    call: CallLimits = Field(description="What one call of an actor may use.")
    estimate: UsageEstimate = Field(description="Tokens and spend that a call without valid usage counts as.")
    penalties_reset: Literal["clean_turn", "never"] = Field(
        description="When the penalties of an actor go back to zero: after its turn without a rejected reply, or never."
    )
    scores: EpisodeScores = Field(description="Judge scores by the reason for which the episode ended.")
    roles: Mapping[Role, EpisodeRole] = Field(
        description="Roles of actors; `external` is text from outside. An actor of another role is refused."
    )
    entries: Mapping[Word, Literal["all", "author", "recipient"]] = Field(
        description="Kinds of transcript entries, and who reads them besides the author."
    )
    entry_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 24)] = Field(
        description="Maximum size of one transcript entry, in bytes."
    )
    quoted_words: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Number of words in a row of another actor's monologue that mark an entry for review."
    )

    def _mistakes(self) -> Iterable[InitErrorDetails]:
        for name, role in self.roles.items():
            path = ("roles", name)
            yield from unknown("kind of entry of the role", role.entry, role.entries, (*path, "entry"))
            yield from unknown("kind of entry of the role", role.aside, role.entries, (*path, "aside"))
            for index, kind in enumerate(role.entries):
                yield from unknown("kind of entry", kind, self.entries, (*path, "entries", index))

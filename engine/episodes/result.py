"""What became of an episode, and the errors by which one can end.

WorkError
└── EpisodeError
    ├── CostLimitExceededError   the tokens were exceeded
    ├── EpisodeCorruptedError    an actor has its maximum of penalties, or something is lost
    ├── EpisodeLimitError        the steps or the spend were exceeded
    ├── MaxAgentsExceededError   too many actors; the episode did not start
    ├── ProposalParseError       a reply is not one JSON object
    └── ProposalSchemaError      a reply does not fit the schema of an ActionProposal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineError, Exit, WorkError
from engine.model import Finding


class EpisodeError(WorkError):
    """An episode, or a reply in it, that did not end well."""

    exit = Exit.DENY


class CostLimitExceededError(EpisodeError):
    """The tokens of an episode were exceeded."""

    code = "CostLimitExceededError"


class EpisodeCorruptedError(EpisodeError):
    """An actor has reached the maximum number of penalties, or something of the episode is lost."""

    code = "EpisodeCorruptedError"


class MaxAgentsExceededError(EpisodeError):
    """There are too many actors."""

    code = "MaxAgentsExceededError"


class ProposalSchemaError(EpisodeError):
    """A proposal does not fit the schema of an ActionProposal."""

    code = "proposal_schema_invalid"


class ProposalParseError(EpisodeError):
    """A proposal is not one JSON object."""

    code = "proposal_not_json"


class EpisodeLimitError(EpisodeError):
    """The steps or the spend of an episode were exceeded."""

    code = "step_limit_exceeded"


class SpendLimitError(EpisodeLimitError):
    """The spend of an episode was exceeded."""

    code = "spend_limit_exceeded"


ERRORS: Mapping[str, type[EpisodeError]] = {
    error.code: error
    for error in (
        CostLimitExceededError,
        EpisodeCorruptedError,
        EpisodeLimitError,
        MaxAgentsExceededError,
        ProposalParseError,
        ProposalSchemaError,
        SpendLimitError,
    )
}
"""The errors by code; the reasons for which an episode ends are among the codes."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A reply that was rejected; its payload was dropped."""

    turn: int
    attempt: int
    actor: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """Why an episode ended, as it was decided: scores and penalties by actor, entries that a person must review."""

    reason: str
    scores: Mapping[str, int]
    tokens: int
    spend_micros: int
    penalties: Mapping[str, int]
    review: tuple[int, ...]

    @classmethod
    def of(cls, end: Mapping[str, Any]) -> Ended:
        """The end in the limits of a decision."""
        return cls(**{**end, "review": tuple(end["review"])})


@dataclass(frozen=True, slots=True)
class Episode:
    """One run of an episode. `end` is None if it was stopped by `fault`, or did not start.

    `transcript` has every entry as it was decided on, with its text, numbered from 0.
    """

    id: str
    end: Ended | None
    state: Mapping[str, Mapping[str, Any]]
    transcript: tuple[Mapping[str, Any], ...]
    turns: int
    rejections: tuple[Rejection, ...] = ()
    concessions: Mapping[str, int] = field(default_factory=dict)
    fault: EngineError | None = None

    @property
    def error(self) -> EngineError | None:
        """The error by which the episode ended; None if it ended well, by timeout, or was aborted."""
        if self.end is None:
            return self.fault
        found = ERRORS.get(self.end.reason)
        return None if found is None else found(f"episode `{self.id}` ended: {self.end.reason}", remedy=_REMEDY)

    def raise_for_error(self) -> None:
        """Raise `error`, if there is one."""
        if (error := self.error) is not None:
            raise error

    @property
    def exit(self) -> Exit:
        """The exit code of the run."""
        return Exit.ALLOW if self.error is None else self.error.exit


_REMEDY = "see the rejected replies and what was used; correct the actors, or have a ceiling raised"


def required(finding: Finding) -> str:
    """A finding in one line: its code, its subject, and what must hold."""
    about = "" if finding.subject is None else f" ({finding.subject})"
    return f"{finding.code}{about}: required: {finding.requirement}"

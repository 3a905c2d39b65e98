"""Values that are common to all points: levels, callers, budgets, approvals, and how the engine is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, StrictInt, Tag, ValidationError, model_validator

from engine.model import Model
from engine.values.fields import Day, Items, Text, Word, value_error


class Lowered(Model):
    """A refusal that is lowered for some time, with who answers for it."""

    level: Literal["confirm", "warn"] = Field(description="What the finding does until then.")
    owner: Text = Field(description="Who answers for it, such as compliance@example.org.")
    reason: Text = Field(description="Why it is lowered.")
    until: Day = Field(description="The last day, in UTC, such as 2027-03-31; afterwards it denies again.")


_Row = Annotated[
    Annotated[Literal["deny", "confirm", "warn"], Tag("word")] | Annotated[Lowered, Tag("lowered")],
    Discriminator(lambda row: "word" if isinstance(row, str) else "lowered"),
]


class Levels(Model):
    """policy/levels.yaml: what a finding does to the outcome; a code without a row denies."""

    levels: Mapping[Word, Mapping[Word, _Row]] = Field(
        description="By decision point, then by code. `confirm`: a person must approve; `warn`: only told."
    )


class Callers(Model):
    """policy/callers.yaml: who may ask for decisions, and about which points."""

    unscoped: Items[Literal["process", "loopback", "shared_token", "control"]] = Field(
        description="Ways of asking that need no list of points. A scoped token always carries its own."
    )
    certificates: Mapping[str, Items[Word]] = Field(
        description="Decision points by subject of a client certificate, such as `CN=pipeline,O=Example`."
    )


class Ceiling(Model):
    """How many enforced allows there may be in one window."""

    limit: Annotated[StrictInt, Field(ge=0)] = Field(description="How many may be allowed.")
    window_seconds: Annotated[StrictInt, Field(ge=0)] = Field(
        description="The count begins again after so many seconds, counted from 1970; 0: never."
    )


class Budget(Model):
    """The ceilings of one decision point; a point with one of the three missing allows nothing."""

    principal: Literal["unlimited"] | Ceiling = Field(description="For each principal alone.")
    run: Literal["unlimited"] | Ceiling = Field(description="For each run alone.")
    all: Literal["unlimited"] | Ceiling = Field(description="For all callers together.")


class Budgets(Model):
    """policy/budgets.yaml: how often something may be allowed."""

    budgets: Mapping[Word, Budget] = Field(description="By decision point; a point without a row allows nothing.")
    quotas: Mapping[Word, Mapping[Word, Ceiling]] = Field(
        description="What else a decision point counts, such as a quota for each conversation."
    )


class Approvals(Model):
    """policy/approvals.yaml: how long a person has to approve, the approval holds, and who must differ from whom."""

    unnamed_requesters: Items[Literal["process", "loopback", "shared_token"]] = Field(
        description="Ways of asking without a name whose requests any named approver may grant."
    )

    valid_seconds: Annotated[StrictInt, Field(ge=1, le=2_678_400)] = Field(
        description="Seconds from the request for approval to the moment after which it no longer counts."
    )


class Profile(Model):
    """What a way of running the engine may and must do."""

    payload_detail: bool = Field(description="Whether logs may hold whole payloads; only in a controlled environment.")
    retention_days_min: Annotated[StrictInt, Field(ge=0)] = Field(description="Days that a record must be kept.")
    static_capabilities: bool = Field(description="Whether capabilities that were not probed may be relied on.")
    tool_error_modes: Items[Literal["safe", "debug"]] = Field(
        description="How errors of tools may be told to a model: `safe` by their type alone, `debug` with the message."
    )


class Operations(Model):
    """policy/operations.yaml: how the engine itself is run."""

    profile: Word = Field(description="The profile in force: a name under `profiles`.")
    profiles: Mapping[Word, Profile] = Field(description="The profiles there are.")

    @model_validator(mode="after")
    def _profile_exists(self) -> Operations:
        if self.profile not in self.profiles:
            known = ", ".join(f"`{name}`" for name in self.profiles)
            error = value_error(f"no profile `{self.profile}`: use one of {known}", ("profile",), self.profile)
            raise ValidationError.from_exception_data("Operations", [error])
        return self

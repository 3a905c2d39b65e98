"""The values of waivers: which findings may be waived, and the waivers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Day, Items, Text, Word

Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.:]*$", max_length=200)]
FactPath = Annotated[str, StringConstraints(pattern=r"^[a-z_]+(\.[a-z_]+)*$", max_length=200)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]


class Waivable(Model):
    """How narrow the waivers of one code must be."""

    facts: Annotated[Items[FactPath], Field(min_length=1)] = Field(
        description="Facts in the input of the decision point that each waiver states, such as bundle.digest."
    )
    any: Items[Literal["subject", "principal"]] = Field(description="What a waiver may leave open with the word `any`.")


class Waiver(Model):
    """One waiver: its scope, the people who answer for it, and its days."""

    subject: Text = Field(
        description="Subject of the finding, such as records/contacts-2; `request` for a finding about the whole "
        "request, `any` where that is admitted."
    )
    principal: Text = Field(description="Name of the caller, or `any` where that is admitted.")
    facts: Mapping[FactPath, Text] = Field(description="Facts that the input must have, by path.")
    owner: Text = Field(description="Person or team that asked for it and answers for it.")
    approver: Text = Field(description="Person who approved it; not the owner.")
    reason: Text = Field(description="Reason for the waiver.")
    starts: Day = Field(description="First day in UTC, such as 2026-11-24.")
    until: Day = Field(description="Last day in UTC. From the next day on it does nothing.")


class Waivers(Model):
    """policy/waivers.yaml: findings that stop nothing for a limited time, each marked with the id of its waiver."""

    days_max: Annotated[StrictInt, Field(ge=1, le=366)] = Field(
        description="Length of the longest waiver in days, first and last day included."
    )
    waivable: Mapping[Word, Mapping[Code, Waivable]] = Field(
        description="Codes that may be waived, by decision point. A code without a row cannot be waived."
    )
    waivers: Mapping[Word, Mapping[Code, Mapping[Id, Waiver]]] = Field(
        description="Waivers by decision point, code and id."
    )

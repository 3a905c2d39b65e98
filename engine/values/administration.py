"""policy/administration.yaml: who may take which administrative act, and how long what it gives out holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Items

Act = Literal["grant_approval", "refuse_approval", "issue_token", "revoke_token", "approve_prefix", "revoke_prefix"]
Seconds = Annotated[StrictInt, Field(ge=1, le=3_153_600_000)]


class Administration(Model):
    """policy/administration.yaml: who may take which act, and for how long what it gives out holds."""

    acts: Mapping[Act, Items[Literal["process", "control", "token"]]] = Field(
        description="By act, how its caller may have come in; an act without a row is never taken."
    )
    reason_optional: Items[Act] = Field(description="Acts that may be taken without a reason.")
    token_seconds_max: Seconds = Field(description="The longest time a token may be issued for, in seconds.")
    prefix_seconds_max: Seconds = Field(
        description="The longest time a command prefix may be approved for, in seconds."
    )

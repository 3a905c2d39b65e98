"""What the manifest of an adapter may state: policy/adapters.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Items, SideEffect, Word

Bytes = Annotated[StrictInt, Field(ge=1, le=64 << 20)]
Operation = Annotated[str, StringConstraints(pattern=r"^[a-z]+(/[a-z]+)*$", max_length=64)]


class AdapterSizes(Model):
    """Limits of what is read of an adapter."""

    manifest_bytes: Bytes = Field(description="Maximum size of a manifest as JSON, in bytes. A larger one is refused.")
    envelope_bytes: Bytes = Field(description="Maximum size of an envelope as JSON, in bytes. A larger one is refused.")


class Adapters(Model):
    """policy/adapters.yaml: what the manifest of an adapter may state."""

    may_be_enabled: bool = Field(description="Whether the switch of a program or command may turn adapters on.")
    executions: Items[Literal["in_process"]] = Field(description="Where an adapter may run.")
    operations: Items[Operation] = Field(description="Operations that a manifest may list.")
    side_effect_classes: Items[SideEffect] = Field(description="Side effects that tools of an adapter may have.")
    verifier_implications: Mapping[Word, Items[SideEffect]] = Field(
        description="What a call may mean for a verifier, and the side effects of a tool that each fits."
    )
    limits: AdapterSizes = Field(description="Maximum sizes.")

"""policy/memory.yaml: what an agent's memory may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Word


class Sensitivity(Model):
    """What entries of one sensitivity may contain."""

    private_data: Literal["allowed", "refused"] = Field(description="Whether they may contain private data.")


class Memory(Model):
    """policy/memory.yaml: what an agent's memory may hold."""

    origins: Mapping[Word, Literal["trusted", "untrusted"]] = Field(
        description="Kinds of origins. An entry of an untrusted one needs the approval of a person; of another one it "
        "is refused."
    )
    sensitivities: Mapping[Word, Sensitivity] = Field(description="Sensitivities that an entry may have.")
    entry_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 24)] = Field(
        description="Maximum size of one entry, in bytes."
    )

"""policy/export.yaml: which samples may leave, and what may be in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Items, Word

Treatment = Literal["redact", "fixture"]


class Export(Model):
    """policy/export.yaml: which samples may leave, and what may be in them."""

    kinds: Mapping[Word, Items[Word]] = Field(
        description="Kinds of samples, and the kinds of source records that a sample of the kind may come from."
    )
    treatments: Mapping[Word, Items[Treatment]] = Field(
        description="By kind of source record: how private data from it is treated. `redact`: the engine replaces it; "
        "`fixture`: it was generated, and stays. Of another kind, private data is refused."
    )
    repeated_words: Annotated[StrictInt, Field(ge=0, le=10_000)] = Field(
        description="Maximum number of words that a sample may repeat of a source that may not be exported, or that "
        "its provenance does not name. Compared in blocks of eight words."
    )
    sample_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 26)] = Field(
        description="Maximum size of one sample as JSON, in bytes."
    )

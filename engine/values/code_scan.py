"""Section `scan` of policy/code.yaml: what the text of generated code may hold, for each language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from engine.model import Model
from engine.values.fields import Items

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*$", max_length=64)]
"""A name of a program, as it is written there."""


class Scan(Model):
    """What may stand in code of one language. Lists of what is allowed; the two denied ones follow the seed."""

    modules: Mapping[Name, Items[Name]] = Field(
        description="Modules that may be imported, and which of their members may be reached. No row: refused."
    )
    builtins: Items[Name] = Field(description="Built-in names that may be used. Any other one is refused.")
    denied_calls: Items[Name] = Field(description="Names that may not be called.")
    denied_names: Items[Name] = Field(description="Names that may not be used at all, called or not.")
    denied_attributes: Items[Name] = Field(description="Attributes that may be reached on nothing.")
    input_reads: Annotated[int, Field(ge=0, le=100)] = Field(description="How often the input may be read.")

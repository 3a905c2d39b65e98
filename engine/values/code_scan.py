"""Section `scan` of policy/code.yaml: what the text of generated code may hold, for each language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from engine.model import Model
from engine.values.fields import Items

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*$", max_length=64)]
"""A name of a program, as it is written there."""


Kind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
"""A kind of text or construct, or an encoding, by the name that the scan gives it."""


class Scan(Model):
    """What may stand in code of one language: lists of what is allowed, and three of names that are denied."""

    modules: Mapping[Name, Items[Name]] = Field(
        description="Modules that may be imported, and which of their members may be reached. No row: refused."
    )
    builtins: Items[Name] = Field(description="Built-in names that may be used. Any other one is refused.")
    literals: Items[Kind] = Field(
        description="Kinds of text that may stand in code: `path`, `url`, `format`, `dunder`, `reflection`."
    )
    computed: Items[Kind] = Field(
        description="What may be put together at run time: `format` (formats that are no literals), `member_built`, "
        "`member_variable`, `scope`."
    )
    encodings: Items[Kind] = Field(description="Encodings that code may declare, in lower case.")
    denied_calls: Items[Name] = Field(description="Names that may not be called.")
    denied_names: Items[Name] = Field(description="Names that may not be used at all, called or not.")
    denied_attributes: Items[Name] = Field(description="Attributes that may be reached on nothing.")
    input_reads: Annotated[int, Field(ge=0, le=100)] = Field(description="How often the input may be read.")

"""policy/skills.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Items

FolderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
"""The name of one folder; no path."""


class Skills(Model):
    """policy/skills.yaml: what an agent may read of a skill."""

    folders: Items[FolderName] = Field(description="Folders of a skill that files may be read from.")
    depth: Annotated[StrictInt, Field(ge=1, le=16)] = Field(
        description="How many folders deep a file may stand; 1 is directly in one of the folders."
    )
    max_bytes: Annotated[StrictInt, Field(ge=0, le=1 << 30)] = Field(description="Bytes that one file may have.")
    max_names: Annotated[StrictInt, Field(ge=1)] = Field(description="Names (hard links) that one file may have.")

"""policy/proposals.yaml: who may propose tools, and what a proposal may speak of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from engine.model import Model
from engine.values.fields import Items, Word

Detected = Literal["python_code", "shell_command", "package_name", "executable_handler", "migration"]


class Proposals(Model):
    """policy/proposals.yaml: who may propose tools, and what a proposal may speak of."""

    roles: Items[Word] = Field(description="Roles whose proposals are accepted.")
    admitted: Mapping[Detected, Items[Literal["inline", "line"]]] = Field(
        description="By what was seen in a contract, the forms in which it delivers nothing: `inline`, mentioned in a "
        "sentence; `line`, a line of its own. No row: refused in every form. Fields and fenced blocks always deliver."
    )

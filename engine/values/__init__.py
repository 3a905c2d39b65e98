"""The values in `policy/`: one closed model a document, `DOCUMENTS` names them all.

A value widens only by its presence: a document, row or list entry that is missing admits nothing.
Field descriptions become the JSON Schemas that editors show. Errors name the path of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model import Model
from engine.values.adapters import Adapters
from engine.values.agents import Media, Proposals, Provisioning, Skills, Subagents
from engine.values.code import Code
from engine.values.commands import Commands, program_rows
from engine.values.environments import Environments
from engine.values.episodes import Episodes
from engine.values.export import Export
from engine.values.licenses import Licenses
from engine.values.llm import Llm
from engine.values.memory import Memory
from engine.values.operations import Administration, Approvals, Budgets, Callers, Levels, Operations
from engine.values.release import Release
from engine.values.results import Results
from engine.values.runners import Mcp, Runners
from engine.values.sandbox import Sandbox
from engine.values.secrets import Secrets
from engine.values.sources import Addresses, Networks, Sources
from engine.values.tool_lookup import tool_lookup
from engine.values.tools import Tools
from engine.values.waivers import Waivers

_MODELS = (
    *(Adapters, Addresses, Administration, Approvals, Budgets, Callers, Code, Commands, Environments, Episodes),
    *(Export, Levels, Licenses, Llm, Mcp, Media, Memory, Networks, Operations, Proposals, Provisioning, Release),
    *(Results, Runners, Sandbox, Secrets, Skills, Sources, Subagents, Tools, Waivers),
)
DOCUMENTS: Mapping[str, type[Model]] = {model.__name__.lower(): model for model in _MODELS}
"""The documents of `policy/` by file name; `policy/<name>.yaml` is `data.policy.<name>` in Rego."""

DERIVED: Mapping[str, str] = {"program_rows": "commands", "tool_lookup": "tools"}
"""What rules may read below `data.policy` that is no document, with the document that it is made of."""


def derived(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values computed from the checked documents, by name."""
    return {"program_rows": program_rows(data["commands"]), "tool_lookup": tool_lookup(data["tools"])}

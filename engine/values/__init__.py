"""The values in `policy/`: one closed model a document, `DOCUMENTS` names them all.

A value widens only by its presence: a document, row or list entry that is missing admits nothing.
Field descriptions become the JSON Schemas that editors show. Errors name the path of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model import Model
from engine.values.addresses import Addresses
from engine.values.administration import Administration
from engine.values.code import Code
from engine.values.licenses import Licenses
from engine.values.mcp import Mcp
from engine.values.media import Media
from engine.values.operations import Approvals, Budgets, Callers, Levels, Operations
from engine.values.proposals import Proposals
from engine.values.runners import Runners
from engine.values.sandbox import Sandbox
from engine.values.secrets import Secrets
from engine.values.skills import Skills
from engine.values.sources import Networks, Sources
from engine.values.subagents import Subagents
from engine.values.tool_lookup import tool_lookup
from engine.values.tools import Tools

DOCUMENTS: Mapping[str, type[Model]] = {
    "addresses": Addresses,
    "administration": Administration,
    "approvals": Approvals,
    "budgets": Budgets,
    "callers": Callers,
    "code": Code,
    "levels": Levels,
    "licenses": Licenses,
    "mcp": Mcp,
    "media": Media,
    "networks": Networks,
    "operations": Operations,
    "proposals": Proposals,
    "runners": Runners,
    "sandbox": Sandbox,
    "secrets": Secrets,
    "skills": Skills,
    "sources": Sources,
    "subagents": Subagents,
    "tools": Tools,
}
"""The documents of `policy/` by file name; `policy/<name>.yaml` is `data.policy.<name>` in Rego."""

DERIVED = frozenset({"tool_lookup"})
"""What rules may read below `data.policy` that is no document: it is made of documents."""


def derived(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values that follow from the checked documents, by name; nobody edits them."""
    return {"tool_lookup": tool_lookup(data["tools"])}

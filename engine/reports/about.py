"""What a recorded request is about: the facts that a person looks at first, by decision point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.record.model import DecisionRecord
from engine.reports.explain import fact_at

_TOOL_POLICY = {"Working folder": "context.cwd", "Tool policy": "context.policy", "Profile": "context.profile"}

_FACTS: Mapping[str, Mapping[str, str]] = {
    "administration": {"Act": "act", "Id": "id"},
    "environment": {"Environment": "environment", "Source bundle": "digest"},
    "episode": {"Episode": "episode"},
    "license": {
        "License": "license.alternatives",
        "Purpose": "purpose",
        "Exported under": "export_license.alternatives",
        "Content": "content.sha256",
    },
    "memory": {"Operation": "operation"},
    "network": {"Origin": "network.alias", "Purpose": "network.purpose"},
    "provisioning": {
        "Agent": "specification.name",
        "Role": "specification.role",
        "System prompt": "specification.system_prompt",
    },
    "source": {
        "Source bundle": "bundle.id",
        "Purpose": "bundle.purpose",
        "Environment": "bundle.environment",
        "Exported under": "bundle.export_license.alternatives",
        "Content": "bundle.digest",
    },
    "subagent": {"Operation": "operation", "Conversation": "conversation", "User": "user", **_TOOL_POLICY},
    "tool_call": {
        "Tool": "call.tool",
        "Arguments": "call.summary",
        "Arguments are cut": "call.summary_cut",
        **_TOOL_POLICY,
    },
    "tool_result": {"Tool": "tool", "Result": "status"},
}
"""Their paths below the input, by what they are called. The first one distinguishes requests of a point."""


def about(body: DecisionRecord) -> dict[str, str]:
    """These facts of a recorded request; those that it does not have are left out."""
    found = ((name, fact_at(body.input, path)) for name, path in _FACTS.get(body.point, {}).items())
    return {name: _text(value) for name, value in found if value not in (None, False)}


def _text(value: Any) -> str:
    """A fact; the alternatives of a license in words."""
    if not isinstance(value, list):
        return "yes" if value is True else str(value)
    return " or ".join(" and ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)

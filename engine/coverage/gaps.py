"""A gap of a policy: what it is, why it matters, what to do, and which value to look at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.errors import Location


class Kind(StrEnum):
    """What may be missing or in vain; the order is that of the report."""

    TOOL_WITHOUT_RULE = "tool_without_rule"
    DEFINITION_WITHOUT_ENTRY = "definition_without_entry"
    HOST_WITHOUT_RULE = "host_without_rule"
    RULESET_UNUSED = "ruleset_unused"
    RULE_SHADOWED = "rule_shadowed"
    RULE_WITHOUT_TOOL = "rule_without_tool"
    PROFILE_WITHOUT_TOOL = "profile_without_tool"
    GROUP_UNUSED = "group_unused"
    POLICY_NEVER_ASKED = "policy_never_asked"
    PROFILE_NEVER_ASKED = "profile_never_asked"
    RULE_NEVER_USED = "rule_never_used"
    POINT_NEVER_ASKED = "point_never_asked"
    REQUIREMENT_NEVER_FOUND = "requirement_never_found"


@dataclass(frozen=True, slots=True)
class Gap:
    """One gap. `subject` is a name such as `workspace/own_folder`; `where` is None where no value is."""

    kind: Kind
    subject: str
    message: str
    why: str
    remedy: str
    where: Location | None

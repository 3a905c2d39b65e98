"""policy/tools.yaml as rules per tool, in the order in which they are evaluated.

For reports on policy coverage. The tools of a group, glob or `*` are read from what the
build made of these values (`data.policy.tool_lookup`), which is also what OPA looks up for a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from engine.errors import Location
from engine.policy_bundle.build import PolicyBundle
from engine.values.tools import stated_commands


class Kind(StrEnum):
    """The kinds of gaps, in the order of the report, each with its `head` there."""

    head: str

    def __new__(cls, code: str, head: str) -> Self:
        """A kind whose value is its code."""
        kind = str.__new__(cls, code)
        kind._value_, kind.head = code, head
        return kind

    TOOL_WITHOUT_RULE = ("tool_without_rule", "tools without a rule")
    DEFINITION_WITHOUT_ENTRY = ("definition_without_entry", "definitions of tools without an entry")
    HOST_WITHOUT_RULE = ("host_without_rule", "requested hosts that no rule covers")
    RULESET_UNUSED = ("ruleset_unused", "rulesets that no policy uses")
    RULE_SHADOWED = ("rule_shadowed", "unreachable rules")
    RULE_WITHOUT_TOOL = ("rule_without_tool", "rules that match no tool")
    PROFILE_WITHOUT_TOOL = ("profile_without_tool", "profiles that show no tool")
    GROUP_UNUSED = ("group_unused", "groups that nothing names")
    POLICY_NEVER_ASKED = ("policy_never_asked", "policies that no recorded decision used")
    PROFILE_NEVER_ASKED = ("profile_never_asked", "profiles that no recorded decision used")
    RULE_NEVER_USED = ("rule_never_used", "rules that no recorded decision used")
    POINT_NEVER_ASKED = ("point_never_asked", "points at which no recorded decision was taken")
    REQUIREMENT_NEVER_FOUND = ("requirement_never_found", "requirements that held in every recorded decision")


@dataclass(frozen=True, slots=True)
class Gap:
    """One gap. `subject` is a name such as `workspace/own_folder`; `where` is None if no value is concerned."""

    kind: Kind
    subject: str
    message: str
    why: str
    remedy: str
    where: Location | None


SECTIONS = ("deny", "confirm", "allow")
"""In the order in which they are tried."""

CONDITIONS = ("hosts", "paths", "commands")
ANY = "any"


@dataclass(frozen=True, slots=True)
class CommandsWith:
    """An entry of `commands` that states more than first words."""

    words: tuple[str, ...]
    can: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoveredRule:
    """One rule of a ruleset. `conditions` are the stated ones: `any`, or a tuple of entries; `where`, on arguments.

    `partial`: some of its tools have arguments that an allow rule has to cover by `where`.
    """

    ruleset: str
    section: str
    index: int
    id: str
    selectors: tuple[str, ...]
    tools: frozenset[str]
    conditions: Mapping[str, Any]
    where: Mapping[str, Any]
    partial: bool

    @property
    def name(self) -> str:
        """The name in decisions and their records."""
        return f"{self.ruleset}/{self.id}"

    @property
    def path(self) -> tuple[str | int, ...]:
        """Its path below policy/."""
        return ("tools", "rulesets", self.ruleset, self.section, self.index)

    @property
    def always(self) -> bool:
        """Whether it applies to every call of its tools."""
        if self.section == "allow":
            return not self.partial and all(self.conditions.get(condition) == ANY for condition in CONDITIONS)
        return not self.conditions and not self.where


@dataclass(frozen=True)
class ToolValues:
    """The values of a policy bundle, and their positions."""

    policy: PolicyBundle

    @cached_property
    def values(self) -> dict[str, Any]:
        """policy/tools.yaml; empty where a bundle has none."""
        found: dict[str, Any] = self.policy.data.get("tools", {})
        return found

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """Every tool that has an entry."""
        return tuple(self.values.get("tools", {}))

    @cached_property
    def rulesets(self) -> dict[str, tuple[CoveredRule, ...]]:
        """The rules of each ruleset, deny before confirm before allow."""
        return {name: tuple(self._rules(name, sections)) for name, sections in self.values.get("rulesets", {}).items()}

    @cached_property
    def policies(self) -> dict[str, tuple[str, ...]]:
        """The rulesets of each policy in their order."""
        return {name: tuple(policy.get("rulesets", ())) for name, policy in self.values.get("policies", {}).items()}

    @cached_property
    def used(self) -> frozenset[str]:
        """Rulesets that a policy uses."""
        return frozenset(name for rulesets in self.policies.values() for name in rulesets)

    def of_policy(self, name: str) -> Iterator[CoveredRule]:
        """The rules of a policy in order of evaluation: one section of all rulesets after the other."""
        for section in SECTIONS:
            for ruleset in self.policies[name]:
                yield from (rule for rule in self.rulesets[ruleset] if rule.section == section)

    def selected(self, selectors: Iterable[str]) -> frozenset[str]:
        """The tools that selectors of rules and profiles match, as resolved by the build."""
        return frozenset(tool for selector in selectors for tool in self._tools_of.get(selector, ()))

    def where(self, *path: str | int) -> Location | None:
        """The position of a value below policy/, or of its nearest parent."""
        return self.policy.row(path).where

    @cached_property
    def _tools_of(self) -> dict[str, list[str]]:
        """Each selector of a rule or profile, and the tools that it matches."""
        found: dict[str, list[str]] = {}
        for tool, row in self.policy.data.get("tool_lookup", {}).get("tools", {}).items():
            for selector in row["selectors"]:
                found.setdefault(selector, []).append(tool)
        return found

    def _rules(self, ruleset: str, sections: Mapping[str, Any]) -> Iterator[CoveredRule]:
        for section in SECTIONS:
            for index, row in enumerate(sections.get(section, ())):
                selectors = tuple(row["tools"])
                stated = {**row, "commands": stated_commands(row)} if "commands" in row else row
                conditions = {name: _stated(stated[name]) for name in CONDITIONS if name in stated}
                tools = self.selected(selectors)
                partial = any(self.policy.data["tool_lookup"]["tools"][tool]["values"] for tool in tools)
                where = row.get("where", {})
                yield CoveredRule(ruleset, section, index, row["id"], selectors, tools, conditions, where, partial)


def _stated(condition: Any) -> Any:
    """A condition as comparable values: command words become one tuple."""
    return ANY if condition == ANY else tuple(map(_entry, condition))


def _entry(item: Any) -> Any:
    if isinstance(item, dict):
        return CommandsWith(**{name: tuple(listed) for name, listed in item.items()})
    return tuple(item) if isinstance(item, list) else item

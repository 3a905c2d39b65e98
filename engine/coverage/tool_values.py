"""policy/tools.yaml as rules that name tools, policies in the order in which their rules are asked.

For people who ask what a policy covers. Which tools a group, glob or `*` means is read from what the
build made of these values (`data.policy.tool_lookup`), which is also what OPA looks up for a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.errors import Location
from engine.policy_bundle.build import PolicyBundle

SECTIONS = ("deny", "confirm", "allow")
"""In the order in which they are asked."""

CONDITIONS = ("hosts", "paths", "commands")
ANY = "any"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a ruleset. `conditions` are the stated ones: `any`, or a tuple of entries."""

    ruleset: str
    section: str
    index: int
    id: str
    selectors: tuple[str, ...]
    tools: frozenset[str]
    conditions: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As decisions and their records name it."""
        return f"{self.ruleset}/{self.id}"

    @property
    def path(self) -> tuple[str | int, ...]:
        """The way to it below policy/."""
        return ("tools", "rulesets", self.ruleset, self.section, self.index)

    @property
    def always(self) -> bool:
        """Whether it applies to every call of its tools."""
        if self.section == "allow":
            return all(self.conditions.get(one) == ANY for one in CONDITIONS)
        return not self.conditions


@dataclass(frozen=True)
class ToolValues:
    """The values of a policy bundle, and where they stand."""

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
    def rulesets(self) -> dict[str, tuple[Rule, ...]]:
        """The rules of each ruleset, deny before confirm before allow."""
        return {name: tuple(self._rules(name, sections)) for name, sections in self.values.get("rulesets", {}).items()}

    @cached_property
    def policies(self) -> dict[str, tuple[str, ...]]:
        """The rulesets of each policy in their order."""
        return {name: tuple(one.get("rulesets", ())) for name, one in self.values.get("policies", {}).items()}

    @cached_property
    def used(self) -> frozenset[str]:
        """Rulesets that a policy uses."""
        return frozenset(name for rulesets in self.policies.values() for name in rulesets)

    def of_policy(self, name: str) -> Iterator[Rule]:
        """The rules of a policy in the order in which they are asked: a section of all rulesets after the other."""
        for section in SECTIONS:
            for ruleset in self.policies[name]:
                yield from (rule for rule in self.rulesets[ruleset] if rule.section == section)

    def selected(self, selectors: Iterable[str]) -> frozenset[str]:
        """The tools that selectors of rules and profiles mean, as the build has resolved them."""
        return frozenset(tool for selector in selectors for tool in self._meant.get(selector, ()))

    def where(self, *path: str | int) -> Location | None:
        """The place of a value below policy/, or of its nearest parent."""
        return self.policy.row(path).where

    @cached_property
    def _meant(self) -> dict[str, list[str]]:
        """Each selector of a rule or profile, and the tools that it means."""
        found: dict[str, list[str]] = {}
        for tool, row in self.policy.data.get("tool_lookup", {}).get("tools", {}).items():
            for selector in row["selectors"]:
                found.setdefault(selector, []).append(tool)
        return found

    def _rules(self, ruleset: str, sections: Mapping[str, Any]) -> Iterator[Rule]:
        for section in SECTIONS:
            for index, one in enumerate(sections.get(section, ())):
                selectors = tuple(one["tools"])
                conditions = {name: _stated(one[name]) for name in CONDITIONS if name in one}
                yield Rule(ruleset, section, index, one["id"], selectors, self.selected(selectors), conditions)


def _stated(condition: Any) -> Any:
    """A condition as values that can be compared: command words become one tuple."""
    if condition == ANY:
        return ANY
    return tuple(tuple(one) if isinstance(one, list) else one for one in condition)

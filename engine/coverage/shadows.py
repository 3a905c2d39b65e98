"""Rules that nothing can reach, because rules asked before them take every call of their tools.

One pass over the rules of each policy: what a call of each tool meets before is kept as a set of
conditions, so that a thousand rules cost a thousand times one. Only what certainly hides is told;
a rule that others hide together in a way no set shows is not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.coverage.tool_values import ANY, Rule, ToolValues

Condition = tuple[str, Any]
Path_ = tuple[str | int, ...]
"""A rule by its path below policy/: rules hold mappings and have no hash."""


@dataclass(slots=True)
class _Seen:
    """What the rules before say of one tool: the one that takes every call, and single conditions."""

    always: Rule | None = None
    conditions: dict[Condition, Rule] = field(default_factory=dict)
    whole: dict[tuple[Condition, ...], Rule] = field(default_factory=dict)


def shadowed(values: ToolValues) -> Iterator[tuple[Rule, tuple[Rule, ...]]]:
    """Each rule that is hidden in every policy that uses it, and the rules that hide it in the first of them."""
    hidden: dict[Path_, list[tuple[Rule, ...]]] = {}
    rules: dict[Path_, Rule] = {}
    policies = dict.fromkeys(values.used, 0)
    for name, rulesets in values.policies.items():
        for ruleset in rulesets:
            policies[ruleset] += 1
        for rule, by in _hidden(values, name):
            rules[rule.path] = rule
            hidden.setdefault(rule.path, []).append(by)
    for path, found in hidden.items():
        if len(found) == policies[rules[path].ruleset]:
            yield rules[path], found[0]


def _hidden(values: ToolValues, policy: str) -> Iterator[tuple[Rule, tuple[Rule, ...]]]:
    """The rules of one policy that earlier ones hide, with those."""
    seen = {tool: _Seen() for tool in values.tools}
    for rule in values.of_policy(policy):
        conditions = _single(rule)
        by = [_hiding(rule, conditions, seen[tool]) for tool in rule.tools]
        if by and all(by):
            unique = {one.path: one for found in by for one in found}
            yield rule, tuple(unique.values())
        for tool in rule.tools:
            _remember(rule, conditions, seen[tool])


def _single(rule: Rule) -> tuple[Condition, ...]:
    """The conditions of a rule one by one."""
    return tuple(
        (name, entry)
        for name, stated in sorted(rule.conditions.items())
        for entry in ((ANY,) if stated == ANY else stated)
    )


def _hiding(rule: Rule, conditions: tuple[Condition, ...], seen: _Seen) -> tuple[Rule, ...]:
    """The rules before that take every call of this tool that this one would take; none where one is left."""
    if seen.always is not None:
        return (seen.always,)
    if rule.section == "allow":  # asks that all is covered: hidden by a rule with the same conditions
        same = seen.whole.get(conditions)
        return () if same is None else (same,)
    if not conditions:
        return ()
    found = [seen.conditions.get((name, ANY)) or seen.conditions.get((name, entry)) for name, entry in conditions]
    return () if None in found else tuple(one for one in found if one is not None)


def _remember(rule: Rule, conditions: tuple[Condition, ...], seen: _Seen) -> None:
    if rule.always and seen.always is None:
        seen.always = rule
    if rule.section == "allow":
        seen.whole.setdefault(conditions, rule)
    else:  # asks for one condition: whichever it is, this rule takes the call
        for condition in conditions:
            seen.conditions.setdefault(condition, rule)

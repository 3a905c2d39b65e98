"""Gaps found in the values alone or beside tool definitions: tools without a rule or entry; unused rules, profiles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.coverage.tool_values import ANY, CoveredRule, Gap, Kind, ToolValues
from engine.documents.files import printable

_EVERY = ("*",)
_MOST_NAMES = 4


def value_gaps(values: ToolValues) -> Iterator[Gap]:
    """Every gap of policy/tools.yaml that is visible without a record."""
    yield from _tools(values)
    yield from _rulesets(values)
    yield from _shadowed(values)
    yield from _rules(values)
    yield from _profiles(values)
    yield from _groups(values)


def definition_gaps(values: ToolValues, names: Iterable[str]) -> Iterator[Gap]:
    """A gap for every tool name, as agents would call it, without an entry."""
    known = frozenset(values.tools)
    for name in names:
        if name not in known:
            yield Gap(
                Kind.DEFINITION_WITHOUT_ENTRY,
                name,
                f"the tool `{printable(name, 128)}` has no entry",
                "a tool without an entry is hidden, and a call of it is refused",
                "review the tool and write an entry under `tools`: `engine tools audit` prints one to "
                "paste; or leave it refused",
                values.where("tools", "tools"),
            )


def _tools(values: ToolValues) -> Iterator[Gap]:
    used = [rule for name in sorted(values.used) for rule in values.rulesets[name]]
    named = {tool for rule in used if not _guards_all(rule) for tool in rule.tools}
    guards = sorted({rule.name for rule in used if _guards_all(rule)})
    for tool in values.tools:
        if tool not in named:
            apart = f" apart from what guards every tool ({', '.join(guards)})" if guards else ""
            yield Gap(
                Kind.TOOL_WITHOUT_RULE,
                tool,
                f"no rule covers the tool `{tool}`",
                f"no ruleset of a policy names it{apart}, so the base of the policy decides each call: "
                "a refusal, or a confirmation every time",
                "name it, or a group it is in, in a rule; or remove its entry if it must not be called",
                values.where("tools", "tools", tool),
            )


def _guards_all(rule: CoveredRule) -> bool:
    """Whether it only refuses some calls of every tool, and so is about no particular tool."""
    return rule.section == "deny" and rule.selectors == _EVERY and bool(rule.conditions or rule.where)


def _rulesets(values: ToolValues) -> Iterator[Gap]:
    for name, rules in values.rulesets.items():
        if name not in values.used:
            count = len(rules)
            yield Gap(
                Kind.RULESET_UNUSED,
                name,
                f"no policy uses the ruleset `{name}`",
                "its only rule applies to no call" if count == 1 else f"its {count} rules apply to no call",
                "name it under `rulesets` of a policy, or remove it",
                values.where("tools", "rulesets", name),
            )


def _shadowed(values: ToolValues) -> Iterator[Gap]:
    for rule, by in shadowed(values):
        names = _listed([f"{hiding.section} rule {hiding.name}" for hiding in by])
        yield Gap(
            Kind.RULE_SHADOWED,
            rule.name,
            f"nothing can reach the {rule.section} rule `{rule.name}`",
            f"everything it could match is matched earlier by the {names}; the first match wins",
            "remove it, move it before the rules that hide it, or narrow those rules",
            values.where(*rule.path),
        )


def _rules(values: ToolValues) -> Iterator[Gap]:
    for rules in values.rulesets.values():
        for rule in rules:
            if not rule.tools:
                yield Gap(
                    Kind.RULE_WITHOUT_TOOL,
                    rule.name,
                    f"the {rule.section} rule `{rule.name}` matches no tool",
                    f"{quoted(rule.selectors)} selects none of the tools that have an entry",
                    "correct `tools` of the rule, or remove the rule",
                    values.where(*rule.path),
                )


def _profiles(values: ToolValues) -> Iterator[Gap]:
    for name, selectors in values.values.get("profiles", {}).items():
        if not values.selected(selectors):
            yield Gap(
                Kind.PROFILE_WITHOUT_TOOL,
                name,
                f"the profile `{name}` shows no tool",
                f"{quoted(selectors)} selects none of the tools that have an entry"
                if selectors
                else "it is empty, so an agent with it sees nothing and may call nothing",
                "name tools or groups in it, or remove it",
                values.where("tools", "profiles", name),
            )


def _groups(values: ToolValues) -> Iterator[Gap]:
    groups, profiles = values.values.get("groups", {}), values.values.get("profiles", {})
    rules = (rule.selectors for all_ in values.rulesets.values() for rule in all_)
    used = {selector for held in (*groups.values(), *profiles.values(), *rules) for selector in held}
    for name in groups:
        if f"group:{name}" not in used:
            yield Gap(
                Kind.GROUP_UNUSED,
                name,
                f"nothing names the group `{name}`",
                "no rule, profile or other group has it in its list, so it changes nothing",
                f"write `group:{name}` where it should apply, or remove it",
                values.where("tools", "groups", name),
            )


def quoted(names: Iterable[str]) -> str:
    """The first names, in backticks, and how many more there are."""
    return _listed([f"`{printable(name, 80)}`" for name in names])


def _listed(names: list[str]) -> str:
    rest = len(names) - _MOST_NAMES
    listed = [*names[:_MOST_NAMES], f"{rest} more"] if rest > 0 else names
    return " and ".join((", ".join(listed[:-1]), listed[-1])) if len(listed) > 1 else "".join(listed)


Condition = tuple[str, Any]
Path_ = tuple[str | int, ...]
"""The path of a rule below policy/, as its identity: rules contain mappings and cannot be hashed."""


@dataclass(slots=True)
class _EarlierRules:
    """Earlier rules of one tool: the one that matches every call, and those with single conditions."""

    always: CoveredRule | None = None
    conditions: dict[Condition, CoveredRule] = field(default_factory=dict)
    whole: dict[tuple[Condition, ...], CoveredRule] = field(default_factory=dict)


def shadowed(values: ToolValues) -> Iterator[tuple[CoveredRule, tuple[CoveredRule, ...]]]:
    """Each rule that is shadowed in every policy that uses it, and the rules that shadow it in the first of them.

    One pass: the earlier conditions of each tool are collected in a set. Only certain shadows are
    reported; more complex combinations are not found.
    """
    hidden: dict[Path_, list[tuple[CoveredRule, ...]]] = {}
    rules: dict[Path_, CoveredRule] = {}
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


def _hidden(values: ToolValues, policy: str) -> Iterator[tuple[CoveredRule, tuple[CoveredRule, ...]]]:
    """The rules of one policy that earlier ones hide, with those."""
    seen_by_tool = {tool: _EarlierRules() for tool in values.tools}
    for rule in values.of_policy(policy):
        conditions = _single(rule)
        by = [_hiding(rule, conditions, seen_by_tool[tool]) for tool in rule.tools]
        if by and all(by):
            unique = {hiding.path: hiding for found in by for hiding in found}
            yield rule, tuple(unique.values())
        for tool in rule.tools:
            _remember(rule, conditions, seen_by_tool[tool])


def _single(rule: CoveredRule) -> tuple[Condition, ...]:
    """The conditions of a rule one by one; those on arguments only for an allow rule, which has to cover them all."""
    where = ((f"where {name}", json.dumps(stated, sort_keys=True)) for name, stated in sorted(rule.where.items()))
    return (
        *(
            (name, entry)
            for name, stated in sorted(rule.conditions.items())
            for entry in ((ANY,) if stated == ANY else stated)
        ),
        *(where if rule.section == "allow" else ()),
    )


def _hiding(rule: CoveredRule, conditions: tuple[Condition, ...], seen: _EarlierRules) -> tuple[CoveredRule, ...]:
    """The earlier rules that match every call of this tool that this rule would match; none if a call is left."""
    if seen.always is not None:
        return (seen.always,)
    if rule.section == "allow":  # requires that all is covered: hidden by a rule with the same conditions
        same = seen.whole.get(conditions)
        return () if same is None else (same,)
    if not conditions:
        return ()
    found = [seen.conditions.get((name, ANY)) or seen.conditions.get((name, entry)) for name, entry in conditions]
    return () if None in found else tuple(entry for entry in found if entry is not None)


def _remember(rule: CoveredRule, conditions: tuple[Condition, ...], seen: _EarlierRules) -> None:
    if rule.always and seen.always is None:
        seen.always = rule
    if rule.section == "allow":
        seen.whole.setdefault(conditions, rule)
    elif not rule.where:  # requires one condition: whichever it is, this rule matches the call
        for condition in conditions:
            seen.conditions.setdefault(condition, rule)

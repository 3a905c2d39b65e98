"""Gaps that the values alone show: tools without a rule, and rules, profiles and groups in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.coverage.gaps import Gap, Kind
from engine.coverage.shadows import shadowed
from engine.coverage.tool_values import Rule, ToolValues
from engine.files import shown

_EVERY = ("*",)


def value_gaps(values: ToolValues) -> Iterator[Gap]:
    """Every gap of policy/tools.yaml that can be seen without a record."""
    yield from _tools(values)
    yield from _rulesets(values)
    yield from _shadowed(values)
    yield from _rules(values)
    yield from _profiles(values)
    yield from _groups(values)


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
                f"no rule is about the tool `{tool}`",
                f"no ruleset of a policy names it{apart}, so each call gets what the base of its policy gives: "
                "a refusal, or a person who is asked every time",
                "name it, or a group it is in, in a rule; or remove its entry if nobody is to call it",
                values.where("tools", "tools", tool),
            )


def _guards_all(rule: Rule) -> bool:
    """Whether it only keeps some calls of every tool away, and so says nothing about any one tool."""
    return rule.section == "deny" and rule.selectors == _EVERY and bool(rule.conditions)


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
        names = _listed([f"{one.section} rule {one.name}" for one in by])
        yield Gap(
            Kind.RULE_SHADOWED,
            rule.name,
            f"nothing can reach the {rule.section} rule `{rule.name}`",
            f"whatever it would match is taken before by the {names}; the first match wins",
            "remove it, move it before what hides it, or narrow what hides it",
            values.where(*rule.path),
        )


def _rules(values: ToolValues) -> Iterator[Gap]:
    for rules in values.rulesets.values():
        for rule in rules:
            if not rule.tools:
                yield Gap(
                    Kind.RULE_WITHOUT_TOOL,
                    rule.name,
                    f"the {rule.section} rule `{rule.name}` is about no tool",
                    f"{_selectors(rule.selectors)} selects none of the tools that have an entry",
                    "correct what stands under `tools` of the rule, or remove the rule",
                    values.where(*rule.path),
                )


def _profiles(values: ToolValues) -> Iterator[Gap]:
    for name, selectors in values.values.get("profiles", {}).items():
        if not values.selected(selectors):
            yield Gap(
                Kind.PROFILE_WITHOUT_TOOL,
                name,
                f"the profile `{name}` shows no tool",
                f"{_selectors(selectors)} selects none of the tools that have an entry"
                if selectors
                else "it is empty, so an agent with it sees nothing and may call nothing",
                "name tools or groups in it, or remove it",
                values.where("tools", "profiles", name),
            )


def _groups(values: ToolValues) -> Iterator[Gap]:
    groups, profiles = values.values.get("groups", {}), values.values.get("profiles", {})
    lists = [
        *groups.values(),
        *profiles.values(),
        *(rule.selectors for all_ in values.rulesets.values() for rule in all_),
    ]
    used = {selector for selectors in lists for selector in selectors}
    for name in groups:
        if f"group:{name}" not in used:
            yield Gap(
                Kind.GROUP_UNUSED,
                name,
                f"nothing names the group `{name}`",
                "no rule, profile or other group has it in its list, so it changes nothing",
                f"write `group:{name}` where it is meant, or remove it",
                values.where("tools", "groups", name),
            )


def _selectors(selectors: Iterable[str]) -> str:
    return _listed([f"`{shown(one, 80)}`" for one in selectors])


def _listed(names: list[str], most: int = 4) -> str:
    rest = len(names) - most
    told = [*names[:most], f"{rest} more"] if rest > 0 else names
    return " and ".join((", ".join(told[:-1]), told[-1])) if len(told) > 1 else "".join(told)

"""Gaps that the record shows: hosts no rule covers, and rules and requirements no decision ever used."""

from __future__ import annotations

from collections.abc import Iterator

from engine.coverage.gaps import Gap, Kind
from engine.coverage.tool_values import ANY, ToolValues
from engine.coverage.usage import Usage
from engine.files import shown

_MOST_TOOLS = 4
_CALLS = "tool_call"


def record_gaps(values: ToolValues, used: Usage) -> Iterator[Gap]:
    """Every gap between the policy and what recorded decisions used of it."""
    yield from _hosts(values, used)
    if _CALLS in used.codes:
        yield from _policies(values, used)
        yield from _profiles(values, used)
        yield from _rules(values, used)
    yield from _requirements(values, used)


def _hosts(values: ToolValues, used: Usage) -> Iterator[Gap]:
    covered: dict[str, set[str]] = {}
    for name in values.used:
        for rule in values.rulesets[name]:
            stated = rule.conditions.get("hosts", ())
            for entry in (ANY,) if stated == ANY else stated:
                covered.setdefault(entry, set()).update(rule.tools)
    anywhere = covered.get(ANY, set())
    for origin, asked in sorted(used.origins.items()):
        if open_ := asked.tools - anywhere - covered.get(origin, set()):
            names = sorted(open_)
            more = f" and {len(names) - _MOST_TOOLS} more" if len(names) > _MOST_TOOLS else ""
            told = ", ".join(f"`{shown(one, 80)}`" for one in names[:_MOST_TOOLS]) + more
            yield Gap(
                Kind.HOST_WITHOUT_RULE,
                origin,
                f"no rule covers `{shown(origin, 300)}`",
                f"{asked.calls} recorded call{'' if asked.calls == 1 else 's'} asked for it, the last at {asked.last}; "
                f"for {told} no rule has it under `hosts`",
                "write it under `hosts` of an allow rule if it is to be reached, of a deny rule if it is not",
                values.where("tools", "rulesets"),
            )


def _policies(values: ToolValues, used: Usage) -> Iterator[Gap]:
    for name in values.policies:
        if name not in used.policies:
            yield Gap(
                Kind.POLICY_NEVER_ASKED,
                name,
                f"no recorded decision was asked under the policy `{name}`",
                "no agent states it, so its base and rulesets apply to no call",
                "state it where agents are set up, or remove it",
                values.where("tools", "policies", name),
            )


def _profiles(values: ToolValues, used: Usage) -> Iterator[Gap]:
    for name in values.values.get("profiles", {}):
        if name not in used.profiles:
            yield Gap(
                Kind.PROFILE_NEVER_ASKED,
                name,
                f"no recorded decision was asked with the profile `{name}`",
                "no agent states it, so it narrows nothing",
                "state it where agents are set up, or remove it",
                values.where("tools", "profiles", name),
            )


def _rules(values: ToolValues, used: Usage) -> Iterator[Gap]:
    """Only a permit names its rule; what a deny or confirm rule has stopped is told by code alone."""
    codes = used.codes[_CALLS]
    given = {"allow": None, "deny": "denied_by_rule", "confirm": "confirmation_by_rule"}
    for name in sorted(values.used):
        for rule in values.rulesets[name]:
            if rule.name in used.rules or given[rule.section] in codes:
                continue
            yield Gap(
                Kind.RULE_NEVER_USED,
                rule.name,
                f"no recorded decision used the {rule.section} rule `{rule.name}`",
                "no call was permitted by it"
                if rule.section == "allow"
                else f"no {rule.section} rule of any policy stopped a call",
                "see whether it still means what is done; what nobody needs can be removed",
                values.where(*rule.path),
            )


def _requirements(values: ToolValues, used: Usage) -> Iterator[Gap]:
    policy = values.policy
    for point, entries in sorted(policy.catalogue.points.items()):
        if point not in used.codes:
            yield Gap(
                Kind.POINT_NEVER_ASKED,
                point,
                f"no recorded decision was taken at `{point}`",
                "its requirements were never asked",
                f"ask before such a thing happens: `engine decide {point} --schema` shows how",
                None,
            )
            continue
        for code, one in sorted(entries.requirements.items()):
            if code not in used.codes[point]:
                yield Gap(
                    Kind.REQUIREMENT_NEVER_FOUND,
                    f"{point}/{code}",
                    f"no recorded decision at `{point}` has the finding `{code}`",
                    f"it has always held there: {one.title[:1].lower()}{one.title[1:]}",
                    "nothing, where a case shows that it bites: `engine policy test --cases`",
                    policy.where(one.file, one.line),
                )

"""Gaps found in the record: hosts without a rule; rules and requirements that no decision used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.coverage.tool_values import ANY, Gap, Kind, ToolValues
from engine.coverage.value_gaps import quoted
from engine.documents.files import counted, printable
from engine.errors import Location
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries
from engine.values.hosts import host_form

_MOST_UNREADABLE = 100


@dataclass(slots=True)
class OriginUsage:
    """The use of one origin by calls: tools, count, last time."""

    tools: set[str] = field(default_factory=set)
    calls: int = 0
    last: str = ""


@dataclass(slots=True)
class Usage:
    """The used names. `codes` are the codes of findings by point, `rules` those that allowed a call."""

    decisions: int = 0
    first: str | None = None
    last: str | None = None
    codes: dict[str, set[str]] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)
    profiles: set[str] = field(default_factory=set)
    origins: dict[str, OriginUsage] = field(default_factory=dict)
    unreadable: list[Location] = field(default_factory=list)


def usage(state: Path, criteria: Filter, progress: Callable[[int], None]) -> Usage:
    """What the decisions that match `criteria` used; `progress` is called with their number. Raises RecordError."""
    found = Usage()
    for body in decisions(state, criteria, found.unreadable):
        _count(found, body)
        progress(found.decisions)
    return found


def decisions(state: Path, criteria: Filter, unreadable: list[Location]) -> Iterator[DecisionRecord]:
    """Every decision that matches; `unreadable` gets the first lines that cannot be read. Raises RecordError."""
    for entry in entries(state, criteria):
        if isinstance(entry, Location):
            if len(unreadable) < _MOST_UNREADABLE:
                unreadable.append(entry)
        elif isinstance(entry.body, DecisionRecord):
            yield entry.body


def _count(found: Usage, body: DecisionRecord) -> None:
    found.decisions += 1
    found.first = found.first or body.time
    found.last = body.time
    found.codes.setdefault(body.point, set()).update(finding.code for finding in body.findings)
    if isinstance(rule := (body.limits or {}).get("rule"), str):
        found.rules.update(rule.split(", "))  # one for each command of a text
    document = body.input or {}
    call_context = document.get("context")
    if isinstance(call_context, dict):
        found.policies.update(_texts([call_context.get("policy")]))
        found.profiles.update(_texts([call_context.get("profile")]))
    _origins(found, document, body.time)


def _origins(found: Usage, document: dict[str, Any], time: str) -> None:
    call = document.get("call")
    tool = call.get("tool") if isinstance(call, dict) else None
    destinations = document.get("destinations")
    if not isinstance(tool, str) or not isinstance(destinations, list):
        return
    for origin in {text for item in destinations if isinstance(item, dict) for text in _texts([item.get("origin")])}:
        used = found.origins.setdefault(origin, OriginUsage())
        used.tools.add(tool)
        used.calls += 1
        used.last = time


def _texts(values: list[Any]) -> Iterator[str]:
    yield from (value for value in values if isinstance(value, str))


_CALLS = "tool_call"


def record_gaps(values: ToolValues, used: Usage) -> Iterator[Gap]:
    """Every gap between the policy and its use in recorded decisions."""
    yield from _hosts(values, used)
    if _CALLS in used.codes:
        yield from _unstated(values, used)
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
    for origin, use in sorted(used.origins.items()):
        named = {tool for entry, tools in covered.items() if _names(entry, origin) for tool in tools}
        if open_ := use.tools - anywhere - named:
            yield Gap(
                Kind.HOST_WITHOUT_RULE,
                origin,
                f"no rule covers `{printable(origin, 300)}`",
                f"{counted(use.calls, 'recorded call')} asked for it, the last at {use.last}; "
                f"no rule for {quoted(sorted(open_))} lists it under `hosts`",
                "add it to `hosts` of an allow rule to permit it, or of a deny rule to refuse it",
                values.where("tools", "rulesets"),
            )


def _names(entry: str, origin: str) -> bool:
    return (form := host_form(entry)) is not None and form.names(origin)


def _unstated(values: ToolValues, used: Usage) -> Iterator[Gap]:
    for kind, section, used_names, with_name, effect in (
        (Kind.POLICY_NEVER_ASKED, "policies", used.policies, "the policy", "its base and rulesets apply to no call"),
        (Kind.PROFILE_NEVER_ASKED, "profiles", used.profiles, "the profile", "it narrows nothing"),
    ):
        for name in values.values.get(section, {}):
            if name not in used_names:
                yield Gap(
                    kind,
                    name,
                    f"no recorded decision used {with_name} `{name}`",
                    f"no agent names it, so {effect}",
                    "name it where agents are configured, or remove it",
                    values.where("tools", section, name),
                )


def _rules(values: ToolValues, used: Usage) -> Iterator[Gap]:
    """Only a permit names its rule; for deny and confirm rules the record has only the code."""
    codes = used.codes[_CALLS]
    codes_by_section = {"allow": None, "deny": "denied_by_rule", "confirm": "confirmation_by_rule"}
    for name in sorted(values.used):
        for rule in values.rulesets[name]:
            if rule.name in used.rules or codes_by_section[rule.section] in codes:
                continue
            yield Gap(
                Kind.RULE_NEVER_USED,
                rule.name,
                f"no recorded decision used the {rule.section} rule `{rule.name}`",
                "no call was permitted by it"
                if rule.section == "allow"
                else f"no {rule.section} rule of any policy stopped a call",
                "remove it if it is no longer needed",
                values.where(*rule.path),
            )


def _requirements(values: ToolValues, used: Usage) -> Iterator[Gap]:
    policy = values.policy
    for point, held in sorted(policy.catalogue.points.items()):
        if point not in used.codes:
            yield Gap(
                Kind.POINT_NEVER_ASKED,
                point,
                f"no recorded decision was taken at `{point}`",
                "its requirements were never evaluated",
                f"request a decision before such an action: see `engine decide {point} --schema`",
                None,
            )
            continue
        for code, count in sorted(held.requirements.items()):
            if code not in used.codes[point]:
                yield Gap(
                    Kind.REQUIREMENT_NEVER_FOUND,
                    f"{point}/{code}",
                    f"no recorded decision at `{point}` has the finding `{code}`",
                    f"it held in all of them: {count.title[:1].lower()}{count.title[1:]}",
                    "nothing, if a case shows that it can fail (`engine policy test --cases`)",
                    policy.where(count.file, count.line),
                )

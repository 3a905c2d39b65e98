"""All tools for one agent: visibility, the outcome of a call by name, and the value that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from engine.cli.outputs import table
from engine.cli.tools.changes import condition_text, rules_about
from engine.cli.tools.explain import EXPLANATION, place
from engine.cli.usage import not_one_of
from engine.coverage import ToolValues
from engine.coverage.tool_values import CoveredRule
from engine.documents.files import printable
from engine.engine import Engine
from engine.errors import DecideError, Location
from engine.flow import Context
from engine.gather import gather
from engine.model import Decision
from engine.points.registry import find
from engine.policy_bundle.build import PolicyBundle

_OUTCOMES = {"deny": "denied", "confirm": "a person is asked", "allow": "allowed"}
_HEAD = ("tool", "visible", "a call without arguments", "because of")
_SECTIONS = {"policy": "policies", "profile": "profiles"}
_REFUSED = ("tool", "policy", "principal", "profile")
"""Needs of the explanation without which a call is refused, whatever rules say."""


@dataclass(frozen=True, slots=True)
class ListedRule:
    """A rule that is about a tool."""

    what: str
    conditions: str
    where: Location | None
    every_tool: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One tool. `call` is what a call without arguments gets; `rules` are in the order in which they are tried."""

    tool: str
    title: str
    visible: bool
    hidden_for: tuple[str, ...]
    call: str
    by: str
    where: Location | None
    rules: tuple[ListedRule, ...]


def check_names(policy: PolicyBundle, stated: Mapping[str, str | None]) -> None:
    """Refuse a tool policy or a profile that has no entry as a usage error."""
    values = ToolValues(policy).values
    for option, name, known in (
        ("--tool-policy", stated["policy"], values["policies"]),
        ("--profile", stated["profile"], values["profiles"]),
    ):
        if name is not None and name not in known:
            raise typer.BadParameter(not_one_of(name, known), param_hint=option)


def listing(engine: Engine, stated: Mapping[str, str | None], context: Context) -> list[Row]:
    """A row for every tool with an entry. Raises EngineError where OPA cannot be asked."""
    policy, services = engine.policy, engine.opened
    if policy is None:
        raise _fault(engine)
    values = ToolValues(policy)
    request = {name: value for name, value in stated.items() if value is not None}
    answer = engine.check("tool_visibility", {**request, "tools": list(values.tools)}, context)
    if answer.fault is not None:
        raise answer.fault
    with services.policy() as serving:
        rows, point = [], find("tool_call")
        for tool in values.tools:
            call = {**request, "call": {"name": tool, "arguments": {}}}
            document = gather(point, call, context.caller, services.gather_under(serving, point.name)).document
            explanation = engine.opa.ask(EXPLANATION, document).result
            rows.append(_row(values, stated, tool, explanation, answer.decision))
    return rows


def _row(
    values: ToolValues, stated: Mapping[str, str | None], tool: str, explanation: Mapping[str, Any], decision: Decision
) -> Row:
    about = rules_about(values, stated.get("policy"), tool)
    notices = tuple(
        ListedRule(
            f"{rule.section} {rule.name}", condition_text(rule), values.where(*rule.path), rule.selectors == ("*",)
        )
        for rule in about
    )
    call, by, where = _call(values, stated, about, explanation)
    visible = tool in getattr(decision.limits, "visible", ())
    found = sorted(decision.findings, key=lambda finding: finding.subject is not None)  # of every tool first
    hidden = (one.code for one in found if one.subject is None or one.subject.rpartition("/")[2] == tool)
    return Row(tool, values.values["tools"][tool]["title"], visible, tuple(hidden), call, by, where, notices)


def _call(
    values: ToolValues, stated: Mapping[str, str | None], about: list[CoveredRule], explanation: Mapping[str, Any]
) -> tuple[str, str, Location | None]:
    """OPA's explanation of a call in words: the outcome, the deciding value and its place."""
    matched = next((rule for rule in about if rule.name == explanation["rule"]), None)
    refused = [need for need in _REFUSED if need in explanation["needs"]]
    if refused and (matched is None or matched.section != "deny"):
        what = "profile" if refused[0] == "profile" else "policy"
        name = stated.get(what)
        section = values.values.get(_SECTIONS[what], {})
        if name is None or name not in section:
            problem_text = f"no {what} is stated" if name is None else f"there is no {what} {printable(name, 128)}"
            return _OUTCOMES["deny"], problem_text, values.where("tools", _SECTIONS[what])
        return _OUTCOMES["deny"], f"{what} {name} does not grant it", values.where("tools", _SECTIONS[what], name)
    if matched is not None:
        return _OUTCOMES[matched.section], f"rule {matched.name}", values.where(*matched.path)
    asks = explanation["base"] == "confirm_all"
    where = values.where("tools", "policies", stated.get("policy") or "")
    return _OUTCOMES["confirm" if asks else "deny"], f"base {explanation['base']}", where


def as_text(rows: Sequence[Row], policy: str | None, profile: str | None) -> str:
    """A table with the rules of each tool, in the order in which they are tried."""
    head = f"under the policy {policy or '(none stated)'}, with the profile {profile or '(none stated)'}"
    lines = [head, "", table(_HEAD, [*map(_cells, rows)])]
    every = {one.what: one for row in rows for one in row.rules if one.every_tool}
    if every:
        lines += ["", "rules for every tool", *map(_line, every.values())]
    for row in rows:
        if own := [one for one in row.rules if not one.every_tool]:
            lines += ["", f"{row.tool}: {row.title}", *map(_line, own)]
    seen = sum(row.visible for row in rows)
    return "\n".join([*lines, "", f"{seen} of {len(rows)} tools are visible; every call is decided by its arguments"])


def _line(one: ListedRule) -> str:
    return f"  {one.what}: {one.conditions}{place(one.where)}"


def _cells(row: Row) -> tuple[str, ...]:
    visible = "yes" if row.visible else f"no ({', '.join(row.hidden_for)})" if row.hidden_for else "no"
    return (row.tool, visible, row.call, f"{row.by}{place(row.where)}")


def _fault(engine: Engine) -> Exception:
    fault = getattr(engine.opa, "fault", None)
    return fault or DecideError("OPA is not running", remedy="run `engine doctor` to see what this machine lacks")

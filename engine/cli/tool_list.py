"""Every tool for one agent: seen or not, what a call by name would get, and the value that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.cli.tool_changes import condition_text
from engine.cli.tool_explain import EXPLANATION
from engine.coverage import ToolValues
from engine.coverage.tool_values import Rule
from engine.engine import Engine
from engine.errors import DecideError, Location
from engine.files import shown
from engine.flow import Context, gather
from engine.points.registry import find

_OUTCOMES = {"deny": "denied", "confirm": "a person is asked", "allow": "allowed"}
_SECTIONS = {"policy": "policies", "profile": "profiles"}
_REFUSED = ("tool", "policy", "principal", "profile")
"""Needs of the explanation without which a call is refused, whatever rules say."""


@dataclass(frozen=True, slots=True)
class Said:
    """A rule that is about a tool."""

    what: str
    conditions: str
    where: Location | None
    every_tool: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One tool. `call` is what a call without arguments gets; `said` are rules in the order in which they are asked."""

    tool: str
    title: str
    visible: bool
    hidden_for: tuple[str, ...]
    call: str
    by: str
    where: Location | None
    said: tuple[Said, ...]


def listing(engine: Engine, stated: Mapping[str, str | None], context: Context) -> list[Row]:
    """A row for every tool with an entry. Raises EngineError where OPA cannot be asked."""
    policy = engine.policy
    if policy is None or engine.parts is None:
        raise _fault(engine)
    values = ToolValues(policy)
    request = {name: value for name, value in stated.items() if value is not None}
    answer = engine.check("tool_visibility", {**request, "tools": list(values.tools)}, context)
    if answer.fault is not None:
        raise answer.fault
    limits = answer.decision.limits
    visible = frozenset(() if limits is None else limits.model_dump()["visible"])
    hidden: dict[str | None, list[str]] = {None: []}
    for finding in answer.decision.findings:
        tool = None if finding.subject is None else finding.subject.rpartition("/")[2]
        hidden.setdefault(tool, []).append(finding.code)
    serving = engine.parts.serving()
    try:
        rows = []
        for tool in values.tools:
            call = {**request, "call": {"name": tool, "arguments": {}}}
            document = gather(find("tool_call"), call, engine.parts, context, serving).document
            said = engine.opa.ask(EXPLANATION, document).result
            seen, why = tool in visible, (*hidden[None], *hidden.get(tool, ()))
            rows.append(_row(values, stated, tool, said, visible=seen, hidden=why))
    finally:
        serving.release()
    return rows


def _row(
    values: ToolValues,
    stated: Mapping[str, str | None],
    tool: str,
    said: Mapping[str, Any],
    *,
    visible: bool,
    hidden: tuple[str, ...],
) -> Row:
    policy = stated.get("policy")
    about = [rule for rule in values.of_policy(policy) if tool in rule.tools] if policy in values.policies else []
    told = tuple(
        Said(f"{rule.section} {rule.name}", condition_text(rule), values.where(*rule.path), rule.selectors == ("*",))
        for rule in about
    )
    call, by, where = _call(values, stated, about, said)
    return Row(tool, values.values["tools"][tool]["title"], visible, hidden, call, by, where, told)


def _call(
    values: ToolValues, stated: Mapping[str, str | None], about: list[Rule], said: Mapping[str, Any]
) -> tuple[str, str, Location | None]:
    """OPA's explanation of a call in words: what it gets, what says so, where that stands."""
    matched = next((rule for rule in about if rule.name == said["rule"]), None)
    refused = [need for need in _REFUSED if need in said["needs"]]
    if refused and (matched is None or matched.section != "deny"):
        what = "profile" if refused[0] == "profile" else "policy"
        name = stated.get(what)
        section = values.values.get(_SECTIONS[what], {})
        if name is None or name not in section:
            told = f"no {what} is stated" if name is None else f"there is no {what} {shown(name, 128)}"
            return _OUTCOMES["deny"], told, values.where("tools", _SECTIONS[what])
        return _OUTCOMES["deny"], f"{what} {name} does not grant it", values.where("tools", _SECTIONS[what], name)
    if matched is not None:
        return _OUTCOMES[matched.section], f"rule {matched.name}", values.where(*matched.path)
    asks = said["base"] == "confirm_all"
    where = values.where("tools", "policies", stated.get("policy") or "")
    return _OUTCOMES["confirm" if asks else "deny"], f"base {said['base']}", where


def as_text(rows: Sequence[Row], policy: str | None, profile: str | None) -> str:
    """A table, under each tool the rules about it in the order in which they are asked."""
    head = f"under the policy {policy or '(none stated)'}, with the profile {profile or '(none stated)'}"
    lines = [head, "", *_table([("tool", "visible", "a call without arguments", "because of"), *map(_cells, rows)])]
    every = {one.what: one for row in rows for one in row.said if one.every_tool}
    if every:
        lines += ["", "rules for every tool", *map(_line, every.values())]
    for row in rows:
        if own := [one for one in row.said if not one.every_tool]:
            lines += ["", f"{row.tool}: {row.title}", *map(_line, own)]
    seen = sum(row.visible for row in rows)
    return "\n".join([*lines, "", f"{seen} of {len(rows)} tools are visible; every call is decided by its arguments"])


def _line(one: Said) -> str:
    return f"  {one.what}: {one.conditions}{_place(one.where)}"


def _cells(row: Row) -> tuple[str, ...]:
    visible = "yes" if row.visible else f"no ({', '.join(row.hidden_for)})" if row.hidden_for else "no"
    return (row.tool, visible, row.call, f"{row.by}{_place(row.where)}")


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def as_json(rows: Sequence[Row]) -> str:
    """Every row with all that is known."""
    return json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=2)


def _place(where: Location | None) -> str:
    return "" if where is None else f" ({where.file}:{where.line})"


def _fault(engine: Engine) -> Exception:
    fault = getattr(engine.opa, "fault", None)
    return fault or DecideError("OPA is not running", remedy="run `engine doctor` to see what this machine lacks")

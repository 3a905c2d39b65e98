"""Every tool for one agent: seen or not, what a call by name would get, and the value that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.cli.tool_changes import condition_text
from engine.cli.tool_explain import EXPLANATION
from engine.coverage import ToolValues
from engine.engine import Engine
from engine.errors import DecideError, Location
from engine.flow import Context, gather
from engine.points.registry import find

_OUTCOMES = {
    "deny": "denied",
    "confirm": "a person is asked",
    "allow": "allowed",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A value that says something about a tool: a rule of a section, or the base of a policy."""

    what: str
    conditions: str | None
    where: Location | None


@dataclass(frozen=True, slots=True)
class Row:
    """One tool. `call` is what a call without arguments would get; `said` is in the order in which it is asked."""

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
    hidden: dict[str, list[str]] = {}
    for finding in answer.decision.findings:
        hidden.setdefault((finding.subject or "").rpartition("/")[2], []).append(finding.code)
    serving = engine.parts.serving()
    try:
        rows = []
        for tool in values.tools:
            call = {**request, "call": {"name": tool, "arguments": {}}}
            document = gather(find("tool_call"), call, engine.parts, context, serving).document
            said = engine.opa.ask(EXPLANATION, document).result
            rows.append(_row(values, stated.get("policy"), tool, said, tool in visible, tuple(hidden.get(tool, ()))))
    finally:
        serving.release()
    return rows


def _row(
    values: ToolValues, policy: str | None, tool: str, said: Mapping[str, Any], visible: bool, hidden: tuple[str, ...]
) -> Row:
    rules = list(values.of_policy(policy)) if policy in values.policies and policy is not None else []
    about = [rule for rule in rules if tool in rule.tools]
    chosen = next((rule for rule in about if rule.name == said.get("rule")), None)
    title = values.values["tools"][tool]["title"]
    known = [Said(f"{rule.section} {rule.name}", condition_text(rule), values.where(*rule.path)) for rule in about]
    if chosen is not None:
        return Row(
            tool,
            title,
            visible,
            hidden,
            _OUTCOMES[chosen.section],
            f"rule {chosen.name}",
            values.where(*chosen.path),
            tuple(known),
        )
    stated = policy if policy in values.policies else None
    where = values.where("tools", "policies", stated) if stated else values.where("tools", "policies")
    base = str(said.get("base"))
    outcome = _OUTCOMES["confirm"] if said.get("section") == "confirm" else _OUTCOMES["deny"]
    return Row(tool, title, visible, hidden, outcome, f"base {base}", where, tuple(known))


def as_text(rows: Sequence[Row], policy: str | None, profile: str | None) -> str:
    """A table, under each tool the rules about it in the order in which they are asked."""
    head = f"under the policy {policy or '(none stated)'}, with the profile {profile or '(none stated)'}"
    lines = [head, "", *_table([("tool", "visible", "a call by name", "because of"), *map(_cells, rows)])]
    for row in rows:
        if row.said:
            lines += ["", f"{row.tool}: {row.title}"]
            lines += [f"  {one.what}: {one.conditions}{_place(one.where)}" for one in row.said]
    seen = sum(row.visible for row in rows)
    return "\n".join([*lines, "", f"{seen} of {len(rows)} tools are visible; every call is decided by its arguments"])


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

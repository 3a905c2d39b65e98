"""A decision on a tool call told to people: findings with the values behind them, what matched, what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.cli.formats import FORMATS, Context
from engine.cli.tool_changes import Case, Change, changes, condition_text
from engine.coverage import ToolValues
from engine.engine import Engine
from engine.errors import Exit, Location
from engine.explain import report
from engine.files import shown
from engine.flow import Answer
from engine.report import Report

EXPLANATION = "lib/tool_explanation/explanation"
"""The rule of rego/admission/ that says what matched; it decides nothing."""

_FACTS = {"destinations": "origin", "paths": "path", "commands": "words"}
_NAMES = {"destinations": "hosts", "paths": "paths", "commands": "commands"}


@dataclass(frozen=True, slots=True)
class Told:
    """One answer for people. `case` is None where nothing could be asked about the call."""

    report: Report
    case: Case | None
    changes: tuple[Change, ...]
    exit: Exit


def explained(engine: Engine, answer: Answer, path: str, principal: str | None) -> Told:
    """The answer with OPA's explanation of it. Raises DecideError where OPA has gone meanwhile."""
    told = report(path, answer, engine.policy)
    if answer.document is None or engine.policy is None or answer.fault is not None:
        return Told(told, None, (), answer.exit)
    explanation = engine.opa.ask(EXPLANATION, answer.document).result
    case = Case(ToolValues(engine.policy), answer.document, explanation, principal)
    return Told(told, case, tuple(changes(case, answer.decision.findings)), answer.exit)


def as_text(told: Told, width: int, *, color: bool) -> str:
    """The report as `engine check` tells it, then what matched and what would have to change."""
    lines = FORMATS["text"]([told.report], Context(exit=told.exit, width=width, color=color)).splitlines()
    if told.case is not None:
        lines += ["", *_matched(told.case)]
    if told.changes:
        lines += ["", "possible changes; run `engine tools explain` again after each:", ""]
        for change in told.changes:
            lines += _change(change)
    return "\n".join(lines) + "\n"


def as_json(told: Told) -> str:
    """The document of `engine check --format json` of one report, with `explanation` and `changes`."""
    document = json.loads(FORMATS["json"]([told.report], Context(exit=told.exit)))
    document["explanation"] = None if told.case is None else told.case.explanation
    document["changes"] = [asdict(change) for change in told.changes]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _change(change: Change) -> Iterator[str]:
    first, *more = change.text.split("\n")
    place = "" if change.where is None else f"{change.where}: "
    yield f"  - {place}{shown(first, 2_000)}"
    yield from (f"      {shown(line, 2_000)}" for line in more)


def _matched(case: Case) -> Iterator[str]:
    values, said = case.values, case.explanation
    stated = case.document["asked"]
    yield "deciding values:"
    entry = values.policy.row(("tools", "tools", case.tool))
    title = entry.value["title"] if entry.value is not None else "has no entry, so it is hidden and refused"
    yield _row("tool", f"{case.tool}: {title}", entry.where)
    if case.policy is not None:
        policy = values.policy.row(("tools", "policies", case.policy))
        yield _row("policy", f"{case.policy}, its base is {policy.value['base']}", policy.where)
    else:
        yield _row("policy", _unknown(stated.get("policy"), "deny_all holds"), values.where("tools", "policies"))
    if case.profile is not None:
        held = "has the tool" if said.get("in_profile") is True else "does not have the tool"
        yield _row("profile", f"{case.profile} {held}", values.where("tools", "profiles", case.profile))
    else:
        yield _row("profile", _unknown(stated.get("profile"), "no tool is in it"), values.where("tools", "profiles"))
    yield _row("visible", "yes" if said.get("visible") is True else "no", None)
    yield from _rules(case)
    yield from _uncovered(case)


def _unknown(name: Any, then: str) -> str:
    return f"none is stated: {then}" if name is None else f"there is none `{shown(str(name), 128)}`: {then}"


def _rules(case: Case) -> Iterator[str]:
    chosen = case.explanation.get("rule")
    for rule in case.rules:
        mark = "  <- this one matched" if rule.name == chosen else ""
        told = f"{rule.section} {rule.name}: {shown(condition_text(rule), 200)}{mark}"
        yield _row("rule", told, case.values.where(*rule.path))
    if not isinstance(chosen, str):
        yield _row("matched", "no rule, so the base of the policy says it", None)
    elif not any(rule.name == chosen for rule in case.rules):
        yield _row("matched", shown(chosen, 200), None)


def _uncovered(case: Case) -> Iterator[str]:
    left: Mapping[str, Any] = (case.explanation.get("uncovered") or {}) if case.explanation.get("needs") else {}
    words = {one["id"] for one in case.document["destinations"] if "word" in one}
    for kind, fact in _FACTS.items():
        facts = {one["id"]: _word(case, one) if "word" in one else one.get(fact) for one in case.document[kind]}
        for id_ in left.get(kind, ()):
            value = facts.get(id_)
            text = " ".join(value) if isinstance(value, list) else value
            told = "in no form that a rule could cover" if text is None else f"`{shown(text, 300)}`"
            by = f"`{_NAMES[kind]}`"
            if kind == "destinations" and id_ in words:
                told, by = f"{told}, a word that may be a host", f"{by} or `commands`"
            yield _row("uncovered", f"{shown(id_, 300)}: {told}, by {by} of no allow rule", None)


def _word(case: Case, one: Mapping[str, Any]) -> str | None:
    """The word of a command that may be a host, where it is among the words that are compared."""
    for command in case.document["commands"]:
        if command["id"] == one["word"]["command"] and one["word"]["index"] < len(command.get("words", ())):
            return str(command["words"][one["word"]["index"]])
    return None


def _row(name: str, text: str, where: Location | None) -> str:
    return f"  {name:<10} {text}{'' if where is None else f' ({where.file}:{where.line})'}"

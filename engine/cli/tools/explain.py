"""A decision on a tool call, explained: findings with the values behind them, what matched, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.cli.formats import extended
from engine.cli.tools.changes import Case, Change, changes, condition_text
from engine.coverage import ToolValues
from engine.documents.files import printable
from engine.engine import Engine
from engine.errors import Location
from engine.flow import Answer
from engine.model import Outcome
from engine.reports.explain import Report, report

EXPLANATION = "lib/tool_explanation/explanation"
"""The rule of rego/admission/ that states what matched; it decides nothing."""

_KINDS = {"destinations": ("origin", "hosts"), "paths": ("path", "paths"), "commands": ("words", "commands")}
"""Where the input has what rules cover: the key of its value, and the condition of an allow rule that covers it."""


@dataclass(frozen=True, slots=True)
class CallExplanation:
    """One answer for people. `case` is None if no explanation is available."""

    report: Report
    case: Case | None
    changes: tuple[Change, ...]

    def printed(self, how: str) -> str:
        """The report as `engine check` prints it, then what matched and what would have to change."""
        lines = [] if self.case is None else ["", *_matched(self.case)]
        if self.changes:
            lines += ["", "possible changes; run `engine tools explain` again after each:", ""]
        lines += [line for change in self.changes for line in _change(change)]
        explanation = None if self.case is None else self.case.explanation
        more = {"explanation": explanation, "changes": [asdict(change) for change in self.changes]}
        return extended(how, self.report, more, lines)


def explained(engine: Engine, answer: Answer, path: str, principal: str | None) -> CallExplanation:
    """The answer with OPA's explanation of it. Raises DecideError if OPA ended in the meantime."""
    outcome = report(path, answer, engine.policy)
    if answer.document is None or engine.policy is None or answer.fault is not None:
        return CallExplanation(outcome, None, ())
    explanation = engine.opa.ask(EXPLANATION, answer.document).result
    case = Case(ToolValues(engine.policy), answer.document, explanation, principal)
    allowed = answer.decision.outcome is Outcome.ALLOW
    findings = tuple(item.finding for item in outcome.explained)
    return CallExplanation(outcome, case, () if allowed else tuple(changes(case, findings)))


def _change(change: Change) -> Iterator[str]:
    first, *more = change.text.split("\n")
    place = "" if change.where is None else f"{change.where}: "
    yield f"  - {place}{printable(first, 2_000)}"
    yield from (f"      {printable(line, 2_000)}" for line in more)


def _matched(case: Case) -> Iterator[str]:
    values, explanation = case.values, case.explanation
    stated = case.document["context"]
    yield "deciding values:"
    entry = values.policy.row(("tools", "tools", case.tool))
    title = entry.value["title"] if entry.value is not None else "has no entry, so it is hidden and refused"
    yield _row("tool", f"{case.tool}: {title}", entry.where)
    if case.policy is not None:
        policy = values.policy.row(("tools", "policies", case.policy))
        yield _row("policy", f"{case.policy}, its base is {policy.value['base']}", policy.where)
    else:
        yield _row("policy", _unknown(stated.get("policy"), "deny_all applies"), values.where("tools", "policies"))
    if case.profile is not None:
        held = "has the tool" if explanation.get("in_profile") is True else "does not have the tool"
        yield _row("profile", f"{case.profile} {held}", values.where("tools", "profiles", case.profile))
    else:
        yield _row("profile", _unknown(stated.get("profile"), "it has no tools"), values.where("tools", "profiles"))
    yield _row("visible", "yes" if explanation.get("visible") is True else "no", None)
    yield from _rules(case)
    yield from _uncovered(case)


def _unknown(name: Any, then: str) -> str:
    return f"none stated: {then}" if name is None else f"`{printable(str(name), 128)}` does not exist: {then}"


def _rules(case: Case) -> Iterator[str]:
    chosen = case.explanation.get("rule")
    if not isinstance(chosen, str):
        yield _row("matched", "no rule; the base of the policy decides", None)
    rules = {rule.name: rule for rule in case.rules}
    names = chosen.split(", ") if isinstance(chosen, str) else []
    for name in names:
        rule = rules.pop(name, None)
        text = f"{name}: its words were compared as text; which program runs was not looked at"  # an approved prefix
        if rule is not None:
            text = f"{rule.section} {name}: {printable(condition_text(rule), 200)}"
        yield _row("matched", text, None if rule is None else case.values.where(*rule.path))
    if rules:
        yield _row("others", f"rules for this tool that did not decide: {len(rules)}", None)


def _uncovered(case: Case) -> Iterator[str]:
    left: Mapping[str, Any] = (case.explanation.get("uncovered") or {}) if case.explanation.get("needs") else {}
    words = {one["id"] for one in case.document["destinations"] if "word" in one}
    for kind, (fact, condition) in _KINDS.items():
        facts = {one["id"]: _word(case, one) if "word" in one else one.get(fact) for one in case.document[kind]}
        for id_ in left.get(kind, ()):
            value = facts.get(id_)
            text = " ".join(value) if isinstance(value, list) else value
            note = "not in a form that a rule could cover" if text is None else f"`{printable(text, 300)}`"
            by = f"`{condition}`"
            if kind == "destinations" and id_ in words:
                note, by = f"{note}, a word that may be a host", f"{by} or `commands`"
            yield _row("uncovered", f"{printable(id_, 300)}: {note}; no allow rule lists it in {by}", None)


def _word(case: Case, one: Mapping[str, Any]) -> str | None:
    """The word of a command that may be a host, where it is among the words that are compared."""
    for command in case.document["commands"]:
        if command["id"] == one["word"]["command"] and one["word"]["index"] < len(command.get("words", ())):
            return str(command["words"][one["word"]["index"]])
    return None


def _row(name: str, text: str, where: Location | None) -> str:
    return f"  {name:<10} {printable(text, 2_000)}{place(where)}"


def place(where: Location | None) -> str:
    """File and line in parentheses, to append to a text."""
    return "" if where is None else f" ({where.file}:{where.line})"

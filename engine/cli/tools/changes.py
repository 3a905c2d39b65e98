"""What must change for a call to be allowed: edits of values, as sentences with file and line.

The reasons are OPA's: findings, and the explanation of rego/admission/lib/tools. Nothing is decided
here; after an edit, the call is decided again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.coverage import ToolValues
from engine.coverage.tool_values import ANY, CommandsWith, CoveredRule
from engine.documents.edits import scalar
from engine.documents.files import printable
from engine.errors import Location
from engine.model import Finding

_MOST_RULES = 2
_CWD = "{cwd}/"


@dataclass(frozen=True, slots=True)
class Change:
    """One edit, or something to do instead of one; `where` is the value to edit."""

    text: str
    where: Location | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A refused call: the values, the input as OPA saw it, its explanation, the principal."""

    values: ToolValues
    document: Mapping[str, Any]
    explanation: Mapping[str, Any]
    principal: str | None

    @property
    def tool(self) -> str:
        """The tool that was called."""
        return str(self.document["call"]["tool"])

    @property
    def policy(self) -> str | None:
        """The tool policy that was stated, where there is one of this name."""
        stated = self.document["context"].get("policy")
        return stated if stated in self.values.policies else None

    @property
    def profile(self) -> str | None:
        """The profile that was stated, where there is one of this name."""
        stated = self.document["context"].get("profile")
        return stated if stated in self.values.values.get("profiles", {}) else None

    @property
    def rules(self) -> list[CoveredRule]:
        """The rules of the policy that are about the tool."""
        return rules_about(self.values, self.policy, self.tool)

    @property
    def found(self) -> dict[str, list[Any]]:
        """What an allow rule has to cover, as its conditions are written; words of a command are named with it.

        Of a call with several commands, only those that no rule allows, with their hosts and paths.
        """
        open_ = self._open
        facts = {
            kind: [one for one in self.document[kind] if one.get(field) in open_ or not open_ or field not in one]
            for kind, field in (("commands", "id"), ("destinations", "command"), ("paths", "command"))
        }
        paths = [one for one in facts["paths"] if "path" in one]
        below = [f"{_CWD}{one['below_cwd']}" if "below_cwd" in one else one["path"] for one in paths]
        beyond = self.explanation.get("beyond", {})
        return {
            "hosts": [one["origin"] for one in facts["destinations"] if "origin" in one and "word" not in one],
            "paths": list(dict.fromkeys(below)),
            "commands": [
                CommandsWith(tuple(one["words"]), tuple(beyond.get(one["id"], ())))
                for one in facts["commands"]
                if "words" in one
            ],
        }

    @property
    def _open(self) -> set[str]:
        """The commands that no rule covers, or not with each of their hosts and paths."""
        uncovered = self.explanation.get("uncovered") or {}
        beside = [
            one["command"]
            for kind in ("destinations", "paths")
            for one in self.document[kind]
            if one["id"] in uncovered.get(kind, ()) and "command" in one
        ]
        return {*uncovered.get("commands", ()), *beside}

    @property
    def where(self) -> dict[str, str]:
        """Conditions on the arguments that no allow rule covers, as narrow as they can be."""
        open_ = (self.explanation.get("uncovered") or {}).get("values", ())
        facts = {one["name"]: one for one in self.document["values"]}
        return {name: _condition(facts.get(name, {})) for name in open_}

    def edit(self, text: str, *path: str | int) -> Change:
        """An edit of the value at this path of policy/tools.yaml."""
        return Change(text, self.values.where("tools", *path))


def rules_about(values: ToolValues, policy: str | None, tool: str) -> list[CoveredRule]:
    """The rules of a policy that apply to a tool, in order; none if the policy is unknown."""
    if policy is None or policy not in values.policies:
        return []
    return [rule for rule in values.of_policy(policy) if tool in rule.tools]


def changes(case: Case, findings: tuple[Finding, ...]) -> list[Change]:
    """What to change: first for the tool policy, then for the other findings. Each edit is listed once."""
    found: list[Change] = []
    others = [finding for finding in findings if finding.code not in _BY_NEED]
    rewritten = any(finding.level == "deny" and finding.code not in _OTHERS for finding in others)
    for need in _first(case.explanation.get("needs", ()), allow=not rewritten):
        found += _NEEDS[need](case)
    if not rewritten and any(finding.level == "confirm" for finding in findings):
        found.append(Change(_APPROVAL))
    for finding in others:
        if finding.code in _OTHERS:
            found += _OTHERS[finding.code](case, finding)
    alike: dict[str, list[str]] = {}
    for finding in others:
        if finding.code not in _OTHERS:
            alike.setdefault(finding.remedy, []).extend(() if finding.subject is None else (finding.subject,))
    found += [_remedy(remedy, subjects) for remedy, subjects in alike.items()]
    return list(dict.fromkeys(found))


def _first(needs: Sequence[str], *, allow: bool) -> list[str]:
    """The needs that are known now.

    Without a tool or a policy, nothing is known about rules; and no edit is suggested against a rule that
    refuses or requires approval on purpose, nor for a call that has to be written in another way.
    """
    known = [need for need in _NEEDS if need in needs]
    if not allow or {"no_deny_rule", "no_confirm_rule"} & set(known):
        known = [need for need in known if need != "allow_rule"]
    return [need for need in known if need in {"tool", "policy"}] or known


def _remedy(remedy: str, subjects: Sequence[str]) -> Change:
    return Change(f"{remedy} ({printable(', '.join(subjects), 300)})" if subjects else remedy)


def _entry(case: Case) -> Iterator[Change]:
    arguments = [one["name"] for one in case.document["call"]["arguments"] if "name" in one]
    entry = pasted(case.tool, dict.fromkeys(arguments, "data"))
    yield case.edit(f"write an entry, with the true types of its arguments:\n{entry}", "tools")


def _policy(case: Case) -> Iterator[Change]:
    names = ", ".join(f"`{name}`" for name in case.values.policies) or "none are defined yet"
    yield case.edit(f"ask under one of these policies: {names}", "policies")


def _principal(case: Case) -> Iterator[Change]:
    who = "a principal (none is named)" if case.principal is None else f"`{printable(case.principal, 256)}`"
    text = f"add {who} to `principals` of the policy `{case.policy}`, or write `any` there"
    yield case.edit(text, "policies", case.policy or "", "principals")


def _profile(case: Case) -> Iterator[Change]:
    profiles = case.values.values.get("profiles", {})
    if case.profile is not None:
        yield case.edit(f"add `{case.tool}` to the profile `{case.profile}`", "profiles", case.profile)
    having = [name for name, selectors in profiles.items() if case.tool in case.values.selected(selectors)]
    if having:
        names = ", ".join(f"`{name}`" for name in having)
        yield case.edit(f"ask with a profile that includes it: {names}", "profiles")


def _rule(case: Case) -> Iterator[Change]:
    for rule in case.rules:
        if rule.name == case.explanation.get("rule"):
            conditions = condition_text(rule)
            if "cwd" not in case.document["context"] and "{cwd}" in conditions:
                about = f"the {rule.section} rule `{rule.name}` ({conditions}) matches every path of a call without one"
                yield Change(f"name the working folder with `--cwd`, or as `cwd` of the request: {about}")
                return
            narrow = f"narrow the {rule.section} rule `{rule.name}` ({conditions})"
            yield case.edit(f"{narrow} to exclude this call; no allow rule overrides it", *rule.path[1:])


def _allow(case: Case) -> Iterator[Change]:
    steps = [(rule, _missing(case, rule)) for rule in case.rules if rule.section == "allow"]
    fewest = min((len(missing) for _, missing in steps if missing), default=0)
    for rule, missing in [one for one in steps if len(one[1]) == fewest > 0][:_MOST_RULES]:
        yield case.edit(f"{', and '.join(missing)} the allow rule `{rule.name}`", *rule.path[1:])
    if case.policy is not None:
        yield _new_rule(case, case.policy)
    yield from _prefix(case)


def _missing(case: Case, rule: CoveredRule) -> list[str]:
    """`add … to `hosts` of`: what of this call the rule does not name, by condition."""
    cwd = str(case.document["context"].get("cwd", "")).rstrip("/") + "/"
    steps = []
    for name, entries in case.found.items():
        stated = rule.conditions.get(name, ())
        left = [entry for entry in entries if stated != ANY and not _is_listed(entry, stated, cwd)]
        if left and stated:
            steps.append(f"add {_flow(left)} to `{name}` of")
        elif left:
            steps.append(f"write `{name}: [{_flow(left)}]` into")
    steps += [f"widen the condition on `{name}` in `where` of" for name in case.where if name in rule.where]
    steps += [f"write `{name}: {one}` below `where` of" for name, one in case.where.items() if name not in rule.where]
    return steps


def _condition(fact: Mapping[str, Any]) -> str:
    """The condition that covers this value and no other."""
    if (sql := fact.get("sql")) is not None and sql["understood"]:
        parts = ", ".join(
            f"{name}: [{_flow(sql[name])}]" for name in ("statements", "tables", "functions") if sql[name]
        )
        return f"{{sql: {{{parts}}}}}"
    items = [one.get("text", one.get("number", one.get("boolean"))) for one in fact.get("items", ())]
    if not fact.get("present"):
        return ANY
    return ANY if not items or None in items else f"{{one_of: [{_flow(items)}]}}"


def _is_listed(entry: Any, stated: tuple[Any, ...], cwd: str) -> bool:
    if isinstance(entry, CommandsWith):
        rules = map(_with, stated)
        return any(entry.words[: len(one.words)] == one.words and {*entry.can} <= {*one.can} for one in rules)
    absolute = entry.replace(_CWD, cwd, 1)
    return any(
        absolute == (whole := one.replace(_CWD, cwd, 1)) or (whole.endswith("/") and absolute.startswith(whole))
        for one in stated
    )


def _with(entry: Any) -> CommandsWith:
    return entry if isinstance(entry, CommandsWith) else CommandsWith(entry)


def _new_rule(case: Case, policy: str) -> Change:
    conditions = "".join(f", {name}: [{_flow(entries)}]" for name, entries in case.found.items() if entries)
    if case.where:
        conditions += f", where: {{{', '.join(f'{name}: {one}' for name, one in case.where.items())}}}"
    identity = "".join(one if one.isalnum() else "_" for one in case.tool.lower()).strip("_")
    rule = f"- {{id: allow_{identity}, tools: [{case.tool}]{conditions}}}"
    rulesets = case.values.policies[policy]
    if not rulesets:
        text = f"write a ruleset with this under `allow`, and name it in the policy `{policy}`:\n{rule}"
        return case.edit(text, "policies", policy, "rulesets")
    text = f"write a rule under `allow` of the ruleset `{rulesets[-1]}`, as narrow as it can be:\n{rule}"
    return case.edit(text, "rulesets", rulesets[-1], "allow")


def _prefix(case: Case) -> Iterator[Change]:
    """Beginnings count for tools that run commands, and not under a policy that hides what no rule names."""
    cwd, uncovered = case.document["context"].get("cwd"), case.explanation.get("uncovered") or {}
    commands = [
        one for one in case.document["commands"] if "words" in one and one["id"] in uncovered.get("commands", ())
    ]
    runs = "execute" in case.values.values["tools"][case.tool]["side_effects"]
    if cwd is None or case.principal is None or not commands or not runs or case.explanation.get("base") == "deny_all":
        return
    head = f"engine tools prefixes approve --principal {shlex.quote(case.principal)} --cwd {shlex.quote(cwd)}"
    open_ = uncovered.get("destinations", ())
    words = [one for one in case.document["destinations"] if "word" in one and one["id"] in open_]
    for command in commands[:_MOST_RULES]:
        hosts = [one["word"]["index"] for one in words if one["word"]["command"] == command["id"]]
        parts = [one["index"] for one in case.document["command_parts"] if one["command"] == command["id"]]
        prefix = shlex.join(command["words"][: max([2, *hosts, *parts]) + 1])
        instruction = "have another person approve the command prefix for this principal and folder:"
        yield Change(f"{instruction}\n{head} --tool {case.tool} -- {prefix}")


def _type(case: Case, finding: Finding) -> Iterator[Change]:
    name = (finding.subject or "").removeprefix("call.").rpartition("/")[2]
    text = f"state the type of the argument `{printable(name, 128)}` under `arguments`: `data` accepts anything"
    yield case.edit(text, "tools", case.tool, "arguments")


def _secrets(case: Case, finding: Finding) -> Iterator[Change]:
    yield _remedy(finding.remedy, [finding.subject or ""])
    yield case.edit("write `secrets: true` if its arguments must contain secrets", "tools", case.tool, "secrets")


def _definition(case: Case, finding: Finding) -> Iterator[Change]:
    yield _remedy(finding.remedy, [finding.subject or ""])
    stated = case.document.get("definition")
    if isinstance(stated, dict):
        text = f"after reviewing the new definition, pin it: definition: {stated['digest']}"
        yield case.edit(text, "tools", case.tool, "definition")


def pasted(
    tool: str,
    arguments: Mapping[str, str],
    definition: str = "none",
    title: str | None = None,
    curated: str | None = None,
) -> str:
    """An entry of policy/tools.yaml to paste: refused until its side effects are declared.

    `arguments` are their types by name; `curated` is the digest of an implementation, for its reviewer.
    """
    types = ", ".join(f"{scalar(name)}: {kind}" for name, kind in arguments.items())
    prose = "  # for prose, state text instead of data: only secrets are looked for in it"
    review = "" if curated is None else f"  # after a review of its file: [{json.dumps(curated)}]"
    return "\n".join(
        (
            f"{scalar(tool)}:",
            f"  title: {'State what it does' if title is None else json.dumps(title, ensure_ascii=False)}",
            "  side_effects: [network, destructive]  # state what it really does: none, read, write, network, execute",
            "  reversal: []",
            "  # state these where they hold: reads: [untrusted, private], sends: [outward]",
            f"  arguments: {{{types}}}{prose if 'data' in arguments.values() else ''}",
            "  secrets: false",
            f"  paths_on: {'elsewhere' if curated is None else 'this_machine'}",
            f"  environments: [{'' if curated is None else 'workspace'}]",
            f"  curated: []{review}",
            f"  definition: {scalar(definition)}",
        )
    )


def condition_text(rule: CoveredRule) -> str:
    """The conditions of a rule, in a few words."""
    if not rule.conditions and not rule.where:
        return "every call by name" if rule.section != "allow" else "calls without hosts, paths and commands"
    names = [
        f"{name} {ANY if stated == ANY else _flow([list(one) if isinstance(one, tuple) else one for one in stated])}"
        for name, stated in rule.conditions.items()
    ]
    where = [f"{name} {_stated(one)}" for name, one in rule.where.items()]
    if rule.section == "allow":
        return "; ".join((*names, *where))
    return " and ".join((*([" or ".join(names)] if names else []), *where))


def _flow(entries: Sequence[Any]) -> str:
    """Entries as items of a YAML list."""
    return ", ".join(_entry_text(one) for one in entries)


def _entry_text(entry: Any) -> str:
    if isinstance(entry, CommandsWith) and (entry.can or entry.options):
        stated = ("words", entry.words), ("can", entry.can), ("options", entry.options)
        return f"{{{', '.join(f'{name}: [{_flow(listed)}]' for name, listed in stated if listed)}}}"
    if isinstance(entry, str):
        return scalar(entry)
    if isinstance(entry, CommandsWith):
        return f"[{_flow(entry.words)}]"
    return f"[{_flow(entry)}]" if isinstance(entry, list | tuple) else json.dumps(entry)


def _stated(condition: Any) -> str:
    """A condition of `where` in YAML."""
    if isinstance(condition, Mapping):
        return f"{{{', '.join(f'{name}: {_stated(one)}' for name, one in condition.items())}}}"
    return _entry_text(condition)


_NEEDS: Mapping[str, Callable[[Case], Iterator[Change]]] = {
    "tool": _entry,
    "policy": _policy,
    "principal": _principal,
    "profile": _profile,
    "no_deny_rule": _rule,
    "no_confirm_rule": _rule,
    "allow_rule": _allow,
}
"""The needs of the explanation, in the order of the report."""

_BY_NEED = {
    *("tool_unknown", "tool_policy_unknown", "tool_policy_principal", "tool_not_in_profile"),
    *("denied_by_rule", "denied_by_default", "confirmation_by_rule", "confirmation_by_default"),
}
"""Findings that a need explains in more detail."""

_OTHERS: Mapping[str, Callable[[Case, Finding], Iterator[Change]]] = {
    "argument_untyped": _type,
    "secret_in_arguments": _secrets,
    "definition_changed": _definition,
}
"""Findings that an edit of the tool's entry fixes; the others have a remedy."""

_APPROVAL = "have a person approve this one call: ask with `engine tools call`, then `engine approvals grant ID`"

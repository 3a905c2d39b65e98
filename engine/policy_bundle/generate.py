"""Requirements to Rego that fails closed: a finding for each one not proven, and the fold of them.

The findings of a file are appended to the file itself, in its own package, so that names mean
what the author meant; without the file, its point has no decision. A condition is
written out as `not { body }` if that is certainly equal to `not rule(item) == true`, because
calls cost OPA a third of its time; `called` names the rules that keep the call.

Nothing generated may be undefined where a finding is due: `finding`, `level`, `subject` and `added`
return a value for any argument, and undefined `_findings` leave no decision.
`decision` has one definition with an `else`: OPA evaluates two of them separately in a batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import zip_longest

from engine.policy_bundle.archives import GENERATED
from engine.policy_bundle.checks import GENERATED_RULE
from engine.policy_bundle.points import LIMITS_MISSING, PointRules, list_code
from engine.policy_bundle.requirements import Held
from engine.policy_bundle.syntax import Module, Node, Rule, call, declared, key_of, line_of, names_in

_ROUTER = """package admission

default decision := {"outcome": "deny", "findings": []}

%s
decisions := [decided |
	some item in input.items
	decided := decision with input as item
]
"""
_POINT = """package admission.compiled.%(point)s

import future.keywords.not

decision := {"outcome": "allow", "findings": _shown, "limits": data.admission.limits.%(point)s.limits} if {
	_outcome == "allow"
} else := {
	"outcome": "allow",
	"findings": _shown,
	"limits": data.admission.limits.%(point)s.limits,
	"approved": true,
} if {
	_outcome == "confirm"
	data.admission.compiled.common.approved
	every one in _shown { data.admission.compiled.common.covered(one) }
} else := {
	"outcome": "confirm",
	"findings": _shown,
	"approval_seconds": data.policy.approvals.valid_seconds,
} if {
	_outcome == "confirm"
} else := {"outcome": _outcome, "findings": _shown} if {
	_outcome in {"confirm", "deny"}
}

_outcome := _fold(findings)

findings := _unproven | _unlimited

_unproven := union({
%(sources)s
})

%(lists)s_unlimited contains {"code": %(limits_missing)s, "level": "deny", "subject": null} if {
	_fold(_unproven) in {"allow", "confirm"}
	not {
		is_object(data.admission.limits.%(point)s.limits)
	}
}

_fold(found) := "allow" if {
	every one in found { one.level == "warn" }
} else := "confirm" if {
	every one in found { one.level in {"warn", "confirm"} }
} else := "deny"

%(shown)s
"""
_WORDS = """finding(code, about) := %(waived)s{"code": code, "level": level(code), "subject": about}

level(code) := found if {
	found := data.policy.levels.levels%(point)s[code]
	found in {"confirm", "warn"}
} else := row.level if {
	row := data.policy.levels.levels%(point)s[code]
	row.level in {"confirm", "warn"}
	is_string(row.owner)
	is_string(row.reason)
	is_number(input.now)
	input.now * 1000000000 <= time.parse_rfc3339_ns(concat("", [row.until, "T23:59:59Z"]))
} else := "deny"

subject(list, index, item) := concat("/", [list, item.id]) if {
	is_string(item.id)
} else := $"{list}/#{index}"
"""
_WAIVED = """{"code": code, "level": "warn", "subject": about, "waiver": id} if {
	data.policy.waivers.waivers%(point)s[code]
	id := data.admission.lib.waiver.covering(%(name)s, code, about)
} else := """
_COMMON = """package admission.compiled.common

import future.keywords.not

approved if {
	count(input.approvals) == 1
	%s
}

covered(one) if one.level == "warn"

covered(one) if one.code in input.approvals[0].codes

"""
APPROVALS = "admission/lib/approval.rego"
"""The file that states when an approval satisfies a confirm; without it, none ever does."""
WAIVERS = "admission/lib/waiver.rego"
"""The file that states when a waiver covers a finding; without it, none ever does."""
_ADDED = """
added(code, entry) := object.union(finding(code, null), {"requirement": requirement}) if {
	requirement := substring(_message(entry), 0, 500)
} else := finding(code, null)

_message(entry) := entry if is_string(entry)

_message(entry) := entry.msg if is_string(entry.msg)
"""
_LIST = """_lists contains {"code": %s, "level": "deny", "subject": null} if {
	not {
%s
	}
}

"""
_ALL_SHOWN = """_shown := findings
"""
_SHOWN = """_shown contains one if {
	some one in findings
	not _hidden(one)
}

_hidden(one) if {
	some code in _after[one.code]
	some strictness in _as_strict[one.level]
	some about in [one.subject, null]
	{"code": code, "level": strictness, "subject": about} in findings
}

_after := %s

_as_strict := {"deny": ["deny"], "confirm": ["deny", "confirm"], "warn": ["deny", "confirm", "warn"]}
"""


def router(points: Collection[str]) -> str:
    """`data.admission.decision` by `input.point`, and `decisions` for a batch; static references only."""
    return _ROUTER % "\n".join(
        f'decision := data.admission.compiled.{point}.decision if input.point == "{point}"\n'
        for point in sorted(points)
    )


def shared_module(*, approvals: bool, waivers: bool) -> str:
    """The common requirements of all points, and when a person's approval satisfies a confirm."""
    valid = "data.admission.lib.approval.valid(input.approvals[0])" if approvals else "false"
    return _COMMON % valid + _words("[input.point]", "input.point", waivers=waivers) + _ADDED


def _words(point: str, name: str, *, waivers: bool) -> str:
    """What makes a finding: its level, and whether a waiver covers it."""
    return _WORDS % {"point": point, "waived": _WAIVED % {"point": point, "name": name} if waivers else ""}


def point_module(point: PointRules, *, waivers: bool) -> str:
    """The module of one point: its findings, what hides which, the outcome, the limits."""
    lists = point.lists()
    sources = [f"data.{'.'.join(package)}._findings" for package in point.packages()]
    entries = point.entries()
    after = {code: sorted(entries.before(code)) for code, one in entries.requirements.items() if one.after}
    text = _POINT % {
        "point": point.name,
        "sources": "\n".join(f"\t{one}," for one in (["_lists"] if lists else []) + sources),
        "lists": "".join(_list(path, empty_allowed) for path, empty_allowed in lists.items()),
        "limits_missing": json.dumps(LIMITS_MISSING),
        "shown": _SHOWN % json.dumps(after) if after else _ALL_SHOWN,
    }
    text += _words(f".{point.name}", json.dumps(point.name), waivers=waivers)
    return text + _ADDED if any(one.collects for one in point.held) else text


def with_findings(text: str, point: PointRules, module: Module, called: Collection[str] = ()) -> str:
    """One file of requirements with its findings; `called` names rules to be called, not written out."""
    held = [one for one in point.held if one.module is module]
    written = "\n".join(_set(one) if one.collects else _finding(one, called) for one in held)
    return f"{text.rstrip()}\n\n{GENERATED}\n{written}"


def written_out(held: Held) -> bool:
    """Whether the conditions of a requirement may be written out.

    Not with raw strings over lines, nor when a variable is nowhere declared, nor when the argument
    has the name of an import or a rule: then only the call means the same for certain.
    """
    names = {one.alias for one in held.module.imports} | {rule.name for rule in held.module.rules}
    return all(
        held.module.body_text(rule) is not None
        and names.isdisjoint(names_in(list(rule.arguments)))
        and _variables(rule) <= declared(rule) | names | {"input", "data"}
        for rule in held.definitions
    )


def unlike(point: PointRules, module: Module, served: Module | None) -> set[str]:
    """Rules of a file whose written-out conditions, parsed again, are not the author's.

    `served` is the file with its findings appended, None if it does not parse. Whatever this names must be called.
    """
    generated = [] if served is None else [rule for rule in served.rules if rule.name == GENERATED_RULE]
    held = [one for one in point.held if one.module is module and not one.collects]
    return {
        one.requirement.rule
        for one, rule in zip_longest(held, generated[: len(held)])
        if rule is None
        or (written_out(one) and _conditions(rule) != [_form([*_binding(own), *own.body]) for own in one.definitions])
    }


def _conditions(rule: Rule) -> list[str]:
    blocks = [expression["terms"]["body"] for expression in rule.body if expression["terms"].get("type") == "not"]
    return [_form(block) for block in blocks]


def _binding(rule: Rule) -> list[Node]:
    """`item := __item` as OPA parses it."""
    operator = {"type": "ref", "value": [{"type": "var", "value": "assign"}]}
    return [{"terms": [operator, argument, {"type": "var", "value": "__item"}]} for argument in rule.arguments]


def _form(body: list[Node]) -> str:
    """A body in a form that is equal for equal conditions: wildcards are numbered in order."""
    names: dict[str, str] = {}
    return re.sub(
        r'"value": "(\$[0-9]+)"', lambda match: names.setdefault(match[1], f'"value": "_{len(names)}"'), key_of(body)
    )


def _finding(held: Held, called: Collection[str]) -> str:
    one = held.requirement
    compiled = f"data.admission.compiled.{one.point}"
    about = "null"
    lines = []
    if one.each is not None:
        about = f"{compiled}.subject({json.dumps(one.each.rpartition('.')[2])}, __index, __item)"
        lines.append(f"\tsome __index, __item in input.{one.each}")
    if one.rule in called or not written_out(held):
        argument = "(__item)" if one.arity else ""
        lines.append(f"\tnot {{\n\t\t{one.rule}{argument} == true\n\t}}")
    else:
        lines += [f"\tnot {{\n{_body(held.module, rule)}\n\t}}" for rule in held.definitions]
    head = f"_findings contains {compiled}.finding({json.dumps(one.code)}, {about}) if {{"
    return "\n".join((head, *lines, "}", ""))


def _body(module: Module, rule: Rule) -> str:
    """The conditions, two tabs deep, under the name the author gave the item."""
    first, *rest = (module.body_text(rule) or "").split("\n")
    source = module.text.split("\n")[line_of(rule.body[0], rule.line) - 1]
    deeper = "\t" * (2 - (len(source) - len(source.lstrip("\t"))))
    lines = [f"\t\t{first}", *(deeper + line for line in rest)]
    if rule.arguments:
        lines.insert(0, f"\t\t{rule.arguments[0]['value']} := __item")
    return "\n".join(lines)


def _set(held: Held) -> str:
    one = held.requirement
    head = f"_findings contains data.admission.compiled.{one.point}.added({json.dumps(one.code)}, __entry) if {{"
    return f"{head}\n\tsome __entry in {one.rule}\n}}\n"


def _list(path: str, empty_allowed: bool) -> str:  # noqa: FBT001 - one of two shapes
    conditions = [f"\t\tis_array(input.{path})"]
    if not empty_allowed:
        conditions.append(f"\t\tcount(input.{path}) > 0")
    return _LIST % (json.dumps(list_code(path)), "\n".join(conditions))


def _variables(rule: Rule) -> set[str]:
    """Variables that a body uses; names of what it calls and wildcards are none."""
    called = {one[0].partition(".")[0] for node in rule.nodes() if (one := call(node)) is not None}
    return {name for name in names_in(list(rule.body)) - called if not name.startswith("$")}

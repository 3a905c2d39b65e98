"""`data.policy.tool_lookup`: the rules of policy/tools.yaml, indexed by tool and by what they cover.

OPA looks up the parts of a call instead of trying each rule, so that a thousand rules cost as much as ten.
A rule is listed under each of its selectors as written (`*` once, not for every tool), and every tool
lists the selectors that include it; so the size grows with the rules and not with rules times tools.

    tools.<tool>.selectors            the selectors of rules and profiles that include the tool
    tools.<tool>.values               the arguments that an allow rule has to cover, each with the conditions that allow
                                      rules have on it, by aspect
    profiles.<profile>.<selector>     true
    words_without_hosts.<which>       aspects of commands, each true
    plain_sql_functions.<name>        true
    ranges, host_paths, path_patterns what rules compare with parts of a call, because it cannot be looked up
    policies.<policy>.<section>       its `size`, the `names` of its rules in the order in which they are tried, and
                                      `selectors`, each with a map from aspects of a call to numbers of rules

An aspect is a part of a call that a rule may cover: `any host`, `host <form>`, `any path`, `/<path>`,
`{cwd}/<path>`, `path <pattern>`, `any command`, `command <count> <words>`; `command+<abilities> <count> <words>` for
what a command can do beyond its first words; `option <option> <count> <words>`, where `?` is what may be any option;
`kept any path` and `kept <path>` of commands that change no file which they name, with `unread ` before it, or
in its place, of commands that show nothing of its content;
`value <argument> <conditions>`. For rules about a call without such parts, or about a tool by its name alone, there
are `always` and `by name`: an allow rule with conditions covers such a call only if it has data.
Deny and confirm need only the first rule of an aspect; allow has all of them, with their number, and by
number what each rule `covers`, because one rule must cover the whole call. Deny and confirm rules with `where`
are tried one by one: they are listed by selector under `conditional`, with their aspects and conditions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from engine.facts.tools.argument_facts import COVERED
from engine.facts.tools.values import folded
from engine.values.conditions import OPERATORS, listed
from engine.values.hosts import HostForm, host_form
from engine.values.tools import FOLDER, selected_tools, stated_commands

_ALWAYS, _BY_NAME, _CWD_UNKNOWN = "always", "by name", "any path without cwd"
_WORDS = {"hosts": "host", "paths": "path", "commands": "command"}
_PATHS = ("/", FOLDER)
_MOST = sys.float_info.max
_STARS = re.compile(r"\*\*/|\*")


def tool_lookup(tools: Mapping[str, Any]) -> dict[str, Any]:
    """The lookup of checked values of policy/tools.yaml."""
    rulesets = tools["rulesets"]
    sections = [section for ruleset in rulesets.values() for section in ruleset.values()]
    lists = [rule["tools"] for section in sections for rule in section] + list(tools["profiles"].values())
    means = {
        selector: selected_tools(selector, tools["tools"], tools["groups"])
        for selector in sorted({one for held in lists for one in held})
    }
    rules = [rule for section in sections for rule in section]
    forms = [form for rule in rules for form in _forms(rule)]
    allowing = [rule for ruleset in rulesets.values() for rule in ruleset["allow"]]
    return {
        "tools": {
            name: {
                "selectors": [selector for selector, selected_tools in means.items() if name in selected_tools],
                "values": _values(tool, [rule for rule in allowing if _about(rule, name, means)]),
            }
            for name, tool in tools["tools"].items()
        },
        "profiles": {name: dict.fromkeys(held, True) for name, held in tools["profiles"].items()},
        "words_without_hosts": {
            which: dict.fromkeys(_aspects("commands", beginnings), True)
            for which, beginnings in tools["words_without_hosts"].items()
        },
        "plain_sql_functions": dict.fromkeys(tools.get("plain_sql_functions", ()), True),
        "ranges": sorted({form.name for form in forms if form.range is not None}),
        "host_paths": sorted({form.path for form in forms if form.path}),
        "path_patterns": [[pattern, _expression(pattern)] for pattern in sorted(_patterns(rules))],
        "policies": {name: _policy(policy, rulesets) for name, policy in tools["policies"].items()},
    }


def ruled_arguments(tools: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The arguments of each tool whose values rules look at, with their types; of checked values, or of none."""
    found: dict[str, dict[str, str]] = {}
    for ruleset in tools.get("rulesets", {}).values():
        for rule in (rule for section in ruleset.values() for rule in section if "where" in rule):
            for tool in {
                one for selector in rule["tools"] for one in selected_tools(selector, tools["tools"], tools["groups"])
            }:
                found.setdefault(tool, {}).update(dict.fromkeys(rule["where"], ""))
    for name, tool in tools.get("tools", {}).items():
        stated = tool["arguments"]
        covered = {argument for argument, kind in stated.items() if kind in COVERED}
        if names := covered | found.get(name, {}).keys():
            found[name] = {argument: stated[argument] for argument in sorted(names)}
    return found


def _about(rule: Mapping[str, Any], tool: str, means: Mapping[str, set[str]]) -> bool:
    return any(tool in means[selector] for selector in rule["tools"])


def _values(row: Mapping[str, Any], rules: list[Any]) -> dict[str, dict[str, list[Any]]]:
    """The arguments of a tool that have to be covered, and the conditions on each, by aspect."""
    stated = [(argument, conditions) for rule in rules for argument, conditions in rule.get("where", {}).items()]
    return {
        name: {
            _value_aspect(name, conditions): _all_compared(conditions)
            for argument, conditions in stated
            if argument == name
        }
        for name, kind in row["arguments"].items()
        if kind in COVERED
    }


def _value_aspect(argument: str, conditions: Any) -> str:
    return f"value {argument} {json.dumps(conditions, sort_keys=True)}"


def _all_compared(conditions: Any) -> list[dict[str, Any]]:
    """The conditions on one argument. A rule that counts the items of a list, or is about recipients, takes a list."""
    each = listed(conditions)
    several = any("items" in one or "email_domains" in one for one in each)
    return [{**_compared(one), "list": several} for one in each]


def _compared(condition: Mapping[str, Any]) -> dict[str, Any]:
    """A condition as rules compare it: its operator, its operands as written, and as lenient programs read them."""
    name = next(name for name in OPERATORS if name in condition)
    operands = condition[name]
    found: dict[str, Any] = {"kind": name, "optional": condition.get("optional", False)}
    if name == "pattern":
        return {**found, "of": f"^(?:{operands})$", "loose": f"(?i)^(?:{operands})$"}
    if name == "sql":
        return {**found, "of": {key: one if one == "any" else list(one) for key, one in operands.items()}}
    if name in {"range", "length", "items"}:
        low, high = operands
        return {**found, "from": -_MOST if low is None else low, "to": _MOST if high is None else high}
    return {**found, "of": list(operands), "folded": [folded(one) for one in operands if isinstance(one, str)]}


def _policy(policy: Mapping[str, Any], rulesets: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "deny": _refusing(_numbered(policy, rulesets, "deny")),
        "confirm": _refusing(_numbered(policy, rulesets, "confirm")),
        "allow": _allowing(_numbered(policy, rulesets, "allow")),
    }


def _numbered(policy: Mapping[str, Any], rulesets: Mapping[str, Any], section: str) -> list[tuple[str, Any]]:
    """The rules of one section of all rulesets of a policy with their names, in the order in which they are tried."""
    return [(f"{name}/{rule['id']}", rule) for name in policy["rulesets"] for rule in rulesets[name][section]]


def _refusing(rules: list[tuple[str, Any]]) -> dict[str, Any]:
    """A section of which some covered aspect is a match; the first rule of each."""
    selectors: dict[str, dict[str, int]] = {}
    conditional: dict[str, list[dict[str, Any]]] = {}
    for number, (_, rule) in enumerate(rules):
        for selector in dict.fromkeys(rule["tools"]):
            if "where" in rule:
                where = [
                    {"argument": argument, **one}
                    for argument, conditions in rule["where"].items()
                    for one in _all_compared(conditions)
                ]
                row = {"number": number, "aspects": list(_folded(rule)), "where": where}
                conditional.setdefault(selector, []).append(row)
                continue
            first = selectors.setdefault(selector, {})
            for aspect in _folded(rule):
                first.setdefault(aspect, number)
    names = [name for name, _ in rules]
    return {"size": len(rules), "names": names, "selectors": selectors, "conditional": conditional}


def _folded(rule: Mapping[str, Any]) -> Iterator[str]:
    """The aspects of a rule that refuses: letter case of paths and programs does not count."""
    stated = [condition for condition in _WORDS if condition in rule]
    found = [_fold(one) for condition in stated for one in _aspects(condition, rule[condition], refuses=True)]
    if any(aspect.removeprefix("path ").startswith(FOLDER) for aspect in found):
        found.append(_CWD_UNKNOWN)  # without a working folder any path may be in it
    yield from found or [_ALWAYS]
    kinds = [] if rule.get("only_changes", False) else ["kept "]
    kinds += [] if rule.get("only_contents", False) else ["unread ", *(f"unread {kind}" for kind in kinds)]
    paths = [aspect for aspect in found if aspect.startswith((*_PATHS, "path ", "any path"))]
    yield from (f"{kind}{aspect}" for kind in kinds for aspect in paths)


def _fold(aspect: str) -> str:
    if aspect.startswith((*_PATHS, "path ")):
        return aspect.lower()
    kind, *words = aspect.split(" ")
    if kind in {"command", "option"}:
        program = 1 if kind == "command" else 2
        words[program] = words[program].lower()
    return " ".join((kind, *words))


def _allowing(rules: list[tuple[str, Any]]) -> dict[str, Any]:
    """A section whose rules have to cover all of a call: by an aspect, the rules to try, and what each covers."""
    selectors: dict[str, dict[str, dict[str, Any]]] = {}
    covers = []
    for number, (_, rule) in enumerate(rules):
        aspects = _covered(rule)
        covers.append(dict.fromkeys(aspects, True))
        for selector in dict.fromkeys(rule["tools"]):
            tried = selectors.setdefault(selector, {_ALWAYS: {"rules": [number]}})
            for aspect in dict.fromkeys(aspects):
                tried.setdefault(aspect, {"rules": []})["rules"].append(number)
            if not aspects:
                tried.setdefault(_BY_NAME, {"rules": [number]})
    for tried in selectors.values():
        for one in tried.values():
            one["size"] = len(one["rules"])
    return {"size": len(rules), "names": [name for name, _ in rules], "covers": covers, "selectors": selectors}


def _covered(rule: Mapping[str, Any]) -> list[str]:
    """The aspects of an allow rule; none when it states no condition."""
    stated = {condition: rule[condition] for condition in _WORDS if condition in rule}
    if "commands" in stated:
        stated["commands"] = stated_commands(rule)
    found = [aspect for condition, covered in stated.items() for aspect in _aspects(condition, covered)]
    return found + [_value_aspect(argument, conditions) for argument, conditions in rule.get("where", {}).items()]


def _aspects(condition: str, covered: Any, *, refuses: bool = False) -> Iterable[str]:
    if covered == "any":
        return [f"any {_WORDS[condition]}"]
    if condition == "commands":
        return [aspect for one in covered for aspect in _of_command(one)]
    if condition == "paths":
        return [f"path {one}" if "*" in one else one for one in covered]
    forms = [form for one in covered if (form := host_form(one)) is not None]
    return [f"host {form.refuses if refuses else form.allows}" for form in forms]


def _listed(rule: Mapping[str, Any], condition: str) -> Iterable[str]:
    covered = rule.get(condition, ())
    return () if covered == "any" else covered


def _patterns(rules: Iterable[Mapping[str, Any]]) -> set[str]:
    """The patterns of paths as written, and as rules compare them that refuse or ask."""
    found = {path for rule in rules for path in _listed(rule, "paths") if "*" in path}
    return found | {path.lower() for path in found}


def _forms(rule: Mapping[str, Any]) -> Iterator[HostForm]:
    yield from (form for one in _listed(rule, "hosts") if (form := host_form(one)) is not None)


def _expression(pattern: str) -> str:
    """A pattern of paths as a regular expression for a whole path: `*` within a name, `**/` over folders."""
    rooted = pattern if pattern.startswith(_PATHS) else f"/{pattern}"
    pieces, position = [], 0
    for star in _STARS.finditer(rooted):
        pieces += [re.escape(rooted[position : star.start()]), "(?:[^/]+/)*" if star[0] == "**/" else "[^/]*"]
        position = star.end()
    return f"^{''.join(pieces)}{re.escape(rooted[position:])}$"


def _of_command(one: Any) -> Iterator[str]:
    """An allow rule covers commands that can do nothing beyond its words, or any part of `can`, each an aspect."""
    words, can, options = (
        (one["words"], one.get("can", ()), one.get("options")) if isinstance(one, dict) else (one, (), None)
    )
    named = " ".join((str(len(words)), *words))
    if options is not None:
        yield from (f"option {option} {named}" for option in (*options, "?"))
        return
    for size in range(len(set(can)) + 1):
        for subset in combinations(sorted(set(can)), size):
            yield f"command+{','.join(subset)} {named}" if subset else f"command {named}"

"""`data.policy.tool_lookup`: the rules of policy/tools.yaml, indexed by tool and by what they cover.

OPA looks up the parts of a call instead of trying each rule, so that a thousand rules cost as much as ten.
A rule is listed under each of its selectors as written (`*` once, not for every tool), and every tool
lists the selectors that include it; so the size grows with the rules and not with rules times tools.

    tools.<tool>.selectors            the selectors of rules and profiles that include the tool
    profiles.<profile>.<selector>     true
    words_without_hosts.<which>       aspects of commands, each true
    policies.<policy>.<section>       its `size`, the `names` of its rules in the order in which they are tried, and
                                      `selectors`, each with a map from aspects of a call to numbers of rules

An aspect is a part of a call that a rule may cover: `any host`, `host <origin>`, `any path`, `/<path>`,
`{cwd}/<path>`, `any command`, `command <count> <words>`; `command+<abilities> <count> <words>` for what a command
can do beyond its first words; `option <option> <count> <words>`, where `?` is what may be any option. For rules about
a call without such parts, or about a tool by its name alone, there are `always` and `by name`.
Deny and confirm need only the first rule of an aspect; allow has all of them, with their number, and by
number what each rule `covers`, because one rule must cover the whole call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from engine.values.tools import FOLDER, GROUP

_ALWAYS, _BY_NAME, _CWD_UNKNOWN = "always", "by name", "any path without cwd"
_WORDS = {"hosts": "host", "paths": "path", "commands": "command"}
_PATHS = ("/", FOLDER)


def tool_lookup(tools: Mapping[str, Any]) -> dict[str, Any]:
    """The lookup of checked values of policy/tools.yaml."""
    rulesets = tools["rulesets"]
    sections = [section for ruleset in rulesets.values() for section in ruleset.values()]
    lists = [rule["tools"] for section in sections for rule in section] + list(tools["profiles"].values())
    means = {selector: _meant(selector, tools) for selector in sorted({one for held in lists for one in held})}
    return {
        "tools": {
            name: {"selectors": [selector for selector, meant in means.items() if name in meant]}
            for name in tools["tools"]
        },
        "profiles": {name: dict.fromkeys(held, True) for name, held in tools["profiles"].items()},
        "words_without_hosts": {
            which: dict.fromkeys(_aspects("commands", beginnings), True)
            for which, beginnings in tools["words_without_hosts"].items()
        },
        "policies": {name: _policy(policy, rulesets) for name, policy in tools["policies"].items()},
    }


def _meant(selector: str, tools: Mapping[str, Any]) -> set[str]:
    """The tools that a selector means."""
    if selector.startswith(GROUP):
        return {name for one in tools["groups"][selector.removeprefix(GROUP)] for name in _meant(one, tools)}
    if selector.endswith("*"):
        return {name for name in tools["tools"] if name.startswith(selector[:-1])}
    return {selector}


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
    for number, (_, rule) in enumerate(rules):
        for selector in rule["tools"]:
            first = selectors.setdefault(selector, {})
            for aspect in _folded(rule):
                first.setdefault(aspect, number)
    return {"size": len(rules), "names": [name for name, _ in rules], "selectors": selectors}


def _folded(rule: Mapping[str, Any]) -> Iterator[str]:
    """The aspects of a rule that refuses: letter case of paths and programs does not count."""
    aspects = _covered(rule)
    yield from (_fold(aspect) for aspect in aspects or [_ALWAYS])
    if any(aspect.startswith(FOLDER) for aspect in aspects):
        yield _CWD_UNKNOWN  # without a working folder any path may be in it


def _fold(aspect: str) -> str:
    if aspect.startswith(_PATHS):
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
    """The aspects of a rule as written; none when it states no condition."""
    return [aspect for condition in _WORDS if condition in rule for aspect in _aspects(condition, rule[condition])]


def _aspects(condition: str, covered: Any) -> Iterable[str]:
    if covered == "any":
        return [f"any {_WORDS[condition]}"]
    if condition == "commands":
        return [aspect for one in covered for aspect in _of_command(one)]
    return [f"host {one}" for one in covered] if condition == "hosts" else covered


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

"""Mistakes in policy/tools.yaml that no single field shows: names, cycles, rules that could never match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import InitErrorDetails

from engine.facts.commands import argv_facts
from engine.facts.origins import origin_facts
from engine.files import shown
from engine.values.fields import value_error

if TYPE_CHECKING:
    from engine.values.tools import Rule, Tools

Row = tuple[str | int, ...]
GROUP = "group:"
WORDS = 16
"""First words of a command that are compared; facts hold no more of them."""

LONGEST, PARTS = 1_024, 32
"""Characters and parts of a path in a rule; rules look at no more folders of a path."""

FOLDER = "{cwd}/"
"""How a path below the working folder of a call begins."""

_PATH = re.compile(r"[ -~]+")  # letter case is compared, so ASCII only
_WORD = re.compile(r"[!-~]+")


def errors(tools: Tools) -> Iterator[InitErrorDetails]:
    """Every mistake, at the path of its field."""
    lists: list[tuple[Row, Sequence[str]]] = [(("groups", name), held) for name, held in tools.groups.items()]
    lists += [(("profiles", name), held) for name, held in tools.profiles.items()]
    lists += [((*path, "tools"), rule.tools) for path, rule in rules(tools)]
    for path, selectors in lists:
        yield from _unknown_tools(tools, path, selectors)
    yield from _cycles(tools)
    for name, policy in tools.policies.items():
        for index, ruleset in enumerate(policy.rulesets):
            yield from _known("ruleset", ruleset, tools.rulesets, ("policies", name, "rulesets", index))
    yield from _doubled(tools)
    for path, rule in rules(tools):
        yield from _conditions(path, rule)
    for which, beginnings in tools.words_without_hosts:
        for index, words in enumerate(beginnings):
            if (told := _command_problem(words)) is not None:
                yield value_error(told, ("words_without_hosts", which, index), words)


def rules(tools: Tools) -> Iterator[tuple[Row, Rule]]:
    """Every rule with its path."""
    for name, ruleset in tools.rulesets.items():
        for section in type(ruleset).model_fields:
            for index, rule in enumerate(getattr(ruleset, section)):
                yield ("rulesets", name, section, index), rule


def _unknown_tools(tools: Tools, path: Row, selectors: Sequence[str]) -> Iterator[InitErrorDetails]:
    for index, selector in enumerate(selectors):
        if selector.startswith(GROUP):
            yield from _known("group", selector.removeprefix(GROUP), tools.groups, (*path, index))
        elif not selector.endswith("*"):
            yield from _known("tool", selector, tools.tools, (*path, index))


def _known(what: str, name: str, known: Iterable[str], path: Row) -> Iterator[InitErrorDetails]:
    if name not in known:
        names = ", ".join(f"`{one}`" for one in known) or "none, there are none"
        yield value_error(f"no {what} `{shown(name)}`: use one of {names}", path, name)


def _cycles(tools: Tools) -> Iterator[InitErrorDetails]:
    for name, held in tools.groups.items():
        for index, selector in enumerate(held):
            if selector.startswith(GROUP) and name in _below(tools, selector.removeprefix(GROUP)):
                message = f"group `{name}` holds itself by way of `{selector}`: take it out of one of them"
                yield value_error(message, ("groups", name, index), selector)


def _below(tools: Tools, name: str) -> set[str]:
    """A group and all groups that it holds, at any depth."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            held = tools.groups.get(one, ())
            waiting += [selector.removeprefix(GROUP) for selector in held if selector.startswith(GROUP)]
    return found


def _doubled(tools: Tools) -> Iterator[InitErrorDetails]:
    seen: set[tuple[str | int, str]] = set()
    for path, rule in rules(tools):
        if (path[1], rule.id) in seen:
            yield value_error(f"`{rule.id}` is the id of another rule of this ruleset", (*path, "id"), rule.id)
        seen.add((path[1], rule.id))


def _conditions(path: Row, rule: Rule) -> Iterator[InitErrorDetails]:
    if path[2] != "allow" and [rule.hosts, rule.paths, rule.commands].count(None) == 1:
        message = "state one of `hosts`, `paths` and `commands`, all three or none: of two, removing one admits more"
        yield value_error(message, path, rule.id)
    for condition, problem in _PROBLEMS.items():
        if isinstance(covered := getattr(rule, condition), tuple):
            for index, one in enumerate(covered):
                if (told := problem(one)) is not None:
                    yield value_error(told, (*path, condition, index), one)


def _host_problem(host: str) -> str | None:
    if origin_facts(f"{host}/").origin == host:
        return None
    return (
        f"`{shown(host)}` is no exact origin: write scheme, host in lower case, and the port where it is not the usual "
        "one, such as https://docs.example.com; http only to 127.0.0.1, [::1] or localhost"
    )


def _path_problem(path: str) -> str | None:
    rest = path.removeprefix(FOLDER)
    rooted = rest != path or path.startswith("/")
    segments = (rest if rest != path else path[1:]).split("/")
    plain = len(path) <= LONGEST and _PATH.fullmatch(path) is not None and not set(rest) & set("\\%~{}*?[]")
    if rooted and plain and all(segments[:-1]) and len(segments) <= PARTS and not {".", ".."} & set(segments):
        return None
    return (
        f"`{shown(path)}` is no absolute path in its only spelling: begin with `/` or `{FOLDER}`, end folders with "
        f"`/`, at most {PARTS} parts, none empty, `.` or `..`, no `\\`, `%`, `~`, braces or letters beyond ASCII; "
        "there are no patterns such as `*`, `?` or `[a]`: a folder covers all that is in it"
    )


def _command_problem(words: Sequence[str]) -> str | None:
    plain = 1 <= len(words) <= WORDS and all(_WORD.fullmatch(word) for word in words) and "*" not in words
    if plain and argv_facts(words).canonical:
        return None
    return (
        f"a command is 1 to {WORDS} words without blanks and without `;`, `&`, `|`, `<`, `>`, `$` or backticks, "
        "such as [git, status]; it covers whatever follows, so there is no `*`"
    )


_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "hosts": _host_problem,
    "paths": _path_problem,
    "commands": _command_problem,
}

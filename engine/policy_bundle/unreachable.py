"""What a recipe adds and what could never refuse anything, though it would be taken for a protection.

Rules that nothing reads, comparisons with a value that a fact never has, parameters that no rule reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from engine.documents.files import Document
from engine.errors import Problem
from engine.policy_bundle import schemas
from engine.policy_bundle.added import IGNORED
from engine.policy_bundle.catalogue import quoted
from engine.policy_bundle.checks import COMMON, PARAMETERS, RuleFile
from engine.policy_bundle.schemas import Schema
from engine.policy_bundle.syntax import EQUAL, MEMBER, Module, Node, Rule, call, constant, line_of, names_in, reference

Path = tuple[Any, ...]


def rule_problems(
    module: Module, place: RuleFile, held: Collection[str], facts: Schema, points: Collection[str]
) -> Iterator[Problem]:
    """Problems of one added file of a point. `held` are its requirements and sets, `facts` the schema of its input."""
    yield from _unread(module, held)
    allowed = sorted(points) if place.point == COMMON else [place.point]
    for rule in module.rules:
        variables = dict(_variables(module, rule))
        for node in rule.nodes():
            called = call(node)
            if called is None or called[0] not in EQUAL:
                continue
            for fact, value in (called[1], reversed(called[1])):
                problem = _never(_path(module, fact, variables), constant(value), facts, allowed)
                if problem is not None:
                    yield module.problem(line_of(node, rule.line), *problem)


def parameter_problems(own: Document | None, modules: Iterable[Module]) -> Iterator[Problem]:
    """A problem for each parameter that no rule reads; `modules` are the added files."""
    if own is None or not isinstance(own.value, dict):
        return
    read = {name for module in modules for name in _parameters(module)}
    for name in own.value if None not in read else ():
        if name not in read:
            message = f"no added rule reads the parameter `{name}`"
            remedy = f"read it as `data.policy.{PARAMETERS}.{name}`, correct its name, or remove it"
            yield Problem(own.where((name,)), message, remedy)


def _unread(module: Module, held: Collection[str]) -> Iterator[Problem]:
    read = {
        (rule.name, name)
        for rule in module.rules
        for name in names_in([*rule.arguments, *rule.body, rule.value, rule.key, rule.otherwise])
    }
    for name, definitions in module.definitions().items():
        if name in held or IGNORED.match(name) or any(reader != name for reader, read_ in read if read_ == name):
            continue
        message = f"`{name}` is read by nothing, so it can never refuse anything"
        meant = schemas.likely(name, ("deny", "violation"), cutoff=0.5)
        yield module.problem(definitions[0].line, message, f"{meant}read it in a rule that refuses, or remove it")


def _variables(module: Module, rule: Rule) -> Iterator[tuple[str, Path]]:
    """Variables that stand for a part of the input: `x := input.…`, `some x in input.…`."""
    for node in rule.nodes():
        called = call(node)
        if called is not None and called[0] == "assign" and len(called[1]) > 1:
            target, value, item = called[1][0], called[1][1], False
        elif called is not None and called[0] in MEMBER and len(called[1]) > 1:
            target, value, item = called[1][-2], called[1][-1], True
        else:
            continue
        path = _path(module, value, {})
        if path is not None and target.get("type") == "var":
            yield str(target["value"]), (*path, None) if item else path


def _path(module: Module, term: Node, variables: dict[str, Path]) -> Path | None:
    """The path below `input` that a term names, None for an index; None for any other term."""
    name = reference(term)
    if name is None:
        return None
    if name[0] in variables:
        return (*variables[name[0]], *name[1:])
    full = module.resolve(name)
    return full[1:] if full[0] == "input" else None


def _never(path: Path | None, value: Any, facts: Schema, points: list[str]) -> tuple[str, str] | None:
    """Why the fact at this path never has this value; None if it may."""
    if not path or not isinstance(value, str):
        return None
    known = points if path == ("point",) else schemas.values_at(facts, path)
    if not known or value in known:
        return None
    fact = ".".join(["input", *("[_]" if part is None else str(part) for part in path)]).replace(".[", "[")
    return f"`{fact}` is never `{value}` here", f"{schemas.likely(value, known)}it is one of {quoted(known)}"


def _parameters(module: Module) -> Iterator[Any]:
    """The parameters that a file reads by name; None if it may read any."""
    for rule in module.rules:
        for node in rule.nodes():
            name = reference(node)
            if name is not None and module.resolve(name)[:3] == ("data", "policy", PARAMETERS):
                yield (*module.resolve(name), None)[3]

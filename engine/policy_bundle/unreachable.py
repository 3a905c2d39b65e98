"""What a recipe adds and what could never refuse anything, though it would be taken for a protection.

Rules that nothing reads, sets whose body is false, comparisons with a value that a fact never has or of values of
different types, parameters that no rule reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from engine.documents.files import Document
from engine.errors import Problem
from engine.policy_bundle import schemas
from engine.policy_bundle.added import IGNORED
from engine.policy_bundle.catalogue import quoted
from engine.policy_bundle.checks import COMMON, PARAMETERS, RuleFile, Signature
from engine.policy_bundle.schemas import Schema
from engine.policy_bundle.syntax import (
    EQUAL,
    MEMBER,
    Module,
    Node,
    Rule,
    call,
    constant,
    line_of,
    names_in,
    reference,
    text_of,
)

Path = tuple[Any, ...]

_NUMBER: Node = {"type": "number", "value": 0}
_ORDER = {"lt", "lte", "gt", "gte"}
_WORDS = {
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
    "set": "a set",
}


def rule_problems(
    module: Module,
    place: RuleFile,
    held: Collection[str],
    facts: Schema,
    policy: Schema,
    signatures: Mapping[str, Signature],
    points: Collection[str],
) -> Iterator[Problem]:
    """Problems of one added file of a point. `held` are its requirements and sets, `facts` the schema of its input."""
    yield from _unread(module, held)
    allowed = sorted(points) if place.point == COMMON else [place.point]
    for rule in module.rules:
        terms = _Terms(module, rule, facts, policy, signatures)
        if rule.key is not None:
            yield from (
                module.problem(line_of(one, rule.line), "`false` never holds, so the rule never applies", "remove it")
                for one in rule.body
                if constant(one.get("terms")) is False
            )
        for node in rule.nodes():
            called = call(node)
            if called is None or called[0] not in {*EQUAL, *_ORDER, "is_number"}:
                continue
            operands = [*called[1], _NUMBER][:2]
            problem = terms.unlike(node, operands)
            for fact, value in (operands, reversed(operands)) if called[0] in EQUAL else ():
                problem = problem or _never(terms.path(fact), constant(value), facts, allowed)
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
        suggestion = schemas.likely(name, ("deny", "violation"), cutoff=0.5)
        yield module.problem(definitions[0].line, message, f"{suggestion}read it in a rule that refuses, or remove it")


class _Terms:
    """What the terms of one rule stand for: parts of the input and of values, and the types that these have."""

    def __init__(
        self, module: Module, rule: Rule, facts: Schema, policy: Schema, signatures: Mapping[str, Signature]
    ) -> None:
        self._module = module
        self._roots: dict[Path, Schema] = {("input",): facts, ("data", "policy"): policy}
        self._signatures = signatures
        self._bound: dict[str, Path | Node | None] = {}  # None for several terms, or for items of what has no path
        for node in rule.nodes():
            name, operands = call(node) or ("", [])
            if name == "assign" and len(operands) > 1:  # `deny[msg]` of old Rego assigns nothing
                self._bind(operands[0], self._full(operands[1]) or operands[1])
            elif name in MEMBER:
                path = self._full(operands[-1])
                self._bind(operands[-2], None if path is None else (*path, None))

    def _bind(self, target: Node, value: Path | Node | None) -> None:
        name = str(target.get("value")) if target.get("type") == "var" else ""
        self._bound[name] = value if self._bound.get(name, value) == value else None

    def _full(self, term: Node) -> Path | None:
        """The path of what a term names, None for an index; None for any other term."""
        name = reference(term)
        if name is None:
            return None
        bound = self._bound.get(name[0], ())
        return (*bound, *name[1:]) if bound and isinstance(bound, tuple) else self._module.resolve(name)

    def path(self, term: Node) -> Path | None:
        """The path below `input` that a term names; None for any other term."""
        full = self._full(term)
        return full[1:] if full is not None and full[0] == "input" else None

    def unlike(self, node: Node, operands: list[Node]) -> tuple[str, str] | None:
        """Why a comparison is always or never true: its operands have different types; None if they may be alike."""
        one, other = (self._types(operand) for operand in operands)
        if not one or not other or one & other:
            return None
        message = f"`{text_of(node)}` compares {_worded(one)} with {_worded(other)}, so it is true always or never"
        return message, "compare values of one type; write a limit as a number, without its unit"

    def _types(self, term: Node) -> set[str]:
        """The types that a term may have; empty if any."""
        bound = self._bound.get(str(term.get("value"))) if term.get("type") == "var" else None
        term = bound if isinstance(bound, dict) else term
        called, full = call(term), self._full(term)
        if called is not None:
            signature = self._signatures.get(called[0])
            return set() if signature is None or called[0] == "minus" else {signature.result} & _WORDS.keys()
        if full is None:
            return {term["type"]} & _WORDS.keys()
        found = (
            schemas.types_at(root, full[len(head) :]) for head, root in self._roots.items() if full[: len(head)] == head
        )
        return next(found, set())


def _worded(types: set[str]) -> str:
    return " or ".join(_WORDS.get(one, one) for one in sorted(types))


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

"""Bodies that may hold although a fact is missing, of the wrong type, or true of one item only.

A positive rule refuses what it does not know, unless its body negates, counts or collects what may
be absent, fills it in, uses a default, or compares values of unchecked type: `null < 5` is true in
Rego. Nor may one valid item of a list satisfy a rule for all, or part of a text for the whole.
Each such place is reported; a rule may keep it if `custom.proof` in its METADATA states why it is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Location, Problem
from engine.policy_bundle.checks import PARAMETERS, Signature
from engine.policy_bundle.syntax import (
    EQUAL,
    MEMBER,
    Module,
    Node,
    Rule,
    call,
    constant,
    declared,
    key_of,
    line_of,
    reference,
    text_of,
    walk,
)

_COMPREHENSIONS = {"arraycomprehension", "setcomprehension", "objectcomprehension"}
_COLLECTIONS = {"array", "set", "object"}
_CLOSURES = {*_COMPREHENSIONS, "not"}
_ORDER = {"lt", "lte", "gt", "gte", "neq"}
_TYPE_CHECKS = {"is_number", "is_string", "is_boolean", "is_array", "is_object", "is_set"}
_CERTAIN = {"number", "string", "array", "object", "set"}
_SCALARS = {"number", "string", "boolean", "templatestring"}
_COUNTABLE = {*_COLLECTIONS, *_COMPREHENSIONS, *_CERTAIN, "boolean", "null"}
_MIRRORED = {"lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}
_RISKY = {
    "object.get": "takes a default when the key is missing",
    "json.filter": "leaves out paths that are missing",
    "json.remove": "leaves out paths, whether or not they are there",
    "json.patch": "adds what is missing",
    "object.filter": "leaves out keys that are missing",
    "object.remove": "leaves out keys, whether or not they are there",
    "object.union": "fills in keys that are missing",
    "object.union_n": "fills in keys that are missing",
    "object.keys": "leaves out keys that are missing",
    "array.concat": "fills a list that was emptied",
    "graph.reachable": "passes over nodes that are missing",
    "graph.reachable_paths": "passes over nodes that are missing",
    "regex.find_n": "is empty when nothing matches",
    "regex.find_all_string_submatch_n": "is empty when nothing matches",
    "is_null": "holds for a fact that was set to null",
    "type_name": "returns a name for null as well",
    "to_number": "turns null into 0",
    "sum": "is 0 for an empty list",
    "product": "is 1 for an empty list",
    "object.subset": "holds for an empty subset",
}
_FIXED = "begin the pattern with `^` and end it with `$`, around all alternatives"
_EACH = "check each item, with `each` in METADATA or with `every`"
_NONE = key_of({"type": "number", "value": 0})
_DEFINED = "use the fact itself, so that the rule is undefined without it"


@dataclass(slots=True)
class _Known:
    """What the conditions of a body, and of the bodies around it, make certain.

    A term is `checked` when it has one type, `filled` when it is a collection with an element, `single` when it has
    one element, and `walked` when it is iterated, so that it is no scalar.
    """

    certain: set[tuple[str, str]] = field(default_factory=set)
    assigned: dict[str, Node] = field(default_factory=dict)  # variables and their terms

    def behind(self, term: Node) -> Node:
        """The term of a variable, else the term itself."""
        for _ in range(20):
            if term.get("type") != "var" or term["value"] not in self.assigned:
                break
            term = self.assigned[term["value"]]
        return term

    def learn(self, term: Node, *what: str) -> None:
        self.certain.update((one, key_of(term)) for one in what)

    def has(self, term: Node, *what: str) -> bool:
        keys = {key_of(term), key_of(self.behind(term))}
        return any((one, key) in self.certain for one in what for key in keys)


class Lint:
    """Finds risks in the rules of a policy."""

    def __init__(self, signatures: Mapping[str, Signature], modules: Iterable[Module]) -> None:
        self.signatures = signatures
        self.boolean: dict[str, bool] = {}  # by full name: whether all values of the rule are true and false
        self.input_names: set[str] = set()  # rules that are other names for a part of the input
        self.some_of: dict[str, set[int]] = {}  # functions that ask some item of an argument
        for module in modules:
            for rule in module.rules:
                self._learn(".".join(("data", *module.package, rule.name)), module, rule)

    def risks(self, module: Module, rule: Rule) -> Iterator[Problem]:
        """Every place of one definition that may hold on a missing or wrong fact, in the order of its lines."""
        found = dict.fromkeys(_Definition(self, module, rule).risks())
        yield from sorted(found, key=lambda risk: risk.where.line or 0)

    def _learn(self, name: str, module: Module, rule: Rule) -> None:
        self.boolean[name] = self.boolean.get(name, True) and self._is_boolean(rule)
        value = reference(rule.value)
        if value is not None and not rule.arguments and module.resolve(value)[0] == "input":
            self.input_names.add(name)
        arguments = {str(one.get("value")): index for index, one in enumerate(rule.arguments)}
        chosen = {arguments[one] for one in _iterated(rule) if one in arguments}
        self.some_of.setdefault(name, set()).update(chosen)

    def _is_boolean(self, rule: Rule) -> bool:
        if rule.key is not None or not rule.plain_name:
            return False
        heads = [rule.value, *(node.get("head", {}).get("value") for node in walk(rule.otherwise) if "head" in node)]
        return all(head is None or self._boolean_value(head) for head in heads)

    def _boolean_value(self, term: Node) -> bool:
        called = call(term)
        signature = self.signatures.get(called[0]) if called else None
        return term.get("type") == "boolean" or (signature is not None and signature.result == "boolean")


class _Definition:
    """The risks of one definition of a rule."""

    def __init__(self, lint: Lint, module: Module, rule: Rule) -> None:
        self._lint = lint
        self._module = module
        self._rule = rule
        self._line = rule.line
        self._local = declared(rule)
        symbols = [one for node in rule.nodes() for one in node.get("symbols") or ()]
        self._any = {str(one["value"]) for one in symbols if one.get("type") == "var"}  # `some` without a collection

    def risks(self) -> Iterator[Problem]:
        rule = self._rule
        if rule.default:
            yield self._risk(None, f"`default {rule.name}` gives a value when facts are missing", _DEFINED)
        if rule.key is not None or not rule.plain_name:
            yield self._risk(None, f"`{rule.name}` is empty, not undefined, when facts are missing", _DEFINED)
        yield from self._branch(rule.body, rule.value, rule.key)
        branch = rule.otherwise
        while branch is not None:
            self._line = line_of(branch, self._line)
            yield self._risk(
                branch, "`else` is reached when facts are missing", "write definitions that exclude each other"
            )
            yield from self._branch(tuple(branch.get("body") or ()), branch["head"].get("value"), None)
            branch = branch.get("else")

    def _branch(self, body: tuple[Node, ...], *heads: Node | None) -> Iterator[Problem]:
        known = self._within(body, _Known())
        yield from self._body(body, _Known())
        for head in heads:
            if head is not None:
                yield from self._term(head, known)

    def _body(self, body: Iterable[Node], around: _Known) -> Iterator[Problem]:
        body = tuple(body)
        known = self._within(body, around)
        for expression in body:
            self._line = line_of(expression, self._line)
            yield from self._expression(expression, known)

    def _expression(self, expression: Node, known: _Known) -> Iterator[Problem]:
        terms = expression.get("terms")
        if expression.get("negated") or (isinstance(terms, dict) and terms.get("type") == "not"):
            yield self._risk(
                expression, f"`{text_of(expression)}` negates: it holds when the fact is missing", _DEFINED
            )
            return
        if expression.get("with"):
            yield self._risk(expression, "`with` replaces facts or values", "pass them as arguments")
        if isinstance(terms, list):
            yield from self._call(expression, terms[1:], known)
            yield from self._truth(expression, known)
        elif isinstance(terms, dict) and "symbols" in terms:
            for symbol in terms["symbols"]:
                yield from self._term(symbol, known)
                chosen = call(symbol)
                if chosen is not None and chosen[0] in MEMBER and self._of_input(chosen[1][-1], known):
                    yield self._one_for_all(expression, chosen[1][-1])
        elif isinstance(terms, dict) and "domain" in terms:
            yield from self._every(expression, terms, known)
        elif isinstance(terms, dict):
            yield from self._term(terms, known)
            yield from self._truth(terms, known)

    def _every(self, expression: Node, terms: Node, known: _Known) -> Iterator[Problem]:
        domain = terms["domain"]
        yield from self._term(domain, known)
        written = known.behind(domain)
        if not known.has(domain, "filled") and not (written.get("type") in _COLLECTIONS and written.get("value")):
            text = text_of(domain)
            yield self._risk(
                expression, f"`every` holds for an empty `{text}`", f"require `count({text}) > 0` in the same body"
            )
        yield from self._body(terms["body"], known)

    def _term(self, term: Node, known: _Known) -> Iterator[Problem]:
        """The risks of a value, down to its closures, which are a risk themselves."""
        kind = term.get("type")
        if kind in _COMPREHENSIONS:
            yield self._risk(term, f"`{text_of(term)}` collects: what is missing is left out", _DEFINED)
        elif kind == "templatestring":
            if any("terms" in part for part in term["value"].get("parts") or ()):
                yield self._risk(term, f"`{text_of(term)}` prints what is missing", "use `sprintf` or `concat`")
        elif kind == "call":
            yield from self._call(term, term["value"][1:], known)
        elif kind in {"ref", *_COLLECTIONS}:
            if kind == "ref":
                yield from self._index(term, known)
            for child in _children(term):
                yield from self._term(child, known)

    def _index(self, term: Node, known: _Known) -> Iterator[Problem]:
        """`input.records[_]` is any item, `input.records[0]` the first: neither is all of them."""
        parts = term["value"]
        for end, part in enumerate(parts[1:], 1):
            collection = {"type": "ref", "value": parts[:end], "location": term.get("location")}
            free = part.get("type") == "var" and (part["value"].startswith("$") or part["value"] in self._any)
            first = part.get("type") == "number" and ("single", key_of(collection)) not in known.certain
            if (free or first) and self._of_input(collection, known):
                yield self._one_for_all(term, term)

    def _of_input(self, term: Node, known: _Known) -> bool:
        """Whether a collection is a part of the input, under any name."""
        term = known.behind(term)
        name = reference(term)
        if name is None:
            return False
        if term.get("type") == "ref" and name[0] in self._local and name[0] in known.assigned:
            return self._of_input(known.assigned[name[0]], known)
        full = self._resolve(name)
        return full[0] == "input" or ".".join(map(str, full)) in self._lint.input_names

    def _of_facts(self, term: Node, known: _Known) -> bool:
        """Whether it is a part of the input or of a function's argument."""
        name = reference(known.behind(term))
        return self._of_input(term, known) or (name is not None and name[0] in self._local)

    def _one_for_all(self, node: Node, collection: Node) -> Problem:
        text = text_of(collection)
        return self._risk(
            node, f"`{text_of(node)}` holds when one item of `{text}` does; the others are not checked", _EACH
        )

    def _call(self, node: Node, operands: list[Node], known: _Known) -> Iterator[Problem]:
        for operand in operands:
            yield from self._term(operand, known)
        called = call(node)
        name = self._builtin(called[0]) if called else None
        if name in _RISKY:
            yield self._risk(node, f"`{text_of(node)}`: `{name}` {_RISKY[name]}", _DEFINED)
        elif name == "regex.match" and not _whole(constant(operands[0])):
            yield self._risk(node, f"`{text_of(node)}` may match a part of the text", _FIXED)
        elif name in _ORDER:
            yield from (self._untyped(node, operand) for operand in operands if not self._typed(operand, known))
        elif name in EQUAL:
            yield from self._equal(node, operands, known)
        elif called and (name == "walk" or name is None):
            checked = {0} if name == "walk" else self._lint.some_of.get(self._rule_name(called[0]), set())
            for index, operand in enumerate(operands):
                if index in checked and self._of_input(operand, known):
                    yield self._one_for_all(node, operand)

    def _equal(self, node: Node, operands: list[Node], known: _Known) -> Iterator[Problem]:
        for operand, other in (operands, reversed(operands)):
            counted = call(known.behind(operand))
            if operand.get("type") == "null":
                yield self._risk(
                    node, f"`{text_of(node)}` holds for null", "facts are left out, never null: use the fact"
                )
            elif (operand.get("type") in _COLLECTIONS and not operand.get("value")) or (
                counted and counted[0] == "count" and key_of(other) == _NONE and self._of_facts(counted[1][0], known)
            ):
                yield self._risk(node, f"`{text_of(node)}` holds for a list or text that was emptied", _DEFINED)

    def _untyped(self, node: Node, operand: Node) -> Problem:
        counted = call(operand)
        text = text_of(counted[1][0] if counted and counted[0] == "count" else operand)
        checks = ["is_array"] if counted and counted[0] == "count" else ["is_number", "is_string"]
        return self._risk(
            node,
            f"`{text_of(node)}` compares `{text}`, whose type is not checked: null and text have an order too",
            f"check it in the same body, such as {' or '.join(f'`{check}({text})`' for check in checks)}",
        )

    def _truth(self, node: Node, known: _Known) -> Iterator[Problem]:
        """A bare value holds unless it is false or undefined, so it must certainly be a boolean."""
        if not self._truthful(node, known):
            text = text_of(node)
            yield self._risk(node, f"`{text}` holds for null, 0 and text too", f"write `{text} == true`")

    def _truthful(self, node: Node, known: _Known) -> bool:
        if "terms" not in node:
            node = known.behind(node)
        called = call(node)
        if called is not None:
            name = self._builtin(called[0])
            signature = self._lint.signatures.get(name) if name else None
            return (
                signature.result == "boolean" if signature else self._lint.boolean.get(self._rule_name(called[0]), True)
            )
        name_parts = reference(node)
        if name_parts is None:
            return node.get("type") == "boolean"
        full = self._resolve(name_parts)
        if _modelled(full):
            return True
        return ("checked", key_of(node)) in known.certain or self._lint.boolean.get(".".join(map(str, full)), False)

    def _typed(self, term: Node, known: _Known) -> bool:
        """Whether an operand of a comparison has one certain type."""
        called = call(known.behind(term))
        if called and called[0] == "count" and not known.has(term, "checked"):
            return self._certain(called[1][0], known, _COUNTABLE, "checked", "walked")
        return self._certain(term, known, _SCALARS, "checked")

    def _certain(self, term: Node, known: _Known, types: set[str], *enough: str) -> bool:
        """Whether it is one of these types for certain: by what is known of it, as written, or by its built-in."""
        if known.has(term, *enough):
            return True
        term = known.behind(term)
        name, called = reference(term), call(term)
        if name is not None and _modelled(self._resolve(name)):
            return True
        signature = self._lint.signatures.get(self._builtin(called[0]) or "") if called else None
        return term.get("type") in types or (signature is not None and signature.result in types)

    def _within(self, body: Iterable[Node], around: _Known) -> _Known:
        """The certain conditions inside a body: those around it, and those of its own."""
        known = _Known(set(around.certain), dict(around.assigned))
        body = tuple(one for one in body if not one.get("negated") and not one.get("with"))
        for expression in body:
            called = call(expression)
            if called and called[0] in {"assign", "eq"} and called[1][0].get("type") == "var":
                known.assigned[called[1][0]["value"]] = called[1][1]
        for expression in body:
            for node in _surface(expression):
                self._learn(node, known)
        return known

    def _learn(self, node: Node, known: _Known) -> None:
        if "domain" in node and "body" in node:
            known.learn(node["domain"], "walked")
        if node.get("type") == "ref":
            _learn_iteration(node["value"], known)
        called = call(node)
        name = self._builtin(called[0]) if called else None
        if called is None or name is None:
            return
        operands = called[1]
        if name in _TYPE_CHECKS:
            known.learn(operands[0], "checked")
        elif name in MEMBER:
            known.learn(operands[-1], "walked", "filled")
        elif name in {*_ORDER, *EQUAL}:
            _learn_comparison(name, operands, known)
        else:
            for operand, kind in zip(operands, self._lint.signatures[name].arguments, strict=False):
                if kind in _CERTAIN:
                    known.learn(operand, "checked")

    def _builtin(self, name: str) -> str | None:
        """The name as a built-in, or None if an import or a rule of the file has that name."""
        return name if self._rule_name(name) == name and name in self._lint.signatures else None

    def _resolve(self, name: tuple[Any, ...]) -> tuple[Any, ...]:
        """A reference written out, unless a variable of the rule has that name."""
        return name if name[0] in self._local else self._module.resolve(name)

    def _rule_name(self, name: str) -> str:
        return ".".join(map(str, self._resolve(tuple(name.split(".")))))

    def _risk(self, node: Node | None, message: str, fix: str) -> Problem:
        return Problem(
            Location(self._module.name, line_of(node, self._line)),
            f"in `{self._rule.name}`: {message}",
            f"{fix}; or write in `custom.proof` of its METADATA why no missing fact can make it hold",
        )


def _modelled(name: tuple[Any, ...]) -> bool:
    """Whether a model of policy/ has checked the type of the value with this name; parameters have no model."""
    return name[:2] == ("data", "policy") and name[2:3] != (PARAMETERS,)


def _iterated(rule: Rule) -> set[str]:
    """The names whose items a body searches, outside closures, such as `list` in `some one in list`."""
    found = set()
    for node in _surface(list(rule.body)):
        for symbol in node.get("symbols") or ():
            chosen = call(symbol)
            if chosen is not None and (name := reference(chosen[1][-1])) is not None:
                found.add(str(name[0]))
        if node.get("type") == "ref":
            parts = node["value"]
            if any(part.get("type") == "var" and str(part["value"]).startswith("$") for part in parts[1:]):
                found.add(str(parts[0].get("value")))
    return found


def _whole(pattern: object) -> bool:
    """Whether a literal regular expression matches whole texts only.

    Alternatives must be in a group, flags must not change the meaning of `^` and `$`, and the last
    `$` must not be a literal character.
    """
    if not isinstance(pattern, str) or not pattern.startswith("^") or not pattern.endswith("$") or "(?" in pattern:
        return False
    body = pattern[1:-1]
    if (len(body) - len(body.rstrip("\\"))) % 2:
        return False
    depth, in_class, escaped = 0, False, False
    for character in body:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            return False
    return True


def _learn_iteration(parts: list[Node], known: _Known) -> None:
    """`x[_]` and `x[i]` hold only if `x` is a collection with an element."""
    for index, part in enumerate(parts):
        if index and part.get("type") == "var":
            collection = parts[0] if index == 1 else {"type": "ref", "value": parts[:index]}
            known.learn(collection, "walked", "filled")


def _learn_comparison(name: str, operands: list[Node], known: _Known) -> None:
    """What equals a constant has its type; what counts above zero has an element."""
    first, second = operands
    for one, other, sign in ((first, second, name), (second, first, _MIRRORED.get(name, name))):
        if name in EQUAL and other.get("type") in {"number", "string", "boolean"}:
            known.learn(one, "checked")
        counted, limit = call(known.behind(one)), constant(other)
        if counted is None or counted[0] != "count" or isinstance(limit, bool) or not isinstance(limit, int | float):
            continue
        if name in EQUAL and limit == 1:
            known.learn(counted[1][0], "single")
        enough = {"gt": limit >= 0, "gte": limit > 0, "neq": limit == 0, "equal": limit > 0, "eq": limit > 0}
        if enough.get(sign, False):
            known.learn(counted[1][0], "filled")


def _children(term: Node) -> Iterator[Node]:
    for child in term.get("value") or ():
        yield from child if isinstance(child, list) else (child,)


def _surface(node: Any) -> Iterator[Node]:
    """Every object of an expression that holds when the expression does: not inside closures."""
    if isinstance(node, list):
        for child in node:
            yield from _surface(child)
    elif isinstance(node, dict):
        yield node
        if node.get("type") in _CLOSURES:
            return
        for name, child in node.items():
            if name not in {"location", "with"} and not (name == "body" and "domain" in node):
                yield from _surface(child)

"""Rego files as OPA parses them: rules, annotations, comments and the exact text of every part.

The tree below a rule stays the JSON of `opa parse`; the functions here are the only
readers of its shape.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.errors import Location, Problem

Node = dict[str, Any]
"""A term or expression of OPA's syntax tree."""

EQUAL = {"equal", "eq"}
MEMBER = {"internal.member_2", "internal.member_3"}
"""Names of `==` and `in` as calls."""

_MOST_CHARACTERS = 60
"""Of a node in a message."""

_PACKAGE = re.compile(r"^\s*package\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Note:
    """One METADATA block: its YAML without the `#`, and the line of its first YAML line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Import:
    """An imported path, and the name it has in the file."""

    path: tuple[str, ...]
    alias: str
    line: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One definition of a rule. A rule may have several; each is one of these."""

    name: str
    line: int
    arguments: tuple[Node, ...]
    value: Node | None
    key: Node | None
    plain_name: bool  # false for heads such as `a.b` or `a[x]`
    default: bool
    otherwise: Node | None  # the `else` branch
    body: tuple[Node, ...]
    notes: tuple[Note, ...]

    def nodes(self) -> Iterator[Node]:
        """Every object in its tree, parents first."""
        return walk([*self.arguments, *self.body, self.value, self.key, self.otherwise])

    @property
    def unconditional(self) -> bool:
        """Whether the body is nothing but `true`, written or implied."""
        return all(constant(expression.get("terms")) is True for expression in self.body)


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file. `name` is what people call it, such as `rego/admission/lib/time.rego`."""

    name: str
    text: str
    package: tuple[str, ...]
    imports: tuple[Import, ...]
    rules: tuple[Rule, ...]
    package_notes: tuple[Note, ...]
    comments: tuple[tuple[int, int], ...]  # row and column, both from 1

    def problem(self, line: int, message: str, remedy: str) -> Problem:
        """What is wrong at a line of the file, and what to do."""
        return Problem(Location(self.name, line), message, remedy)

    def definitions(self) -> dict[str, list[Rule]]:
        """The rules by name, in the order of the file."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault(rule.name, []).append(rule)
        return found

    def resolve(self, name: tuple[Any, ...]) -> tuple[Any, ...]:
        """A reference with the import or the rule of this file that it begins with written out."""
        for one in self.imports:
            if one.alias == name[0] and one.path[0] in {"data", "input"}:
                return (*one.path, *name[1:])
        if any(rule.name == name[0] for rule in self.rules):
            return ("data", *self.package, *name)
        return name

    def packages(self) -> set[tuple[str, ...]]:
        """The packages of shared helpers that the file may read: the first three or four parts of what it names."""
        named = [one.path for one in self.imports]
        nodes = (node for rule in self.rules for node in rule.nodes())
        named += [found for node in nodes if (found := reference(node)) is not None]
        return {one[1:end] for one in named if one[0] == "data" for end in (4, 5) if None not in one[:end]}

    def bare_text(self) -> str:
        """The text with every comment blanked; line numbers and columns stay."""
        lines = self.text.split("\n")
        for row, column in self.comments:
            lines[row - 1] = lines[row - 1][: column - 1].rstrip()
        return "\n".join(lines)

    def body_text(self, rule: Rule) -> str | None:
        """The conditions of a rule as written, without comments, or None if they span raw strings.

        Raw strings keep their line breaks and tabs, so they cannot be indented anew.
        """
        lines = self.bare_text().split("\n")
        first, last = _span(rule.body[0])[0], _span(rule.body[-1])[1]
        chosen = lines[first[0] - 1 : last[0]]
        chosen[-1] = chosen[-1][: last[1] - 1]
        chosen[0] = chosen[0][first[1] - 1 :]
        text = "\n".join(line.rstrip() for line in chosen if line.strip())
        return None if "`" in text or not text else text


def module(name: str, text: str, tree: Node) -> Module:
    """Read OPA's JSON of a syntax tree; where it has no locations, every line is 1."""
    return Module(
        name=name,
        text=text,
        package=tuple(part["value"] for part in tree["package"]["path"][1:]),
        imports=tuple(
            Import(path, one.get("alias") or path[-1], line_of(one, 1))
            for one in tree.get("imports") or ()
            for path in [tuple(str(part["value"]) for part in one["path"]["value"])]
        ),
        rules=tuple(_rule(rule) for rule in tree.get("rules") or ()),
        package_notes=tuple(
            _note(note) for note in tree.get("annotations") or () if note.get("scope") in {"package", "subpackages"}
        ),
        comments=tuple((one["Location"]["row"], one["Location"]["col"]) for one in tree.get("comments") or ()),
    )


def package_of(text: str) -> str | None:
    """The stated package of a file, read without OPA; for files that are not parsed."""
    match = _PACKAGE.search(text)
    return match[1] if match else None


def constant(term: Any) -> Any:
    """The value of a scalar term; a bare object for every other term, equal to nothing."""
    if isinstance(term, dict) and term.get("type") in {"boolean", "string", "number"}:
        return term.get("value")
    return object()


def reference(term: Any) -> tuple[Any, ...] | None:
    """A variable or reference as its parts: constants as they are, variable indexes as None."""
    if not isinstance(term, dict):
        return None
    if term.get("type") == "var":
        return (term["value"],)
    if term.get("type") != "ref" or term["value"][0].get("type") != "var":
        return None
    parts = term["value"]
    return (
        parts[0]["value"],
        *(part["value"] if part.get("type") in {"string", "number"} else None for part in parts[1:]),
    )


def call(node: Any) -> tuple[str, list[Node]] | None:
    """Operator, such as `count` or `data.admission.lib.time.left`, and operands of a call: an expression or a term."""
    if not isinstance(node, dict):
        return None
    terms = node.get("terms") if "terms" in node else node.get("value") if node.get("type") == "call" else None
    if not isinstance(terms, list) or not terms:
        return None
    name = reference(terms[0])
    return None if name is None else (".".join(map(str, name)), terms[1:])


def key_of(term: Any) -> str:
    """A form of a term that is equal for equal terms, regardless of position."""
    return json.dumps(_bare(term), sort_keys=True)


def text_of(node: Any) -> str:
    """The source text of a node on one line, for messages."""
    location = node.get("location") if isinstance(node, dict) else None
    text = " ".join(_decoded(location).split()) if location else "?"
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"


def line_of(node: Any, default: int) -> int:
    """The line of a node, else `default`."""
    location = node.get("location") if isinstance(node, dict) else None
    return int(location["row"]) if location else default


def walk(node: Any) -> Iterator[Node]:
    """Every object in a tree, parents first."""
    if isinstance(node, dict):
        yield node
        for name, child in node.items():
            if name != "location":
                yield from walk(child)
    elif isinstance(node, list):
        for child in node:
            yield from walk(child)


def declared(rule: Rule) -> set[str]:
    """Variables that a definition declares: its arguments, `some`, `every`, and what `:=` assigns."""
    found = names_in(list(rule.arguments))
    for node in rule.nodes():
        if "symbols" in node:
            for symbol in node["symbols"]:
                called = call(symbol)
                found |= names_in(called[1][:-1] if called else symbol)
        elif "domain" in node and "body" in node:
            found |= names_in([node.get("key"), node.get("value")])
        elif (called := call(node)) is not None and called[0] == "assign":
            found |= names_in(called[1][0])
    return found


def names_in(node: Any) -> set[str]:
    """The names of all variables in a tree."""
    return {str(one["value"]) for one in walk(node) if one.get("type") == "var"}


def _rule(tree: Node) -> Rule:
    head = tree["head"]
    ref = head.get("ref") or []
    return Rule(
        name=str(ref[0]["value"] if ref else head["name"]),
        line=line_of(head, 1),
        arguments=tuple(head.get("args") or ()),
        value=head.get("value"),
        key=head.get("key"),
        plain_name=len(ref) == 1,
        default=bool(tree.get("default")),
        otherwise=tree.get("else"),
        body=tuple(tree.get("body") or ()),
        notes=tuple(_note(note) for note in tree.get("annotations") or ()),
    )


def _note(annotation: Node) -> Note:
    lines = _decoded(annotation["location"]).split("\n")[1:]
    return Note("\n".join(line.lstrip()[1:].removeprefix(" ") for line in lines), annotation["location"]["row"] + 1)


def _span(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Row and column where a node begins, and just after its end."""
    row, column = node["location"]["row"], node["location"]["col"]
    lines = _decoded(node["location"]).split("\n")
    end = len(lines[-1]) + (column if len(lines) == 1 else 1)
    return (row, column), (row + len(lines) - 1, end)


def _decoded(location: Node) -> str:
    return base64.b64decode(location["text"]).decode("utf-8")


def _bare(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _bare(child) for name, child in node.items() if name not in {"location", "index"}}
    return [_bare(child) for child in node] if isinstance(node, list) else node

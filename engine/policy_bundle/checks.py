"""What every file of rules must be: in its place, in its dialect, within what rules may call and read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from engine.errors import Location, Problem
from engine.policy_bundle.catalogue import no_point, quoted
from engine.policy_bundle.syntax import Module, Node, call, constant, line_of, package_of, reference

FORBIDDEN = frozenset(
    {
        "http.send",
        "internal.print",
        "io.jwt.decode_verify",
        "io.jwt.encode_sign",
        "io.jwt.encode_sign_raw",
        "json.match_schema",
        "json.verify_schema",
        "net.lookup_ip_addr",
        "opa.runtime",
        "print",
        "providers.aws.sign_req",
        "rand.intn",
        "rego.metadata.chain",
        "rego.metadata.rule",
        "rego.parse_module",
        "time.now_ns",
        "trace",
        "uuid.rfc4122",
    }
)
"""Nondeterministic, reaching out of OPA, or removed from served rules, such as metadata and prints."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The argument and result types of a built-in: `number`, `string`, … or `any`."""

    arguments: tuple[str, ...]
    result: str


def allowed(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities without what is forbidden, for `opa check --capabilities`."""
    kept = [one for one in capabilities["builtins"] if one["name"] not in FORBIDDEN]
    return {**capabilities, "builtins": kept, "allow_net": []}


def signatures(capabilities: Mapping[str, Any]) -> dict[str, Signature]:
    """Every built-in by name."""
    return {one["name"]: _signature(one["decl"]) for one in capabilities["builtins"]}


def _signature(declaration: Mapping[str, Any]) -> Signature:
    return Signature(tuple(_type(one) for one in declaration.get("args", ())), _type(declaration.get("result", {})))


def _type(declared: Mapping[str, Any]) -> str:
    """One name for a type. Numbers or sets count as numbers: no fact is a set, JSON has none."""
    kinds = {one.get("type") for one in declared.get("of", ())} if declared.get("type") == "any" else None
    return "number" if kinds == {"number", "set"} else str(declared.get("type", "any"))


COMMON = "common"
"""Used in place of a point: requirements that apply at all points."""

PARAMETERS = "parameters"
PARAMETERS_FILE = "values/parameters.yaml"
"""Values that the added rules of a recipe define for themselves; `data.policy.parameters` in Rego."""

GENERATED_RULE = "_findings"
"""The rule that the build adds to each file of requirements; authors may not use its name."""
_IMPORT = ("future", "keywords", "not")
_PATTERNS = {
    "regex.find_all_string_submatch_n": 0,
    "regex.find_n": 0,
    "regex.match": 0,
    "regex.replace": 1,
    "regex.split": 0,
}
"""Which operand is the regular expression."""
_READABLE = {"lib", "limits", "requirements"}
_WORD = re.compile(r"^[a-z][a-z0-9_]*$")


class Kind(StrEnum):
    """What a file of rules is."""

    REQUIREMENTS = "requirements"
    LIMITS = "limits"
    LIB = "lib"
    ADDED = "added"
    ADDED_LIB = "added.lib"


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The place of a file of rules, which determines its kind: point and topic come from the path."""

    name: str
    kind: Kind
    point: str  # empty for helpers
    topic: str  # empty for limits

    @property
    def package(self) -> tuple[str, ...]:
        """The package that the file must have."""
        return ("admission", *self.kind.value.split("."), *(part for part in (self.point, self.topic) if part))

    @property
    def helpers(self) -> bool:
        """Whether the file holds helpers for the rules of all points."""
        return self.kind in {Kind.LIB, Kind.ADDED_LIB}

    @property
    def added(self) -> bool:
        """Whether the file is of a recipe."""
        return self.kind in {Kind.ADDED, Kind.ADDED_LIB}

    @property
    def served(self) -> str:
        """The path in the archive."""
        return "/".join(self.package) + ".rego"


def place(name: str, points: Collection[str]) -> RuleFile | Problem:
    """The place of a file by its name, such as `rego/admission/requirements/source/license.rego`."""
    path = PurePosixPath(name)
    folders = path.parts[:-1]
    topic = path.stem
    match folders:
        case ("rego", "admission", "requirements", point):
            found = RuleFile(name, Kind.REQUIREMENTS, point, topic)
        case ("rego", "admission", "limits"):
            found = RuleFile(name, Kind.LIMITS, topic, "")
        case ("rego", "admission", "lib"):
            found = RuleFile(name, Kind.LIB, "", topic)
        case ("bundles", _, "rules", "lib"):
            found = RuleFile(name, Kind.ADDED_LIB, "", topic)
        case ("bundles", _, "rules", point):
            found = RuleFile(name, Kind.ADDED, point, topic)
        case _:
            return Problem(
                Location(name),
                "rules are not read from this folder",
                "move it to admission/requirements/<point>/, admission/limits/, admission/lib/, "
                "or rules/<point>/ or rules/lib/ of a recipe",
            )
    everywhere = found.point == COMMON and found.kind is not Kind.LIMITS
    if found.point and found.point not in points and not everywhere:
        return Problem(Location(name), *no_point(found.point, points))
    if not _WORD.match(topic):
        return Problem(
            Location(name), f"`{topic}` is not a valid topic name", "use a-z, 0-9 and `_`, such as `license`"
        )
    return found


def test_place(name: str, data: bytes, points: Collection[str]) -> Iterator[Problem]:
    """Problems of a test file: it is not served, so it may contain only tests."""
    subject = place(name.removesuffix("_test.rego") + ".rego", points)
    if isinstance(subject, Problem):
        yield Problem(Location(name), subject.message, subject.remedy)
        return
    want = ".".join((*subject.package[:-1], f"{subject.package[-1]}_test"))
    found = package_of(data.decode("utf-8", "replace"))
    if found != want:
        yield Problem(
            Location(name, 1),
            f"a test file must be `package {want}`, found `{found}`",
            "correct the package; if the file is not a test, rename it, because tests are not served",
        )


def module_problems(module: Module, place: RuleFile, documents: Collection[str], *, foreign: bool) -> Iterator[Problem]:
    """Problems of any served file. `foreign` files, written for conftest or Gatekeeper, keep their dialect."""
    if module.package != place.package:
        required = ".".join(place.package)
        message = f"the package is `{'.'.join(module.package)}`, its folder requires `{required}`"
        yield module.problem(1, message, f"write `package {required}`")
    if not foreign:
        yield from _dialect(module)
    for rule in module.rules:
        if rule.name == GENERATED_RULE:
            yield module.problem(rule.line, f"the build defines `{rule.name}`", "choose another name")
        for node in rule.nodes():
            if (problem := _node_problem(module, node)) is not None:
                yield module.problem(line_of(node, rule.line), *problem)
    for line, path in dict.fromkeys(_paths(module)):
        if path[0] == "data" and (problem := _read_problem(path, documents, place, foreign=foreign)) is not None:
            yield module.problem(line, *problem)


def _dialect(module: Module) -> Iterator[Problem]:
    if not any(one.path == _IMPORT for one in module.imports):
        message = "`import future.keywords.not` is missing: without it `not f(x)` never holds while x is undefined"
        yield module.problem(1, message, "add `import future.keywords.not` after the package")
    for one in module.imports:
        if one.path[0] in {"rego", "future"} and one.path != _IMPORT:
            message = f"`import {'.'.join(one.path)}` changes the Rego dialect of the rules"
            yield module.problem(one.line, message, "import `future.keywords.not` only")


def _node_problem(module: Module, node: Node) -> tuple[str, str] | None:
    if node.get("type") == "var" and str(node.get("value")).startswith("__"):
        return f"`{node['value']}`: names that begin with `__` are reserved for generated code", "choose another name"
    called = call(node)
    name = called[0] if called else ""
    if name in FORBIDDEN and ".".join(map(str, module.resolve(tuple(name.split("."))))) == name:
        message = f"`{name}` may not be called: a decision follows from the input and the values alone"
        return message, "let the engine compute the fact and read it from `input`; words belong into METADATA"
    return None


def patterns(module: Module) -> Iterator[tuple[int, str]]:
    """Every regular expression that the file calls with as a constant, with its line."""
    for rule in module.rules:
        for node in rule.nodes():
            name, operands = call(node) or ("", [])
            for operand in operands[_PATTERNS[name] :][:1] if name in _PATTERNS else ():
                if isinstance(text := constant(operand), str):
                    yield line_of(node, rule.line), text


def _paths(module: Module) -> Iterator[tuple[int, tuple[object, ...]]]:
    """What the file imports or names, with the line."""
    yield from ((one.line, one.path) for one in module.imports)
    for rule in module.rules:
        for node in rule.nodes():
            if node.get("type") == "ref" and (name := reference(node)) is not None:
                yield line_of(node, rule.line), name


def _read_problem(
    path: tuple[object, ...], documents: Collection[str], place: RuleFile, *, foreign: bool
) -> tuple[str, str] | None:
    name = ".".join("…" if part is None else str(part) for part in path[:4])
    match path:
        case ("data", "policy", str() as document, *_):
            return None if document in documents else _no_values(name, document, documents)
        case ("data", "policy", *_):
            return f"`{name}` reads values without naming the document", "name it, such as `data.policy.licenses`"
        case ("data", "admission", kind, *_) if kind == "lib" or (kind in _READABLE and not foreign):
            return None
        case ("data", "admission", "added", "lib", *_) if place.added:
            return None
    own = ", and helpers of rules/lib/ as `data.admission.added.lib.<topic>`" if place.added else ""
    return (
        f"`{name}` may not be read by rules",
        f"read `input`, `data.policy.<document>` and `data.admission.lib.<topic>`{own}",
    )


def _no_values(name: str, document: str, documents: Collection[str]) -> tuple[str, str]:
    remedy = f"use one of {quoted(documents)}"
    if document == PARAMETERS:
        remedy = f"write them into {PARAMETERS_FILE} of the recipe"
    return f"`{name}`: there are no values `{document}`", remedy

"""What every file of rules must be: in its place, in its dialect, within what rules may call and read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from engine.errors import Location, Problem
from engine.policy_bundle.builtins import FORBIDDEN
from engine.policy_bundle.catalogue import quoted
from engine.policy_bundle.syntax import Module, call, line_of, package_of, reference, walk

COMMON = "common"
"""In the place of a point: requirements that hold at all of them."""

GENERATED_RULE = "_findings"
"""The rule that the build adds to each file of requirements; authors may not use its name."""
_IMPORT = ("future", "keywords", "not")
_READABLE = {"lib", "limits", "requirements"}
_WORD = re.compile(r"^[a-z][a-z0-9_]*$")


class Kind(StrEnum):
    """What a file of rules is."""

    REQUIREMENTS = "requirements"
    LIMITS = "limits"
    LIB = "lib"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file of rules stands and so what it is: point and topic come from the path."""

    name: str
    kind: Kind
    point: str  # empty for lib
    topic: str

    @property
    def package(self) -> tuple[str, ...]:
        """The package that the file must have."""
        parts = {
            Kind.REQUIREMENTS: (self.point, self.topic),
            Kind.LIMITS: (self.point,),
            Kind.LIB: (self.topic,),
            Kind.ADDED: (self.point, self.topic),
        }
        return ("admission", self.kind.value, *parts[self.kind])

    @property
    def served(self) -> str:
        """The path in the archive."""
        return "/".join(self.package) + ".rego"


def place(name: str, points: Collection[str]) -> Place | Problem:
    """The place of a file by its name, such as `rego/admission/requirements/source/license.rego`."""
    path = PurePosixPath(name)
    folders = path.parts[:-1]
    topic = path.stem
    match folders:
        case ("rego", "admission", "requirements", point):
            found = Place(name, Kind.REQUIREMENTS, point, topic)
        case ("rego", "admission", "limits"):
            found = Place(name, Kind.LIMITS, topic, topic)
        case ("rego", "admission", "lib"):
            found = Place(name, Kind.LIB, "", topic)
        case ("bundles", _, "rules", point):
            found = Place(name, Kind.ADDED, point, topic)
        case _:
            return Problem(
                Location(name),
                "no rules are read from here",
                "move it to admission/requirements/<point>/, admission/limits/, admission/lib/, "
                "or rules/<point>/ of a recipe",
            )
    everywhere = found.point == COMMON and found.kind is not Kind.LIMITS
    if found.point and found.point not in points and not everywhere:
        return Problem(Location(name), f"there is no decision point `{found.point}`", f"use one of {quoted(points)}")
    if not _WORD.match(topic):
        return Problem(Location(name), f"`{topic}` is no name for a topic", "use a-z, 0-9 and `_`, such as `license`")
    return found


def test_place(name: str, data: bytes, points: Collection[str]) -> Iterator[Problem]:
    """Problems of a test file: it is not served, so nothing but tests may stand in it."""
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
            "correct the package, or rename the file when it is no test: tests are not served",
        )


def module_problems(module: Module, place: Place, documents: Collection[str], *, foreign: bool) -> Iterator[Problem]:
    """Problems of any served file. `foreign` files, written for conftest or Gatekeeper, keep their dialect."""
    if module.package != place.package:
        yield Problem(
            Location(module.name, 1),
            f"the package is `{'.'.join(module.package)}`, its place says `{'.'.join(place.package)}`",
            f"write `package {'.'.join(place.package)}`",
        )
    if not foreign:
        yield from _dialect(module)
    yield from _names(module)
    yield from _calls(module)
    yield from _reads(module, documents, foreign=foreign)


def _dialect(module: Module) -> Iterator[Problem]:
    if not any(one.path == _IMPORT for one in module.imports):
        yield Problem(
            Location(module.name, 1),
            "`import future.keywords.not` is missing: without it `not f(x)` never holds while x is undefined",
            "add `import future.keywords.not` after the package",
        )
    for one in module.imports:
        if one.path[0] in {"rego", "future"} and one.path != _IMPORT:
            yield Problem(
                Location(module.name, one.line),
                f"`import {'.'.join(one.path)}` is another dialect than the one rules are written in",
                "import `future.keywords.not` only",
            )


def _names(module: Module) -> Iterator[Problem]:
    for rule in module.rules:
        if rule.name == GENERATED_RULE:
            yield Problem(Location(module.name, rule.line), f"the build defines `{rule.name}`", "choose another name")
        for node in walk([*rule.body, *rule.arguments, rule.value, rule.key, rule.otherwise]):
            if node.get("type") == "var" and str(node.get("value")).startswith("__"):
                line = line_of(node, rule.line)
                message = f"`{node['value']}`: names that begin with `__` belong to what is generated"
                yield Problem(Location(module.name, line), message, "choose another name")


def _calls(module: Module) -> Iterator[Problem]:
    for rule in module.rules:
        for node in walk([*rule.body, rule.value, rule.key, rule.otherwise]):
            called = call(node)
            name = called[0] if called else None
            if name in FORBIDDEN and ".".join(map(str, module.resolve(tuple(str(name).split("."))))) == name:
                yield Problem(
                    Location(module.name, line_of(node, rule.line)),
                    f"`{name}` may not be called: a decision follows from the input and the values alone",
                    "let the engine compute the fact and read it from `input`; words belong into METADATA",
                )


def _reads(module: Module, documents: Collection[str], *, foreign: bool) -> Iterator[Problem]:
    paths = [(one.line, one.path) for one in module.imports]
    for rule in module.rules:
        for node in walk([*rule.body, *rule.arguments, rule.value, rule.key, rule.otherwise]):
            name = reference(node) if node.get("type") == "ref" else None
            if name is not None and name[0] == "data":
                paths.append((line_of(node, rule.line), name))
    for line, path in dict.fromkeys(paths):
        if path[0] == "data" and (problem := _read_problem(path, documents, foreign=foreign)):
            yield Problem(Location(module.name, line), *problem)


def _read_problem(path: tuple[object, ...], documents: Collection[str], *, foreign: bool) -> tuple[str, str] | None:
    shown = ".".join("…" if part is None else str(part) for part in path[:4])
    match path:
        case ("data", "policy", str() as document, *_) if document in documents:
            return None
        case ("data", "policy", str() as document, *_):
            return f"`{shown}`: there are no values `{document}`", f"use one of {quoted(documents)}"
        case ("data", "policy", *_):
            return f"`{shown}` reads values without naming the document", "name it, such as `data.policy.licenses`"
        case ("data", "admission", "lib", *_):
            return None
        case ("data", "admission", kind, *_) if kind in _READABLE and not foreign:
            return None
    return (
        f"`{shown}` is not for rules to read",
        "read `input`, `data.policy.<document>` and `data.admission.lib.<topic>`",
    )

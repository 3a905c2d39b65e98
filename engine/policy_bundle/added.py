"""Rules that an organization adds under `bundles/<name>/rules/<point>/`. They can only narrow.

Two forms: requirements like our own, in `package admission.added.<point>.<topic>`; or `deny` and
`violation` sets as written for conftest or Gatekeeper, moved into such a package whatever theirs
is. Either way they add findings and can define nothing outside that package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from engine.errors import Location, Problem
from engine.model import is_reserved
from engine.policy_bundle import notes
from engine.policy_bundle.catalogue import Requirement
from engine.policy_bundle.checks import Place
from engine.policy_bundle.points import AddedSet
from engine.policy_bundle.syntax import Module, Rule, package_of

_OWN = "admission.added."
_PACKAGE_LINE = re.compile(r"\A(\s*)package[ \t]+[A-Za-z0-9_.]+[ \t]*\r?$", re.MULTILINE)
"""Only what the text begins with, comments blanked: further down, such a line can stand in a raw string."""
_SET = re.compile(r"^(deny|violation)(_[a-zA-Z0-9_]+)?$")
_IGNORED = re.compile(r"^(warn|exception)(_[a-zA-Z0-9_]+)?$")


def foreign(data: bytes) -> bool:
    """Whether a file is in the second form: its package is none of ours."""
    return not (package_of(data.decode("utf-8", "replace")) or "").startswith(_OWN)


def moved(module: Module, place: Place, found: list[Problem]) -> Module:
    """The same file in the package that its place says; what is served is parsed again to see that it is."""
    package = f"package {'.'.join(place.package)}"
    text, count = _PACKAGE_LINE.subn(rf"\g<1>{package}", module.bare_text())
    if count == 0:
        found.append(unmoved(module.name, place.package))
    return replace(module, text=text, package=place.package, comments=())


def unmoved(name: str, package: Iterable[str]) -> Problem:
    """The problem of a file that is not in the package of its place."""
    remedy = f"write `package {'.'.join(package)}` on the first line"
    return Problem(Location(name, 1), "the package cannot be moved to its place", remedy)


def sets(module: Module, place: Place, owner: str, found: list[Problem]) -> list[AddedSet]:
    """The `deny` and `violation` sets of a file of the second form; what cannot be one is added to `found`."""
    read: list[AddedSet] = []
    for name, definitions in module.definitions().items():
        where = Location(module.name, definitions[0].line)
        if _IGNORED.match(name):
            message = f"`{name}` would not be read: only `deny` and `violation` are"
            remedy = "rename it to `deny_…`, with `standing: warn` in its METADATA and warn in policy/levels.yaml; "
            remedy += "or remove it"
            found.append(Problem(where, message, remedy))
        if not _SET.match(name):
            continue
        if any(_no_set(rule) for rule in definitions):
            found.append(Problem(where, f"`{name}` is no set of messages", f"write `{name} contains message if …`"))
        elif (one := _set(module, place, definitions, owner, found)) is not None:
            read.append(one)
    if not any(_SET.match(rule.name) for rule in module.rules):
        package = ".".join(place.package)
        found.append(
            Problem(
                Location(module.name, 1),
                "the file adds no rule",
                f"write `deny contains message if …`, or requirements in `package {package}`",
            )
        )
    return read


def _no_set(rule: Rule) -> bool:
    return rule.key is None or rule.value is not None or bool(rule.arguments) or rule.default


def _set(
    module: Module, place: Place, definitions: Iterable[Rule], owner: str, found: list[Problem]
) -> AddedSet | None:
    rules = list(definitions)
    written = [note for rule in rules for note in rule.notes]
    note = notes.SetNote() if not written else notes.read(written[0], notes.SetNote, module.name, found)
    if note is None:
        return None
    rule = rules[0]
    where = Location(module.name, rule.line)
    if len(written) > 1:
        message = f"`{rule.name}` has METADATA twice, and all its messages have one code"
        found.append(Problem(where, message, f"keep one block, or name one of them `{rule.name}_…`"))
        return None
    code = note.custom.code or f"{place.topic}_{rule.name.lower()}"
    if is_reserved(code):
        found.append(Problem(where, f"the code `{code}` is reserved for the engine itself", "choose another code"))
    requirement = Requirement(
        code=code,
        title=note.title or f"No rule of `{rule.name}` in {place.topic} applies",
        remedy=note.custom.remedy or f"Ask {owner}, who added this rule",
        point=place.point,
        topic=place.topic,
        rule=rule.name,
        description=note.description or "",
        each=None,
        empty=None,
        after=(),
        reads=(),
        labels=note.labels.model_dump(exclude_none=True),
        file=module.name,
        line=rule.line,
        added=True,
        rules=len(rules),
        standing=note.custom.standing or "deny",
    )
    return AddedSet(requirement, place.package)

"""Rules that an organization adds under `bundles/<name>/rules/<point>/`. They can only narrow.

Two forms: requirements like our own, in `package admission.added.<point>.<topic>`; or `deny` and
`violation` sets as written for conftest or Gatekeeper, whose package is replaced by such a package
Either way, they add findings and can define nothing outside that package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from engine.errors import Location, Problem
from engine.policy_bundle import notes
from engine.policy_bundle.checks import RuleFile
from engine.policy_bundle.requirements import Held, described, words_problems
from engine.policy_bundle.syntax import Module, Rule, package_of

_OWN = "admission.added."
_PACKAGE_LINE = re.compile(r"\A(\s*)package[ \t]+[A-Za-z0-9_.]+[ \t]*\r?$", re.MULTILINE)
"""Only the start of the text, without comments: further down, such a line can be part of a raw string."""
_SET = re.compile(r"^(deny|violation)(_[a-zA-Z0-9_]+)?$")
IGNORED = re.compile(r"^(warn|exception)(_[a-zA-Z0-9_]+)?$")


def foreign(data: bytes) -> bool:
    """Whether a file is in the second form: its package is not one of the engine's."""
    return not (package_of(data.decode("utf-8", "replace")) or "").startswith(_OWN)


def moved(module: Module, place: RuleFile, found: list[Problem]) -> Module:
    """The same file with the package of its folder; the served text is parsed again to verify that."""
    package = f"package {'.'.join(place.package)}"
    text, count = _PACKAGE_LINE.subn(rf"\g<1>{package}", module.bare_text())
    if count == 0:
        found.append(unmoved(module.name, place.package))
    return replace(module, text=text, package=place.package, comments=())


def unmoved(name: str, package: Iterable[str]) -> Problem:
    """The problem of a file that is not in the package of its place."""
    remedy = f"write `package {'.'.join(package)}` on the first line"
    return Problem(Location(name, 1), "the package cannot be renamed for the bundle", remedy)


def sets(module: Module, place: RuleFile, owner: str, found: list[Problem]) -> list[Held]:
    """The `deny` and `violation` sets of a file of the second form; what cannot be one is added to `found`."""
    read: list[Held] = []
    for name, definitions in module.definitions().items():
        line = definitions[0].line
        if IGNORED.match(name):
            message = f"`{name}` would not be read: only `deny` and `violation` are"
            remedy = "rename it to `deny_…`, with `standing: warn` in its METADATA and warn in policy/levels.yaml; "
            found.append(module.problem(line, message, f"{remedy}or remove it"))
        if not _SET.match(name):
            continue
        if any(one.key is None or one.value is not None or one.arguments or one.default for one in definitions):
            message = f"`{name}` is not a set of messages"
            found.append(module.problem(line, message, f"write `{name} contains message if …`"))
        elif (one := _set(module, place, definitions, owner, found)) is not None:
            read.append(one)
    if not any(_SET.match(rule.name) for rule in module.rules):
        remedy = f"write `deny contains message if …`, or requirements in `package {'.'.join(place.package)}`"
        found.append(module.problem(1, "the file adds no rule", remedy))
    return read


def _set(module: Module, place: RuleFile, rules: list[Rule], owner: str, found: list[Problem]) -> Held | None:
    written = [note for rule in rules for note in rule.notes]
    note = notes.SetNote() if not written else notes.read(written[0], notes.SetNote, module.name, found)
    if note is None:
        return None
    rule = rules[0]
    if len(written) > 1:
        message = f"`{rule.name}` has METADATA twice, and all its messages have one code"
        found.append(module.problem(rule.line, message, f"keep one block, or name one of them `{rule.name}_…`"))
        return None
    requirement = described(
        note,
        place,
        rule,
        code=f"{place.topic}_{rule.name.lower()}",
        title=f"No rule of `{rule.name}` in {place.topic} applies",
        remedy=f"Ask {owner}, who added this rule",
        description="",
        rules=len(rules),
    )
    found.extend(words_problems(requirement, rule))
    return Held(requirement, tuple(rules), module)

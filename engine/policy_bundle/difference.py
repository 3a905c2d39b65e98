"""What differs between two policies: values, requirements with their words and levels, and files of rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import Requirement

_LEVELS, _WAIVERS = "levels", "waivers"
_WORDS = ("title", "description", "remedy")
Kind = Literal["added", "removed", "changed"]
_CLOSED = ConfigDict(extra="forbid", strict=True)
"""A release has its differences as JSON, which is read as these classes again."""


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ValueDifference:
    """A value below `policy/`; `where` is its place in the policy that has it, the new one if both do."""

    kind: Kind
    path: str
    before: Any
    after: Any
    where: str | None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class RequirementDifference:
    """A requirement. `words` are those that changed, by name, before and after."""

    kind: Literal["added", "removed", "reworded"]
    point: str
    code: str
    title: str
    where: str
    words: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, config=_CLOSED)
class RulesDifference:
    """A file of rules with other conditions."""

    kind: Kind
    file: str


@dataclass(frozen=True, slots=True, config=_CLOSED)
class PolicyDifference:
    """Everything that differs."""

    values: tuple[ValueDifference, ...]
    levels: tuple[ValueDifference, ...]
    waivers: tuple[ValueDifference, ...]
    requirements: tuple[RequirementDifference, ...]
    rules: tuple[RulesDifference, ...]


def difference(before: PolicyBundle, after: PolicyBundle) -> PolicyDifference:
    """How `after` differs from `before`."""
    values = tuple(_values(before, after, before.data, after.data, ()))
    levels, waivers = (tuple(one for one in values if one.path.startswith(f"{name}.")) for name in (_LEVELS, _WAIVERS))
    return PolicyDifference(
        tuple(one for one in values if one not in levels and one not in waivers),
        levels,
        waivers,
        tuple(_requirements(before, after)),
        tuple(_rules(before, after)),
    )


def _values(
    before: PolicyBundle, after: PolicyBundle, old: Any, new: Any, path: tuple[str | int, ...]
) -> Iterator[ValueDifference]:
    """Differences of mappings, row by row; any other value differs as a whole."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            kind: Kind = "added" if name not in old else "removed" if name not in new else "changed"
            below = (*path, name)
            if kind == "changed":
                yield from _values(before, after, old[name], new[name], below)
            else:
                holder = after if kind == "added" else before
                yield _value(kind, below, old.get(name), new.get(name), holder)
        return
    yield _value("changed", path, old, new, after)


def _value(kind: Kind, path: tuple[str | int, ...], old: Any, new: Any, holder: PolicyBundle) -> ValueDifference:
    where = holder.row(path).where
    return ValueDifference(kind, ".".join(map(str, path)), old, new, None if where is None else str(where))


def _requirements(before: PolicyBundle, after: PolicyBundle) -> Iterator[RequirementDifference]:
    old, new = _by_code(before), _by_code(after)
    for key in sorted(old.keys() | new.keys()):
        point, code = key
        if key not in new:
            yield RequirementDifference("removed", point, code, old[key].title, _where(before, old[key]))
        elif key not in old:
            yield RequirementDifference("added", point, code, new[key].title, _where(after, new[key]))
        else:
            pairs = ((name, getattr(old[key], name), getattr(new[key], name)) for name in _WORDS)
            if words := tuple(pair for pair in pairs if pair[1] != pair[2]):
                yield RequirementDifference("reworded", point, code, new[key].title, _where(after, new[key]), words)


def _by_code(policy: PolicyBundle) -> dict[tuple[str, str], Requirement]:
    """Each requirement once, under the point that it is written for, which may be `common`."""
    found = (one for entries in policy.catalogue.points.values() for one in entries.requirements.values())
    return {(one.point, one.code): one for one in found}


def _where(policy: PolicyBundle, one: Requirement) -> str:
    return str(policy.sources.where(one.where))


def _rules(before: PolicyBundle, after: PolicyBundle) -> Iterator[RulesDifference]:
    old, new = _files(before), _files(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield RulesDifference("added" if name not in old else "removed" if name not in new else "changed", name)


def _files(policy: PolicyBundle) -> dict[str, str]:
    """The authors' files of rules as they are served: without comments, and without what is generated."""
    found: dict[str, str] = {}
    for served, data in archives.read(policy.rules.path).items():
        kind, _, rest = served.removeprefix(f"{archives.RULES_ROOT}/").partition("/")
        if served.endswith(".rego") and rest and kind != "compiled":
            own = data.decode("utf-8").partition(archives.GENERATED)[0]
            name = f"bundles/{policy.name}/rules/{rest}" if kind == "added" else f"rego/{served}"
            found[name] = "\n".join(line for line in own.splitlines() if line.strip())
    return found

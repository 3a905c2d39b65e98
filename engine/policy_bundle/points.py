"""What must fit between the rules of one point: codes, lists, `after`, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.errors import Location, Problem
from engine.policy_bundle.catalogue import Entries, Requirement, Words, quoted
from engine.policy_bundle.requirements import Held

LIMITS_MISSING = "limits_missing"


@dataclass(frozen=True, slots=True)
class AddedSet:
    """A `deny` or `violation` set written for conftest or Gatekeeper, as a requirement that it stays empty."""

    requirement: Requirement
    package: tuple[str, ...]


@dataclass(slots=True)
class PointRules:
    """Everything that makes one point: its requirements, added sets, and where its limits stand.

    `shared` are the requirements that hold at every point; they are a part of this one too.
    """

    name: str
    shared: PointRules | None = None
    held: list[Held] = field(default_factory=list)
    sets: list[AddedSet] = field(default_factory=list)
    limits: str | None = None

    def requirements(self) -> list[Requirement]:
        """Own ones first, so that a clash is told of the added one."""
        found = [one.requirement for one in self.held] + [one.requirement for one in self.sets]
        if self.shared is not None:
            found += self.shared.requirements()
        return sorted(found, key=lambda one: (one.added, one.file, one.line))

    def lists(self) -> dict[str, bool]:
        """The lists that must be there, and whether each may be empty: only where all its requirements say so."""
        found: dict[str, bool] = {}
        for one in self.requirements():
            if one.each is not None:
                found[one.each] = found.get(one.each, True) and one.empty is not None
        return dict(sorted(found.items()))

    def packages(self) -> list[tuple[str, ...]]:
        """The packages that hold findings of this point, sorted."""
        shared = [] if self.shared is None else self.shared.packages()
        return sorted({one.module.package for one in self.held} | {one.package for one in self.sets} | set(shared))

    def entries(self) -> Entries:
        """The point's part of the catalogue."""
        generated = [_list_words(path, empty_allowed) for path, empty_allowed in self.lists().items()]
        generated.append(
            Words(
                code=LIMITS_MISSING,
                title="The policy says within what limits this may happen",
                remedy=f"Tell whoever releases the policy: the limits of `{self.name}` are not complete",
            )
        )
        return Entries(
            requirements={one.code: one for one in sorted(self.requirements(), key=lambda one: one.code)},
            generated={one.code: one for one in sorted(generated, key=lambda one: one.code)},
        )


def list_code(path: str) -> str:
    """The code of the finding that a list is missing, empty or no list."""
    return f"{path.rpartition('.')[2]}_missing"


def problems(point: PointRules) -> Iterator[Problem]:
    """What keeps the rules of a point from being one policy."""
    own = [one for one in point.requirements() if not one.added]
    if not any(not one.requirement.added for one in point.held):
        yield Problem(
            Location(f"rego/admission/requirements/{point.name}"),
            f"the point `{point.name}` has no requirement, so nothing would ever be refused",
            "write at least one requirement, or remove the point",
        )
    if point.limits is None:
        yield Problem(
            Location(f"rego/admission/limits/{point.name}.rego"),
            f"the point `{point.name}` has no limits, so nothing could ever be allowed",
            "write `limits := {…}` with every field of the point's limits",
        )
    yield from _code_problems(point)
    yield from _after_problems(point, {one.code for one in own})


def _code_problems(point: PointRules) -> Iterator[Problem]:
    first: dict[str, Requirement] = {}
    generated: dict[str, str] = {LIMITS_MISSING: "missing limits"}
    for path in point.lists():
        code = list_code(path)
        if code in generated:
            culprit = next(one for one in point.requirements() if one.each == path)
            yield Problem(
                Location(culprit.file, culprit.line),
                f"`{path}` would give the code `{code}`, which {generated[code]} gives already",
                "give one of the two lists another name in the input",
            )
        generated[code] = f"the list `{path}`"
    for one in point.requirements():
        where = Location(one.file, one.line)
        if one.code in first:
            other = first[one.code]
            yield Problem(
                where,
                f"the code `{one.code}` is taken by `{other.rule}` in {other.file}:{other.line}",
                "give each requirement of a point its own code",
            )
        elif one.code in generated:
            yield Problem(
                where, f"the build gives the code `{one.code}` to {generated[one.code]}", "choose another code"
            )
        first.setdefault(one.code, one)


def _after_problems(point: PointRules, own: set[str]) -> Iterator[Problem]:
    generated = {LIMITS_MISSING, *map(list_code, point.lists())}
    every = {one.code: one for one in point.requirements()}
    for one in every.values():
        where = Location(one.file, one.line)
        known = generated | (set(every) if one.added else own)
        for code in one.after:
            if code not in known:
                yield Problem(
                    where, f"`after` names `{code}`, which is no code of `{point.name}`", f"use one of {quoted(known)}"
                )
        if _reaches(one.code, every):
            yield Problem(
                where,
                f"`after` of `{one.code}` leads back to itself, so both could hide",
                "let only one of them be after the other",
            )


def _reaches(code: str, every: Mapping[str, Requirement]) -> bool:
    """Whether following `after` from a code comes back to it."""
    seen: set[str] = set()
    waiting = list(every[code].after)
    while waiting:
        current = waiting.pop()
        if current == code:
            return True
        if current not in seen and current in every:
            seen.add(current)
            waiting.extend(every[current].after)
    return False


def _list_words(path: str, empty_allowed: bool) -> Words:  # noqa: FBT001 - one of two words
    if empty_allowed:
        return Words(
            code=list_code(path), title=f"The list `{path}` is there", remedy=f"Give the list `{path}`; it may be empty"
        )
    return Words(
        code=list_code(path),
        title=f"The list `{path}` is there and has at least one entry",
        remedy=f"Give at least one entry in `{path}`",
    )

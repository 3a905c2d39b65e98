"""What must fit between the rules of one point: codes, lists, `after`, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.errors import Location, Problem
from engine.policy_bundle import schemas
from engine.policy_bundle.catalogue import Entries, Requirement, Words, quoted
from engine.policy_bundle.requirements import Held

LIMITS_MISSING = "limits_missing"


@dataclass(slots=True)
class PointRules:
    """Everything that makes up one point: its requirements, and the place of its limits.

    `shared` are the requirements that apply at every point; they are part of this one too.
    """

    name: str
    shared: PointRules | None = None
    held: list[Held] = field(default_factory=list)
    limits: str | None = None

    def requirements(self) -> list[Requirement]:
        """Own ones first, so that a clash is reported for the added one."""
        shared = [] if self.shared is None else self.shared.requirements()
        return sorted([one.requirement for one in self.held] + shared, key=lambda one: (one.added, one.file, one.line))

    def lists(self) -> dict[str, bool]:
        """The lists that must be present, and whether each may be empty: only if all its requirements state so."""
        found: dict[str, bool] = {}
        for one in self.requirements():
            if one.each is not None:
                found[one.each] = found.get(one.each, True) and one.empty is not None
        return dict(sorted(found.items()))

    def packages(self) -> list[tuple[str, ...]]:
        """The packages with findings of this point, sorted."""
        shared = [] if self.shared is None else self.shared.packages()
        return sorted({*shared, *(one.module.package for one in self.held)})

    def entries(self) -> Entries:
        """The point's part of the catalogue."""
        generated = [_list_words(path, empty_allowed) for path, empty_allowed in self.lists().items()]
        generated.append(
            Words(
                code=LIMITS_MISSING,
                title="The policy states the limits of the permit",
                remedy=f"Report to the policy owner that the limits of `{self.name}` are incomplete",
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
    """Problems that prevent the rules of a point from forming one policy."""
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
            message = f"`{path}` would give the code `{code}`, which {generated[code]} already has"
            yield Problem(culprit.where, message, "rename one of the two lists in the input")
        generated[code] = f"the list `{path}`"
    for one in point.requirements():
        if one.code in first:
            other = first[one.code]
            message = f"the code `{one.code}` is already used by `{other.rule}` in {other.where}"
            yield Problem(one.where, message, "use a unique code for each requirement of a point")
        elif one.code in generated:
            message = f"the build gives the code `{one.code}` to {generated[one.code]}"
            yield Problem(one.where, message, "choose another code")
        first.setdefault(one.code, one)


def _after_problems(point: PointRules, own: set[str]) -> Iterator[Problem]:
    entries = point.entries()
    generated = set(entries.generated)
    for code, one in entries.requirements.items():
        known = generated | (set(entries.requirements) if one.added else own)
        for other in sorted(set(one.after) - known):
            message = f"`after` names `{other}`, which is not a code of `{point.name}`"
            yield Problem(one.where, message, f"{schemas.likely(other, sorted(known))}use one of {quoted(known)}")
        if code in entries.before(code):
            message = f"`after` of `{code}` leads back to itself, so both could hide"
            yield Problem(one.where, message, "remove one of the two from `after`")
            continue
        for other in one.after:
            implied = [between for between in one.after if other in entries.before(between)]
            if implied:
                message = f"`after` names `{other}`, which {quoted(implied)} already implies"
                yield Problem(one.where, message, f"remove `{other}` from `after`")


def _list_words(path: str, empty_allowed: bool) -> Words:  # noqa: FBT001 - one of two words
    title, remedy = f"The list `{path}` exists", f"Give the list `{path}`, or `[]` if it has no entries"
    if not empty_allowed:
        title, remedy = f"The list `{path}` has at least one entry", f"Give at least one entry in `{path}`"
    return Words(code=list_code(path), title=title, remedy=remedy, field=path)

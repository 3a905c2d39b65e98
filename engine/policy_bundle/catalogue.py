"""The words beside the served rules: what each finding code means, where it is written, what it reads.

OPA answers with codes only; labels and texts inside served rules would cost it a fifth of its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.documents.canonical import canonical
from engine.errors import Location
from engine.model import Model
from engine.policy_bundle import schemas


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One value that a rule read: its path, such as `licenses.licenses.MIT`, and its location.

    `where` is None when the policy has no such row; `value` is then None too, and `nearest` has keys of
    other rows that are spelled like the one looked for.
    """

    path: str
    value: Any
    where: Location | None
    nearest: tuple[str, ...] = ()


class Words(Model):
    """The text of a finding: the requirement and the remedy. `field` is the fact that a person has to look at."""

    code: str
    title: str
    remedy: str
    field: str | None = None


class Requirement(Words):
    """A rule that must hold.

    `each` is the list whose items it applies to; None means once for the whole request.
    `facts` are those that are shown with a finding, by their names: dotted paths below the item, else below
    the input.
    `file` is relative to the parent of the rules folder, such as `rego/admission/…`; see
    PolicyBundle.where for an existing path. `added` marks rules of `bundles/<name>/rules/`.
    `rules` are the rules of a `deny` or `violation` set, each of which refuses on its own; else 1.
    `standing` is the mildest level that policy/levels.yaml may set without owner and end date;
    with `fixed`, only deny is allowed. `waivable`: policy/waivers.yaml may list the code, unless it is `fixed`.
    """

    point: str
    topic: str
    rule: str
    description: str
    each: str | None = None
    empty: Literal["allowed", "required"] | None = None
    after: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    facts: Mapping[str, str] = {}
    labels: dict[str, str]
    file: str
    line: int
    added: bool
    rules: int = 1
    proof: str | None = None
    standing: Literal["deny", "confirm", "warn"] = "deny"
    fixed: bool = False
    waivable: bool = True

    @property
    def where(self) -> Location:
        """Its place, by the names of the tree that it was built from."""
        return Location(self.file, self.line)

    @property
    def entry(self) -> str:
        """How an inventory lists it."""
        return self.code if self.rules == 1 else f"{self.code} ({self.rules} rules)"

    @property
    def arity(self) -> int:
        """The number of arguments of the rule: one if it applies to each item of a list."""
        return 0 if self.each is None or self.empty == "required" else 1


class Proof(Model):
    """Why a helper or limits cannot hold on a missing fact; `point` is empty for shared helpers."""

    point: str
    rule: str
    proof: str
    file: str
    line: int


class Entries(Model):
    """One point's codes. `generated` are those of lists and limits that must be there."""

    requirements: dict[str, Requirement]
    generated: dict[str, Words]

    def before(self, code: str) -> frozenset[str]:
        """The codes whose findings hide those of this code: its `after`, the `after` of those, and so on."""
        found: set[str] = set()
        waiting = [code]
        while waiting:
            requirement = self.requirements.get(waiting.pop())
            new = set() if requirement is None else set(requirement.after) - found
            found |= new
            waiting += new
        return frozenset(found)


class Catalogue(Model):
    """Everything people may want to know about findings, by point and code."""

    points: dict[str, Entries]
    proofs: tuple[Proof, ...] = ()

    @property
    def written(self) -> bytes:
        """As canonical JSON."""
        return canonical(self.model_dump(mode="json"))

    def requirement(self, point: str, code: str) -> Requirement | None:
        """The requirement with this code; None for generated and for unknown codes."""
        entries = self.points.get(point)
        return None if entries is None else entries.requirements.get(code)

    def words(self, point: str, code: str) -> Words | None:
        """Title and remedy of any code that the policy can emit at this point, else None."""
        entries = self.points.get(point)
        return None if entries is None else entries.requirements.get(code) or entries.generated.get(code)

    def refused(self, point: str, code: str) -> tuple[str, str] | None:
        """Why no row of values may name this code of a point: message and remedy. None if one may."""
        entries = self.points.get(point)
        if entries is None:
            return no_point(point, self.points)
        if code in entries.generated:
            return f"`{code}` always denies: without it no requirement could be evaluated", "remove the row"
        if code not in entries.requirements:
            likely = schemas.likely(code, sorted(entries.requirements))
            return f"no requirement of `{point}` has the code `{code}`", f"{likely}correct the code, or remove the row"
        return None

    def reworded(self, change: Callable[[str], str]) -> Catalogue:
        """The same codes with changed titles, remedies and descriptions."""

        def words(one: Words) -> dict[str, str]:
            texts = ("title", "remedy", "description") if isinstance(one, Requirement) else ("title", "remedy")
            return {name: change(getattr(one, name)) for name in texts}

        return self.model_copy(
            update={
                "points": {
                    point: Entries(
                        requirements={
                            code: one.model_copy(update=words(one)) for code, one in entries.requirements.items()
                        },
                        generated={code: one.model_copy(update=words(one)) for code, one in entries.generated.items()},
                    )
                    for point, entries in self.points.items()
                }
            }
        )

    def without(self, newer: Catalogue) -> tuple[str, ...]:
        """What this one has and a newer one has not, such as `source: license_incompatible`."""
        have, left = self._rules(), newer._rules()
        return tuple(f"{point}: {code}" for (point, code), count in sorted(have.items()) if left[point, code] < count)

    def _rules(self) -> Counter[tuple[str, str]]:
        """How many rules each code has, by the point that it is written for, which may be `common`."""
        found = (one for entries in self.points.values() for one in entries.requirements.values())
        return Counter({(one.point, one.code): one.rules for one in found})

    def codes(self, point: str, topic: str | None = None) -> frozenset[str]:
        """The codes of a point's requirements, or of one topic of it."""
        entries = self.points.get(point)
        found = () if entries is None else entries.requirements.values()
        return frozenset(one.code for one in found if topic is None or one.topic == topic)


def no_point(point: str, points: Iterable[str]) -> tuple[str, str]:
    """Message and remedy about a decision point that is not there."""
    known = sorted(points)
    return f"there is no decision point `{point}`", f"{schemas.likely(point, known)}use one of {quoted(known)}"


def quoted(names: Iterable[str]) -> str:
    """Names as a message lists them: sorted, each in backticks."""
    return ", ".join(f"`{name}`" for name in sorted(names))

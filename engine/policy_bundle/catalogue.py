"""The words beside the served rules: what each finding code means, where it is written, what it reads.

OPA answers with codes only; labels and texts inside served rules would cost it a fifth of its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from engine.model import Model


class Words(Model):
    """What a person reads about a finding: what must hold, and what to do when it does not."""

    code: str
    title: str
    remedy: str


class Requirement(Words):
    """A rule that must hold.

    `each` is the list it is asked of, item by item; None means once for the whole request.
    `file` is named from the folder the rules are in, such as `rego/admission/…`; see
    PolicyBundle.where for a path that opens. `added` tells rules of `bundles/<name>/rules/`.
    `rules` are the rules of a `deny` or `violation` set, each of which refuses on its own; else 1.
    `standing` is the mildest level that policy/levels.yaml may give it without owner and end date;
    with `fixed` it gives none but deny.
    """

    point: str
    topic: str
    rule: str
    description: str
    each: str | None
    empty: Literal["allowed", "required"] | None
    after: tuple[str, ...]
    reads: tuple[str, ...]
    labels: dict[str, str]
    file: str
    line: int
    added: bool
    rules: int = 1
    proof: str | None = None
    standing: Literal["deny", "confirm", "warn"] = "deny"
    fixed: bool = False

    @property
    def entry(self) -> str:
        """How an inventory lists it."""
        return self.code if self.rules == 1 else f"{self.code} ({self.rules} rules)"

    @property
    def arity(self) -> int:
        """How many arguments the rule takes: one when it is asked of each item of a list."""
        return 0 if self.each is None or self.empty == "required" else 1


class Proof(Model):
    """Why a helper or limits may hold what could hold on a missing fact; `point` is empty for shared helpers."""

    point: str
    rule: str
    proof: str
    file: str
    line: int


class Entries(Model):
    """One point's codes. `generated` are those of lists and limits that must be there."""

    requirements: dict[str, Requirement]
    generated: dict[str, Words]


class Catalogue(Model):
    """Everything people may want to know about findings, by point and code."""

    points: dict[str, Entries]
    proofs: tuple[Proof, ...] = ()

    def requirement(self, point: str, code: str) -> Requirement | None:
        """The requirement with this code; None for generated and for unknown codes."""
        entries = self.points.get(point)
        return None if entries is None else entries.requirements.get(code)

    def words(self, point: str, code: str) -> Words | None:
        """Title and remedy of any code that the policy can give at this point, else None."""
        entries = self.points.get(point)
        return None if entries is None else entries.requirements.get(code) or entries.generated.get(code)

    def hiding(self, point: str, code: str) -> frozenset[str]:
        """The codes behind which a finding of this code may be hidden, also behind hidden ones."""
        found: set[str] = set()
        left = [code]
        while left:
            requirement = self.requirement(point, left.pop())
            new = set() if requirement is None else set(requirement.after) - found
            found |= new
            left += new
        return frozenset(found)

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


def quoted(names: Iterable[str]) -> str:
    """Names as a message lists them: sorted, each in backticks."""
    return ", ".join(f"`{name}`" for name in sorted(names))

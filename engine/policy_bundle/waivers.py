"""Waivers beside the rules: which codes may be waived, and which waivers do nothing, and why.

OPA applies waivers (rego/admission/lib/waiver.rego). What is said here is for people, about the same conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from engine.documents.files import counted
from engine.errors import Location, Problem
from engine.policy_bundle import schemas
from engine.policy_bundle.catalogue import Catalogue, Requirement, no_point, quoted
from engine.policy_bundle.levels import Places, row_problems

_FILE = Location("policy/waivers.yaml")


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waiver, with its place; `starts` and `until` are its first and last day in UTC."""

    point: str
    code: str
    id: str
    subject: str
    principal: str
    facts: Mapping[str, str]
    owner: str
    approver: str
    reason: str
    starts: str
    until: str
    where: Location | None

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"the waiver `{self.id}` of `{self.code}` at point `{self.point}`"

    def summary(self, idle: Idle | None) -> str:
        """What it does, in a line."""
        place = "policy/waivers.yaml" if self.where is None else str(self.where)
        if idle is not None:
            return f"{place}: {self.name} does nothing: {idle.reason}"
        people = f"{self.owner}, approved by {self.approver}"
        return f"{place}: {self.name} is in force until {self.until}, by {people}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Idle:
    """Why a waiver does nothing; `remedy` is None for one whose first day is still to come."""

    reason: str
    remedy: str | None


def waivers_in(document: Mapping[str, Any], where: Callable[[tuple[str, ...]], Location | None]) -> tuple[Waiver, ...]:
    """Every waiver of policy/waivers.yaml, in its order. `where` finds a row in its file."""
    return tuple(
        Waiver(point, code, id_, **row, where=where(("waivers", "waivers", point, code, id_)))
        for point, codes in document.get("waivers", {}).items()
        for code, rows in codes.items()
        for id_, row in rows.items()
    )


def idle(waiver: Waiver, document: Mapping[str, Any], catalogue: Catalogue, now: int) -> Idle | None:
    """Why a waiver does nothing at this time, in seconds since 1970 UTC; None if it applies to what it is for."""
    return next(_reasons(waiver, document, catalogue, now), None)


def empty_rows(document: Mapping[str, Any], catalogue: Catalogue, place: Places) -> Iterator[Problem]:
    """Rows without any waiver below a point or code that does not exist; a waiver there is reported by `idle`."""
    for point, codes in document.get("waivers", {}).items():
        if not codes and point not in catalogue.points:
            yield Problem(place(("waivers", "waivers", point)) or _FILE, *no_point(point, catalogue.points))
        for code in (code for code, rows in codes.items() if not rows):
            if (problem := catalogue.refused(point, code)) is not None:
                yield Problem(place(("waivers", "waivers", point, code)) or _FILE, *problem)


def _reasons(waiver: Waiver, document: Mapping[str, Any], catalogue: Catalogue, now: int) -> Iterator[Idle]:
    scope = document["waivable"].get(waiver.point, {}).get(waiver.code)
    if (unknown := catalogue.refused(waiver.point, waiver.code)) is not None:
        yield Idle(*unknown)
    elif scope is None:
        yield Idle("its code is not listed below `waivable`", "remove it, or have the code listed by its owner")
    else:
        yield from _too_wide(waiver, scope)
    if waiver.owner.lower() == waiver.approver.lower():
        yield Idle("its approver is its owner", "have another person approve it")
    starts, until = date.fromisoformat(waiver.starts), date.fromisoformat(waiver.until)
    days, most = (until - starts).days + 1, document["days_max"]
    if not 1 <= days <= most:
        yield Idle(f"it has {counted(days, 'day')}, and a waiver has 1 to {most}", "correct `starts` and `until`")
    today = datetime.fromtimestamp(now, UTC).date()
    if today > until:
        yield Idle(f"it ended on {waiver.until}", "remove it, or have a new one approved")
    if today < starts:
        yield Idle(f"it starts on {waiver.starts}", None)


def _too_wide(waiver: Waiver, scope: Mapping[str, Any]) -> Iterator[Idle]:
    for name, stated in (("subject", waiver.subject), ("principal", waiver.principal)):
        if stated == "any" and name not in scope["any"]:
            yield Idle(f"it is too wide: `{name}: any` is not admitted for its code", f"state one {name}")
    if "#" in waiver.subject:
        yield Idle("its subject is an item without an id", "give the item an id, and name it")
    if waiver.facts.keys() != set(scope["facts"]):
        listed = quoted(scope["facts"]) or "none"
        yield Idle(f"it must state these facts and no others: {listed}", "write them under `facts`")


def waivable_problems(
    document: Mapping[str, Any],
    catalogue: Catalogue,
    place: Places,
    schema_of: Callable[[str], Mapping[str, Any]] | None,
) -> Iterator[Problem]:
    """Rows below `waivable` whose point or code is unknown, whose code cannot be waived, or whose facts do not exist.

    `schema_of` makes the schema of an input in a twentieth of a second: with None, as at a start, facts are not judged.
    """

    def judge(point: str, requirement: Requirement, row: Any) -> Iterator[tuple[str, str]]:
        if requirement.fixed or not requirement.waivable:
            word = "fixed: true" if requirement.fixed else "waivable: false"
            yield f"`{requirement.code}` cannot be waived: {requirement.where} states `{word}`", "remove the row"
        elif schema_of is not None:
            yield from _unknown_facts(point, row["facts"], schema_of(point))

    return row_problems(("waivers", "waivable"), document.get("waivable", {}), catalogue, place, judge)


def _unknown_facts(point: str, paths: list[str], facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path in paths:
        parts = path.split(".")
        if facts and schemas.at(facts, parts) is None:
            message = f"`facts` names `{path}`, which is not in the input of `{point}`"
            yield message, schemas.mistaken(facts, parts, "facts")[1]

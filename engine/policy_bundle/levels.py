"""Values beside the rules: rows that have no meaning or are not permitted, and the refusals that are lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from engine.errors import Location, Problem
from engine.policy_bundle import schemas
from engine.policy_bundle.catalogue import Entries, quoted

_FILE = Location("policy/levels.yaml")
_STRICTNESS = ("warn", "confirm", "deny")


def level_problems(
    levels: Mapping[str, Mapping[str, Any]],
    entries: Mapping[str, Entries],
    places: Mapping[tuple[str | int, ...], Location],
) -> Iterator[Problem]:
    """Problems of the rows; `places` has the location of each value."""
    for point, codes in levels.items():
        if point not in entries:
            yield _no_point(point, places.get(("levels", "levels", point), _FILE), entries)
            continue
        for code, row in codes.items():
            if (problem := _problem(point, code, row, entries[point])) is not None:
                yield Problem(places.get(("levels", "levels", point, code), _FILE), *problem)


def name_problems(
    data: Mapping[str, Any],
    entries: Mapping[str, Entries],
    places: Mapping[tuple[str | int, ...], Location],
) -> Iterator[Problem]:
    """Decision points and quotas that other values name and that are not there: such a row would do nothing."""
    for path, point in _named(data):
        if point not in entries:
            yield _no_point(point, places.get(path, Location(f"policy/{path[0]}.yaml")), entries)
    for point, quotas in data.get("budgets", {}).get("quotas", {}).items():
        prefix = f"budgets.quotas.{point}."
        known = sorted({row.removeprefix(prefix) for row in _read(entries.get(point)) if row.startswith(prefix)})
        for name in quotas:
            if point in entries and name not in known:
                path = ("budgets", "quotas", point, name)
                where = places.get(path, Location("policy/budgets.yaml"))
                remedy = schemas.meant(name, known, "quotas of this point")
                yield Problem(where, f"no requirement of `{point}` reads the quota `{name}`", remedy)


def _named(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The points that values name, with the place of each."""
    for name in ("budgets", "quotas"):
        yield from ((("budgets", name, point), point) for point in data.get("budgets", {}).get(name, {}))
    for subject, points in data.get("callers", {}).get("certificates", {}).items():
        for number, point in enumerate(points):
            yield ("callers", "certificates", subject, number), point
    for name in ("authzen", "envoy"):
        for number, row in enumerate(data.get("operations", {}).get(name, ())):
            yield ("operations", name, number, "point"), row["point"]


def _read(entries: Entries | None) -> Iterator[str]:
    """The policy rows that requirements of a point name."""
    return (row for one in (entries.requirements.values() if entries else ()) for row in one.reads)


def _no_point(point: str, where: Location, entries: Mapping[str, Entries]) -> Problem:
    likely = schemas.likely(point, list(entries))
    return Problem(where, f"there is no decision point `{point}`", f"{likely}use one of {quoted(entries)}")


def _problem(point: str, code: str, row: Any, entries: Entries) -> tuple[str, str] | None:
    if code in entries.generated:
        return f"`{code}` always denies: without it no requirement could be evaluated", "remove the row"
    requirement = entries.requirements.get(code)
    if requirement is None:
        return f"no requirement of `{point}` has the code `{code}`", "correct the code, or remove the row"
    level = row if isinstance(row, str) else row["level"]
    if requirement.fixed and level != "deny":
        message = f"`{code}` cannot be lowered: {requirement.file}:{requirement.line} states `fixed: true`"
        return message, "remove the row"
    if isinstance(row, str) and _STRICTNESS.index(level) < _STRICTNESS.index(requirement.standing):
        message = f"`{level}` lowers `{code}` from {requirement.standing} without an owner and a last day"
        whole = f'{{level: {level}, owner: data@example.org, reason: moved to new terms, until: "2027-03-31"}}'
        return message, f"write it as `{code}: {whole}`, or remove the row"
    return None


@dataclass(frozen=True, slots=True)
class Lowered:
    """A refusal that this organization has lowered, with who answers for it, why, and its last day."""

    point: str
    code: str
    level: str
    owner: str
    reason: str
    until: str
    where: Location | None

    def ended(self, now: int) -> Problem | None:
        """The row whose last day is over at this time, in seconds since 1970 UTC; None while it lowers."""
        if datetime.fromtimestamp(now, UTC).date() <= date.fromisoformat(self.until):
            return None
        message = f"`{self.code}` at point `{self.point}` denies again: its level {self.level} ended on {self.until}"
        return Problem(self.where or _FILE, message, "remove the row, or have its owner state a later day")

    def told(self, now: int) -> str:
        """What the row does at this time, in a line."""
        if (ended := self.ended(now)) is not None:
            return f"{ended.where}: {ended.message}"
        text = f"{self.where or _FILE}: `{self.code}` at point `{self.point}` is lowered to {self.level}"
        return f"{text} until {self.until} by {self.owner}: {self.reason}"


def lowered_in(
    levels: Mapping[str, Mapping[str, Any]], where: Callable[[tuple[str, ...]], Location | None]
) -> tuple[Lowered, ...]:
    """Every row with an owner, in its order; past their last day they deny again. `where` finds a row in its file."""
    return tuple(
        Lowered(point, code, **row, where=where(("levels", "levels", point, code)))
        for point, codes in levels.items()
        for code, row in codes.items()
        if isinstance(row, dict)
    )

"""Values beside the rules: rows that have no meaning or are not permitted, and the refusals that are lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from engine.errors import Location, Problem
from engine.facts.text.nearest import did_you_mean
from engine.policy_bundle import schemas
from engine.policy_bundle.catalogue import Catalogue, Requirement, no_point
from engine.policy_bundle.schemas import Path

_FILE = Location("policy/levels.yaml")
Rows = Mapping[str, Mapping[str, Any]]
"""By decision point and code."""

Places = Callable[[tuple[str | int, ...]], Location | None]
"""The location of a value, by its path below `policy/`."""

_A_ROW = 3
"""Parts of the path of a row: its document, its table, its name."""
_STRICTNESS = ("warn", "confirm", "deny")


def level_problems(levels: Rows, catalogue: Catalogue, place: Places) -> Iterator[Problem]:
    """Problems of the rows of policy/levels.yaml."""
    return row_problems(("levels", "levels"), levels, catalogue, place, _level_problems)


def row_problems(
    table: tuple[str, str],
    rows: Rows,
    catalogue: Catalogue,
    place: Places,
    judge: Callable[[str, Requirement, Any], Iterable[tuple[str, str]]],
) -> Iterator[Problem]:
    """Rows by point and code that name what is not there, or that `judge` refuses with messages and remedies.

    `table` is the document and the name of its table, `place` has the location of each value.
    """
    file = Location(f"policy/{table[0]}.yaml")
    for point, codes in rows.items():
        if point not in catalogue.points:
            yield Problem(place((*table, point)) or file, *no_point(point, catalogue.points))
            continue
        requirements = catalogue.points[point].requirements
        for code, row in codes.items():
            refused = catalogue.refused(point, code)
            found = judge(point, requirements[code], row) if refused is None else [refused]
            yield from (Problem(place((*table, point, code)) or file, *one) for one in found)


def name_problems(data: Mapping[str, Any], catalogue: Catalogue, place: Places) -> Iterator[Problem]:
    """Decision points and quotas that other values name and that are not there: such a row would do nothing."""
    for path, point in _named_points(data):
        if point not in catalogue.points:
            where = place(path) or Location(f"policy/{path[0]}.yaml")
            yield Problem(where, *no_point(point, catalogue.points))
    for point, quotas in data.get("budgets", {}).get("quotas", {}).items():
        if point not in catalogue.points:
            continue
        prefix = f"budgets.quotas.{point}."
        read = (row for one in catalogue.points[point].requirements.values() for row in one.reads)
        known = sorted({row.removeprefix(prefix) for row in read if row.startswith(prefix)})
        for name in quotas:
            if name not in known:
                path = ("budgets", "quotas", point, name)
                where = place(path) or Location("policy/budgets.yaml")
                remedy = schemas.name_remedy(name, known, "quotas of this point")
                yield Problem(where, f"no requirement of `{point}` reads the quota `{name}`", remedy)


def rows_spelled_alike(data: Mapping[str, Any], places: Mapping[Path, Location]) -> Iterator[Problem]:
    """Rows of a recipe that no value names and that are spelled like a shipped row.

    A row that is a single value, such as a decision, counts only if the shipped row has another value.
    """
    named = {one for one in _leaves(data) if isinstance(one, str)}
    for path, where in places.items():
        if where.file.startswith("policy/") or len(path) < _A_ROW or path[-1] in named:
            continue
        table: Any = data
        for part in path[:-1]:
            table = table[part]
        near = schemas.meant(path, table, places.get) if isinstance(table, dict) else None
        if near is not None and (isinstance(table[near], dict) or table[near] != table.get(path[-1])):
            yield Problem(where, "no other value names this row", f"{did_you_mean((near,))} correct it, or leave it")


def _leaves(value: Any) -> Iterator[Any]:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if below is None:
        yield value
    else:
        for one in below:
            yield from _leaves(one)


def _named_points(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The points that values name, with the place of each."""
    for name in ("budgets", "quotas"):
        yield from ((("budgets", name, point), point) for point in data.get("budgets", {}).get(name, {}))
    for subject, points in data.get("callers", {}).get("certificates", {}).items():
        for number, point in enumerate(points):
            yield ("callers", "certificates", subject, number), point
    for name in ("authzen", "envoy"):
        for number, row in enumerate(data.get("operations", {}).get(name, ())):
            yield ("operations", name, number, "point"), row["point"]


def _level_problems(_: str, requirement: Requirement, row: Any) -> Iterator[tuple[str, str]]:
    code, level = requirement.code, row if isinstance(row, str) else row["level"]
    if requirement.fixed and level != "deny":
        message = f"`{code}` cannot be lowered: {requirement.where} states `fixed: true`"
        yield message, "remove the row"
    elif isinstance(row, str) and _STRICTNESS.index(level) < _STRICTNESS.index(requirement.standing):
        message = f"`{level}` lowers `{code}` from {requirement.standing} without an owner and a last day"
        whole = f'{{level: {level}, owner: data@example.org, reason: moved to new terms, until: "2027-03-31"}}'
        yield message, f"write it as `{code}: {whole}`, or remove the row"


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

    def summary(self, now: int) -> str:
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

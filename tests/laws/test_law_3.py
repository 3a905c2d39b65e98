"""Law 3: no value that is removed widens a decision."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import pytest
from pydantic import ValidationError

from engine.cases.run import CaseFile, Runner
from engine.engine import Engine
from engine.points.registry import POINTS
from engine.values import DERIVED, DOCUMENTS, derived
from tests.lanes import covering, first_of
from tests.laws.asking import DECIDED, NARROWED, RANK, codes, evaluated, read_by, read_for, served_values, taken
from tests.laws.mutations import DROPPED, Path_, paths, with_value

NAMES = sorted({*DOCUMENTS, *DERIVED})
_COARSE = 4
"""Parts of a path into derived values, which nobody edits: a lookup, a policy, a section of it."""

ClaimedKey: TypeAlias = tuple[Engine, dict[str, Any], str]
"""A case with its engine, its input as OPA sees it, and its outcome."""

Kind: TypeAlias = Callable[[Path_], Path_]


class Group(NamedTuple):
    """Policies that lack one value each, at the path beside it, and the cases to decide under all of them."""

    removed: list[Path_]
    policies: list[Any]
    cases: list[ClaimedKey]


@pytest.mark.parametrize("name", NAMES)
def test_3_no_value_removed_widens(name: str, runner: Runner, *, full: bool) -> None:
    """The fast lane removes each kind of value once, and so do cases with values of their own in either lane.

    So it is for commands: OPA outgrows its memory on all fields of all programs in all cases.
    """
    asked = [file for file in _about(name, runner, full=full) if not file.case.values]
    thinned = not full or name in {"commands", "program_rows"}
    groups = _removed_one_by_one(name, [taken(runner, file) for file in asked], thinned=thinned)
    assert groups
    _none_widens(groups, runner)


@pytest.mark.parametrize("point", sorted({file.case.point for file in NARROWED if file.case.values}))
def test_3_no_value_of_a_case_removed_widens(point: str, runner: Runner, *, full: bool) -> None:
    """With the other tests of the point, for which the engines of these values run already."""
    groups = []
    for name in NAMES:
        served: dict[int, list[ClaimedKey]] = {}
        for file in _about(name, runner, full=full):
            if file.case.values and file.case.point == point:
                case = taken(runner, file)
                served.setdefault(id(case[0]), []).append(case)
        groups += [group for cases in served.values() for group in _removed_one_by_one(name, cases, thinned=True)]
    _none_widens(groups, runner)


@cache
def _about(name: str, runner: Runner, *, full: bool) -> list[CaseFile]:
    """The cases that are decided without values of this document."""
    changed_too = {name, *(made for made, of in DERIVED.items() if of == name)}
    read = [file for file in NARROWED if changed_too & read_for(file, runner).values]
    asked = [file for file in read if name in file.case.values or not file.case.values] or read
    if name in DOCUMENTS and not full:
        asked = covering(asked, lambda file: [(code, bool(file.case.values)) for code in codes(file)])
    return asked


def _none_widens(groups: list[Group], runner: Runner) -> None:
    for group, found in zip(groups, _evaluate(runner.engine({}), groups), strict=True):
        for path, decisions in zip(group.removed, found, strict=True):
            for (_, document, outcome), got in zip(group.cases, decisions, strict=True):
                widened = RANK[got["outcome"]] > RANK[outcome] and not _narrows_by_itself(path, document)
                assert not widened, f"without {'.'.join(map(str, path))}"


def _narrows_by_itself(path: Path_, document: dict[str, Any]) -> bool:
    """Whether it is a condition of an allow rule, or asks for a security test that the input lacks.

    The headers of policy/tools.yaml and policy/release.yaml say what goes with such a value.
    """
    match path:
        case ("tools", "rulesets", _, "allow", _, _):
            return True
        case ("release", "security_tests", test):
            return test not in {one["id"] for one in document.get("security", ())}
    return False


def _removed_one_by_one(name: str, cases: list[ClaimedKey], *, thinned: bool) -> list[Group]:
    """Each value of a document removed by itself, for those of these cases that it is about; all have the same values.

    What is about one point is removed for the cases of that point.
    """
    values = served_values(cases[0][0])
    removable = [path for path in paths({name: values[name]}) if name not in DERIVED or len(path) <= _COARSE]
    named = json.dumps([document for _, document, _ in cases])
    if thinned:
        removable = _each_kind_of_value(name, removable, named)
    groups: dict[str | None, Group] = {}
    for path in removable:
        if (key := _chosen_key(path)) is not None and key not in named:
            continue
        if (policy := _without(values, path)) is None:
            continue
        own = str(path[2]) if len(path) > 2 and name in {"budgets", "levels"} and path[2] in POINTS else None
        about = [case for case in cases if own in {None, case[1]["point"]}]
        group = groups.setdefault(own, Group([], [], about))
        group.removed.append(path)
        group.policies.append(policy)
    return list(groups.values())


def _chosen_key(path: Path_) -> str | None:
    """The license or program that a row is about, which cases name or not."""
    for rows in (("licenses", "licenses"), ("program_rows",)):
        if path[: len(rows)] == rows and len(path) > len(rows):
            return str(path[len(rows)])
    return None


def test_3_with_all_values_the_cases_are_decided_as_they_are(runner: Runner, *, full: bool) -> None:
    """Positive control: what evaluates the values of law 3 says what the served policy says."""
    asked = [file for file in DECIDED if not file.case.values]
    cases = [taken(runner, file) for file in (asked if full else covering(asked, codes))]
    engine = runner.engine({})
    found = _evaluate(engine, [Group([()], [served_values(engine)], cases)])
    assert [got["outcome"] for got in found[0][0]] == [str(outcome) for *_, outcome in cases]


def _each_kind_of_value(name: str, removable: list[Path_], named: str) -> list[Path_]:
    """One path of each kind, with keys that a document is free to choose alike; if possible keys that inputs name."""
    kind = _kind(name, removable)

    def unnamed(path: Path_) -> int:
        return sum(f'"{part}"' not in named for part, known in zip(path, kind(path), strict=True) if known == "*")

    return first_of(sorted(removable, key=unnamed), kind)


def _kind(name: str, removable: list[Path_]) -> Kind:
    if name == "program_rows":
        rows = _kind_by_schema(DOCUMENTS["commands"].model_json_schema())
        return lambda path: rows(("commands", "programs", *path[1:]))[1:]
    if name in DOCUMENTS:
        return _kind_by_schema(DOCUMENTS[name].model_json_schema())
    return _kind_by_use(removable)


def _kind_by_schema(schema: Any) -> Kind:
    """The kind of a path into a document: keys that its schema does not name are `*`."""

    def kind(path: Path_) -> Path_:
        found: list[str | int] = [path[0]]
        at: Any = schema
        for part in path[1:]:
            at = _resolved(schema, at)
            known = at.get("properties", {})
            found.append(part if part in known else "*")
            at = known.get(part) or at.get("additionalProperties") or at.get("items") or {}
        return tuple(found)

    return kind


def _kind_by_use(removable: list[Path_]) -> Kind:
    """The kind of a path into derived values, which have no schema: keys that only one parent has are `*`."""
    parents: dict[tuple[int, str | int], set[Path_]] = {}
    for path in removable:
        parents.setdefault((len(path), path[-1]), set()).add(path[:-1])

    def kind(path: Path_) -> Path_:
        return (*path[:2], *(part if len(parents[at, part]) > 1 else "*" for at, part in enumerate(path[2:], 3)))

    return kind


def _resolved(schema: Any, at: Any) -> Any:
    """A part of a JSON Schema; of several the first that is no plain value."""
    while "$ref" in at or "anyOf" in at or "oneOf" in at:
        if "$ref" in at:
            at = schema["$defs"][at["$ref"].rpartition("/")[2]]
        else:
            choices = at.get("anyOf") or at["oneOf"]
            at = next((one for one in choices if one.keys() & {"$ref", "properties", "additionalProperties"}), {})
    return at


def test_the_values_that_a_point_reads_are_known() -> None:
    """Positive control: no value is left out of law 3 because nobody is seen to read it."""
    read = set().union(*(read_by(point).values for point in POINTS))
    assert {*DOCUMENTS, *DERIVED} <= read


def _without(values: Any, path: Path_) -> Any:
    """The values without one, as a build would make them: what follows from documents follows from these."""
    policy = with_value(values, path, DROPPED)
    name = str(path[0])
    if name not in DERIVED.values() or len(path) == 1:
        return policy
    try:
        stated = DOCUMENTS[name].model_validate_json(json.dumps(policy[name]))
    except ValidationError:
        return None  # no build would serve it
    policy[name] = stated.model_dump(mode="json", exclude_none=True)  # as a build completes it
    return {**policy, **derived(policy)}


def _evaluate(engine: Engine, groups: list[Group]) -> list[list[list[Any]]]:
    """The cases of each group under each of its policies, by the rules that are served."""
    return [evaluated(engine, group.policies, [document for _, document, _ in group.cases]) for group in groups]

"""Law 3: no value that is removed widens a decision."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from engine.cases.run import Runner
from engine.engine import Engine
from engine.points.registry import POINTS
from engine.values import DERIVED, DOCUMENTS, derived
from tests.lanes import first_of
from tests.laws.asking import DECIDED, NARROWED, RANK, read_by, read_for, refusal, served_values, taken
from tests.laws.mutations import DROPPED, Path_, paths, with_value

_COARSE = 4
"""Parts of a path into derived values, which nobody edits: a lookup, a policy, a section of it."""


@pytest.mark.parametrize("name", sorted({*DOCUMENTS, *DERIVED}))
def test_3_no_value_removed_widens(name: str, runner: Runner, tmp_path: Path, *, full: bool) -> None:
    """The fast lane removes each kind of value once, and so do cases with values of their own in either lane."""
    changed_too = {name, *DERIVED} if name == "tools" else {name}  # what follows from it
    read = [file for file in NARROWED if changed_too & read_for(file, runner).values]
    asked = [file for file in read if name in file.case.values or not file.case.values] or read
    if name in DOCUMENTS and not full:
        asked = first_of(asked, lambda file: (refusal(file), bool(file.case.values)))
    served: dict[int, list[tuple[Engine, dict[str, Any], str]]] = {}
    for file in asked:
        case = taken(runner, file)
        served.setdefault(id(case[0]), []).append(case)
    assert served
    for cases in served.values():
        every = full and cases[0][0] is runner.engine({})
        _removed_one_by_one(name, cases, tmp_path, thinned=name in DOCUMENTS and not every)


def _removed_one_by_one(
    name: str, cases: list[tuple[Engine, dict[str, Any], str]], folder: Path, *, thinned: bool
) -> None:
    """No removal of a value of a document widens one of these cases, which are decided under the same values."""
    engine = cases[0][0]
    values = served_values(engine)
    named = json.dumps([document for _, document, _ in cases])
    groups: dict[str | None, list[Path_]] = {}
    removable = paths({name: values[name]})
    for path in _each_kind_of_value(DOCUMENTS[name], removable, named) if thinned else removable:
        if path[:2] == ("licenses", "licenses") and len(path) > 2 and str(path[2]) not in named:
            continue
        if name in DERIVED and len(path) > _COARSE:
            continue
        own = path[2] if len(path) > 2 and name in {"budgets", "levels"} and path[2] in POINTS else None
        groups.setdefault(None if own is None else str(own), []).append(path)
    assert groups
    for own, removed in groups.items():
        affected = [case for case in cases if own in {None, case[1]["point"]}]
        found_with = [(path, policy) for path in removed if (policy := _without(values, path)) is not None]
        found = _evaluate(engine, folder, [one for _, one in found_with], [input_ for _, input_, _ in affected])
        for (path, _), decisions in zip(found_with, found, strict=True):
            for (_, _, outcome), got in zip(affected, decisions, strict=True):
                assert RANK[got["outcome"]] <= RANK[outcome], f"without {'.'.join(map(str, path))}"


def test_3_with_all_values_the_cases_are_decided_as_they_are(runner: Runner, tmp_path: Path) -> None:
    """Positive control: what evaluates the values of law 3 says what the served policy says."""
    cases = [taken(runner, file) for file in DECIDED if not file.case.values]
    engine = runner.engine({})
    found = _evaluate(engine, tmp_path, [served_values(engine)], [document for _, document, _ in cases])[0]
    assert [got["outcome"] for got in found] == [str(outcome) for *_, outcome in cases]


def _each_kind_of_value(model: type[BaseModel], removable: Iterable[Path_], named: str) -> list[Path_]:
    """One path of each kind, with keys that a document is free to choose alike; if possible keys that inputs name."""
    schema = model.model_json_schema()

    def kind(path: Path_) -> tuple[str | int, ...]:
        found: list[str | int] = []
        at: Any = schema
        for part in path[1:]:
            at = _resolved(schema, at)
            known = at.get("properties", {})
            found.append(part if part in known else "*")
            at = known.get(part) or at.get("additionalProperties") or at.get("items") or {}
        return tuple(found)

    def unnamed(path: Path_) -> int:
        return sum(f'"{part}"' not in named for part, free in zip(path[1:], kind(path), strict=True) if free == "*")

    return first_of(sorted(removable, key=unnamed), kind)


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
    if path[0] != "tools" or len(path) == 1:
        return policy
    try:
        DOCUMENTS["tools"].model_validate_json(json.dumps(policy["tools"]))
    except ValidationError:
        return None  # no build would serve it
    return {**policy, **derived(policy)}


def _evaluate(engine: Engine, folder: Path, policies: list[Any], items: list[Any]) -> list[list[Any]]:
    """Every item under every policy, by `opa eval` on the served rules."""
    from engine.opa.binary import find_binary

    assert engine.policy is not None
    query = (
        "[ds | some p in input.policies; ds := [d | some item in input.items;"
        " d := data.admission.decision with input as item with data.policy as p]]"
    )
    (folder / "input.json").write_text(json.dumps({"policies": policies, "items": items}), encoding="utf-8")
    done = subprocess.run(
        [find_binary().path, "eval", "-b", engine.policy.rules.path, "-i", folder / "input.json", "-f", "json", query],
        capture_output=True, check=True, env={},
    )  # fmt: skip
    result: list[list[Any]] = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return result

"""Problems of values files say what should be there, and each mistake is one problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest

from engine.cases.run import Case
from engine.documents.files import load
from engine.errors import Problem
from engine.model import Model
from engine.policy_bundle import explain
from engine.policy_bundle.notes import HelperNote, RequirementNote, SetNote
from engine.policy_bundle.sources import Recipe
from engine.settings import ReadLimits
from engine.values import DOCUMENTS
from tests.conftest import ROOT
from tests.expect import there

ALL = {"run": "unlimited", "all": "unlimited"}
TEN = {"limit": "ten", "window_seconds": 60}
LISTED = {"id": "mail", "tools": ["mail_send"], "hosts": "any", "paths": "any"}


@pytest.mark.parametrize(
    ("name", "over", "field", "message"),
    [
        (
            *("networks", {"hosts": "data.example.org"}, "hosts"),
            "`hosts` is text; it should be a list, such as [data.example.org]",
        ),
        ("networks", {"hosts": None}, "hosts", "`hosts` is empty; it should be a list"),
        (
            *("networks", {"hosts": ["https://EXAMPLE.org"]}, "hosts.0"),
            (
                "`hosts.0`: it should be a name in lower case with a dot, without scheme, port and path, and "
                "no address: docs.example.com, or *.example.com for all hosts below it"
            ),
        ),
        ("networks", {"ports": [0]}, "ports.0", "`ports.0` must be at least 1"),
        (
            *("budgets", {"budgets": {"source": {"principal": TEN, **ALL}}}, "budgets.source.principal.limit"),
            "`budgets.source.principal.limit` is text; it should be a whole number without a decimal point",
        ),
        (
            *("budgets", {"budgets": {"source": {"principal": "ten", **ALL}}}, "budgets.source.principal"),
            "`budgets.source.principal` is text; it should be 'unlimited' or a mapping",
        ),
        (
            *("budgets", {"budgets": {"source": {"principal": {"limit": 1}, **ALL}}}),
            *("budgets.source.principal.window_seconds", "`budgets.source.principal.window_seconds` is missing"),
        ),
        (
            *("budgets", {"quotas": {"Source": {}}}, "quotas.Source"),
            "`quotas.Source` has the wrong form; it should be lower-case letters, digits and `_`, first a letter",
        ),
        (
            *(
                "tools",
                {"rulesets": {"own": {"deny": [], "confirm": [], "allow": [{**LISTED, "commands": [["git", 5]]}]}}},
            ),
            *(
                "rulesets.own.allow.0.commands.0.1",
                "`rulesets.own.allow.0.commands.0.1` is a number; it should be text",
            ),
        ),
    ],
)
def test_one_mistake_is_one_problem_with_the_expected_form(
    name: str, over: dict[str, Any], field: str, message: str
) -> None:
    file = f"policy/{name}.yaml"
    shipped = load((ROOT / file).read_bytes(), file, ReadLimits()).value
    for key, value in over.items():
        shipped[key] = {**shipped[key], **value} if isinstance(value, dict) else value
    found: list[Problem] = []
    assert explain.validated(DOCUMENTS[name], load(json.dumps(shipped).encode(), file, ReadLimits()), found) is None
    assert [(there(one.where.field), one.message) for one in found] == [(field, message)]


@pytest.mark.parametrize(
    ("name", "path", "field"),
    [
        ("licenses", ("categoreis",), "categories"),
        ("networks", ("fetch", "max_url"), "max_urls"),
        ("tools", ("rulesets", "workspace", "alow"), "allow"),
        ("licenses", ("licenses", "MIT", "decison"), "decision"),
    ],
)
def test_a_misspelled_field_is_one_problem_that_names_the_right_one(
    name: str, path: tuple[str, ...], field: str
) -> None:
    *around, wrong = path
    [problem] = _problems_of(name, around, lambda values: {wrong: values.pop(field), **values})
    assert problem.message == f"`{'.'.join(path)}` is not a known field"
    assert problem.remedy == f"did you mean `{field}`? correct the spelling or remove it"


def test_every_form_of_a_value_is_stated_in_words() -> None:
    """No author is shown a regular expression."""
    models: tuple[type[Model], ...] = (*DOCUMENTS.values(), RequirementNote, SetNote, HelperNote, Recipe, Case)
    assert {form for model in models for form in _patterns(model.model_json_schema())} <= explain.FORMS.keys()


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _patterns(one)
    elif isinstance(schema, dict):
        yield from schema.get("patternProperties", ())
        yield from [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
        yield from _patterns(list(schema.values()))


def test_a_field_that_is_there_is_not_suggested() -> None:
    [problem] = _problems_of("networks", [], lambda values: {"portss": [1], **values})
    assert (problem.message, problem.remedy) == (
        "`portss` is not a known field",
        "correct the spelling or remove it",
    )


def test_a_missing_field_unlike_the_unknown_one_is_reported_too() -> None:
    found = _problems_of("networks", [], lambda values: {"x": values.pop("ports"), **values})
    assert {one.message for one in found} == {"`ports` is missing", "`x` is not a known field"}


def _problems_of(name: str, around: list[str], change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Problem]:
    """The problems of shipped values of which one mapping was changed."""
    file = f"policy/{name}.yaml"
    values = {"": load((ROOT / file).read_bytes(), file, ReadLimits()).value}
    *above, last = ["", *around]
    holder = reduce(lambda inner, key: inner[key], above, values)
    holder[last] = change(holder[last])
    found: list[Problem] = []
    text = json.dumps(values[""]).encode()
    assert explain.validated(DOCUMENTS[name], load(text, file, ReadLimits()), found) is None
    return found

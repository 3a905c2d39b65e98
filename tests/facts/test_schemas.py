"""A schema of a stranger is judged within bounds: nothing is fetched, nothing hangs, nothing raises."""

from __future__ import annotations

import urllib.request
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.facts.tools import schemas
from engine.facts.tools.schemas import DEEPEST, LARGEST, LONGEST, fits, misfits, schema_valid
from tests.lanes import examples

FILE = {
    "type": "object",
    "properties": {"path": {"type": "string", "pattern": "^[a-z]+(/[a-z]+)*$"}},
    "required": ["path"],
    "additionalProperties": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
APPLICATORS = ["properties", "items", "patternProperties", "additionalProperties", "allOf", "anyOf", "not", "if"]
OTHERS = ["type", "pattern", "$ref", "$id", "$defs", "enum", "uniqueItems", "multipleOf", "unevaluatedProperties"]
KEYWORDS = st.sampled_from([*APPLICATORS, *OTHERS, "required"])
SCHEMAS = st.dictionaries(
    KEYWORDS,
    st.recursive(
        JSON | st.sampled_from(["string", "object", "#", "#/$defs/a", "(a+)+$"]),
        lambda inner: st.dictionaries(KEYWORDS | st.just("a"), inner, max_size=3) | st.lists(inner, max_size=3),
        max_leaves=10,
    ),
    max_size=4,
)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def doubling(levels: int, keyword: str) -> dict[str, Any]:
    """A schema of a few hundred bytes that takes 2 to the power of `levels` steps."""
    steps: dict[str, Any] = {f"s{i}": {keyword: [{"$ref": f"#/$defs/s{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": steps | {f"s{levels}": {"type": "object"}}, "$ref": "#/$defs/s0"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        FILE,
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}},
        {"$id": "https://tools.example.com/a", "$defs": {"a": {}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": {"pattern": {"type": "string"}, "required": {"type": "boolean"}}},
    ],
)
def test_a_schema_is_valid(schema: dict[str, Any]) -> None:
    assert schema_valid(schema)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        "object",
        {"type": "objekt"},
        {"properties": []},
        {"required": "path"},
        {"minimum": float("nan")},
        {"minimum": object()},
        {"pattern": "("},
        {"pattern": "a" * 600},
        {"pattern": "(?=a)b"},
        {"pattern": "^(?!a)b|c"},
        {"pattern": "^(?!a"},
        {"pattern": "^(?!a(?=b))c"},
        {"pattern": "^((?!--).)*$"},
        {"pattern": r"(a)\1"},
        {"pattern": "(?x)a{0, 200}"},
        {"pattern": "(a{1000}){1000}"},
        {"patternProperties": {"(": {}}},
        {"$ref": "https://evil.example.com/schema"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "other.json"}}},
        {"$dynamicRef": "#a"},
        {"$schema": "https://evil.example.com/dialect"},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        {"description": "x" * LONGEST},
        {"enum": list(range(LARGEST))},
        nested(DEEPEST),
        nested(5_000),
    ],
)
def test_nothing_fits_an_invalid_schema(schema: Any) -> None:
    assert not schema_valid(schema)
    assert not fits(schema, {})


@pytest.mark.parametrize(
    ("schema", "arguments", "fit"),
    [
        (FILE, {"path": "a/b"}, True),
        (FILE, {"path": "a/B"}, False),
        (FILE, {"path": 1}, False),
        (FILE, {}, False),
        (FILE, {"path": "a", "other": 1}, False),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"x1": 1}, True),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"x1": "1"}, False),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"y": 1}, False),
        ({"additionalProperties": {"type": "integer"}}, {"y": 1}, True),
        ({"additionalProperties": {"type": "integer"}}, {"y": "1"}, False),
        ({"properties": {"a": {"$ref": "#/$defs/nowhere"}}}, {"a": 1}, False),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}, False),
        ({"type": "object"}, None, False),
    ],
)
def test_arguments_fit_or_do_not(schema: Any, arguments: Any, fit: bool) -> None:  # noqa: FBT001 (a table)
    assert fits(schema, arguments) is fit


EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"


@pytest.mark.parametrize(
    ("pattern", "fitting", "unfit"),
    [
        (EMAIL, ["ana@example.com", "a.b@mail.example.com"], [".a@example.com", "a..b@example.com", "ana", ""]),
        (DECIMAL, ["12.50", "-3", ".5"], ["", "-", "1e3", "..", "12,50"]),
        (r"^(?=.*[0-9])(?=[a-z)|]+\))[^|]*$", ["ab)1"], ["ab1", "1ab)", "ab)", "a)|1"]),
        (r"^(?!a|b)(c|d)$", ["c", "d"], ["a", "b", "xc"]),
        (r"^(?!\)\[)x$", ["x"], ["y"]),
    ],
)
def test_a_pattern_may_look_ahead_at_its_start(pattern: str, fitting: list[str], unfit: list[str]) -> None:
    schema = {"properties": {"a": {"pattern": pattern}}}
    assert schema_valid(schema)
    assert [text for text in [*fitting, *unfit] if fits(schema, {"a": text})] == fitting


@pytest.mark.parametrize(
    ("schema", "arguments", "names"),
    [
        (FILE, {"path": "a"}, ()),
        (FILE, {"path": 1, "mode": "r"}, ("mode", "path")),
        (FILE | {"required": ["path", "mode"]}, {}, ("mode", "path")),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": ["x", 1, 2]}, ("a",)),
        ({"properties": {"a": {"required": ["b"]}}}, {"a": {}}, ("a",)),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, ("",)),
        ({"required": ["a"]}, None, ()),
        ({"pattern": "("}, {}, None),
        (doubling(20, "allOf"), {}, None),
    ],
)
def test_the_arguments_that_do_not_fit_are_named(schema: Any, arguments: Any, names: Any) -> None:
    assert misfits(schema, arguments) == names


def test_a_catastrophic_regex_is_matched_in_bounded_time() -> None:
    schema = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    assert fits(schema, {"a": "a" * 1_000})
    assert not fits(schema, {"a": "a" * 1_000 + "b"})


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"$ref": "#"}, {}),
        (doubling(40, "allOf"), {}),
        (doubling(40, "anyOf") | {"unevaluatedProperties": False}, {"a": 1}),
        ({"properties": {"a": {"allOf": [{"uniqueItems": True}] * 99}}}, {"a": [{"x": one} for one in range(10_000)]}),
        ({"properties": {"a": {"pattern": "(?:.{0,200}){0,50}x"}}}, {"a": "y" * 100_000}),
        ({"properties": {"a": {"pattern": ".{0,200}{0,50}x"}}}, {"a": "y" * 100_000}),
        ({"properties": {"a": {"items": {"type": "string", "minLength": 1}}}}, {"a": ["x"] * 100_000}),
    ],
    ids=["itself", "doubling", "unevaluated", "unique", "heavy", "stacked", "many"],
)
def test_arguments_that_cost_too_many_steps_do_not_fit(schema: Any, arguments: Any) -> None:
    assert schema_valid(schema)
    assert not fits(schema, arguments)


def test_unique_items_follow_json_schema_equality() -> None:
    schema = {"properties": {"a": {"uniqueItems": True}}}
    for unique in ([1, True, [1], [True], {}, [], False, 0, "1", None], [{"a": 1}, {"a": True}], [[{"a": []}], [{}]]):
        assert fits(schema, {"a": unique})
    repeated: list[list[Any]] = [[1, 1.0], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], [True, True], [[], []]]
    for twice in repeated:
        assert not fits(schema, {"a": twice})
    assert fits({"properties": {"a": {"uniqueItems": False}}}, {"a": [1, 1]})


def test_no_two_items_of_a_list_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is brought once into a form that has a hash."""
    compared = []
    comparable = schemas._comparable

    def counting(value: Any) -> Any:
        compared.append(value)
        return comparable(value)

    monkeypatch.setattr(schemas, "_comparable", counting)
    items = [{"a": [0] * 20 + [number]} for number in range(1_500)]
    assert fits({"properties": {"a": {"uniqueItems": True}}}, {"a": items})
    assert len(compared) == len(items) * 23


def test_a_few_nested_references_are_followed() -> None:
    """Positive control: it is the number of steps that refuses, not the form."""
    assert fits(doubling(6, "allOf"), {})


def test_no_schema_reference_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("a schema was fetched")

    monkeypatch.setattr(urllib.request, "urlopen", fetched)
    for reference in ("https://evil.example.com/a", "#/$defs/a", "#a", "http://127.0.0.1:1/"):
        assert not fits({"$id": "https://evil.example.com/b", "properties": {"a": {"$ref": reference}}}, {"a": 1})


@settings(max_examples=examples(200))
@given(schema=SCHEMAS | JSON, arguments=JSON)
def test_arbitrary_schemas_and_arguments_never_raise(schema: Any, arguments: Any) -> None:
    assert fits(schema, arguments) in {True, False}
    assert schema_valid(schema) or not fits(schema, arguments)

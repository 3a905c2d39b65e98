"""Facts of output: kinds, numbers that all readers share, digests of texts; and the answer made of limits."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from engine.facts.code.answers import (
    EchoedLimit,
    IntegerLimit,
    NumberLimit,
    PercentLimit,
    RateLimit,
    TextLimit,
    echoed_of,
    metrics_of,
    result_of,
    sentence,
)
from engine.facts.code.outputs import MOST_TEXTS, ColumnFacts, FieldFacts, content_of, echoed_facts, output_facts


def field(value: Any) -> FieldFacts:
    return output_facts(json.dumps({"x": value}), {"x": None}).fields[0]


# covers: C85
def test_bytes_are_counted_on_the_whole_text() -> None:
    assert output_facts(" \u00e9\n", {}).bytes == 4
    assert output_facts("\ufffd", {}).bytes == 3  # what stands for a byte that was no UTF-8


# covers: C37 H02 H18
@pytest.mark.parametrize(
    "text",
    ["", " \n", "done", "{", "{}{}", "{}\n{}", '{"x": NaN}', '{"x": Infinity}', '{"y": [-Infinity]}', '{"x": 1e999}',
     '{"x": 1, "x": 1}', '{"y": {"x": 1, "x": 2}}', "[" * 100_000, '{"x":' * 5_000, '{"x": "\\ud800"}', "\ufeff{}",
     "{'x': 1}", '{"x": 01}', '{"x": 1,}', "\0", '{"x": ' + "9" * 5_000 + "}"],
    ids=lambda text: text[:24] + str(len(text)),
)  # fmt: skip
def test_ambiguous_or_malformed_json_is_not_parsed(text: str) -> None:
    found = output_facts(text, {"x": None})
    assert (found.parsed, found.object, found.fields) == (False, False, ())


# covers: C37
@pytest.mark.parametrize("text", ["[]", "7", "null", '"{}"', "true"])
def test_json_that_is_not_an_object_has_no_fields(text: str) -> None:
    found = output_facts(text, {"x": None})
    assert (found.parsed, found.object, found.fields) == (True, False, ())


# covers: C38 C74.1
def test_only_the_fields_of_the_contract_are_facts_and_in_its_order() -> None:
    found = output_facts('{"c": 1, "quokka": "wombat", "a": 2}', dict.fromkeys("abc"))
    assert [(one.id, one.present, one.kind) for one in found.fields] == [
        ("a", True, "integer"), ("b", False, "absent"), ("c", True, "integer"),
    ]  # fmt: skip
    assert "quokka" not in found.model_dump_json()
    assert "wombat" not in output_facts('{"a": "wombat"}', {"a": None}).model_dump_json()


# covers: C40 C42 H02 H18
def test_kinds_and_numbers_of_values_are_recognized() -> None:
    facts: list[tuple[Any, str, Any]] = [
        (True, "boolean", None), (None, "null", None), ([1], "list", None), ({"y": 1}, "object", None),
        (1, "integer", 1), (-3, "integer", -3), (1.0, "number", 1.0), (2.5, "number", 2.5),
        (10**400, "integer", None), (2**53, "integer", None), (2**53 - 1, "integer", 2**53 - 1),
        ("7", "text", 7.0), (" 7.5 ", "text", 7.5), ("1e2", "text", 100.0), ("slow", "text", None), ("", "text", None),
        ("nan", "text", None), ("Infinity", "text", None), ("1e999", "text", None), ("1_0", "text", None),
        ("0x1", "text", None), ("\u0661", "text", None), ("1" * 5_000, "text", None),
    ]  # fmt: skip
    for value, kind, number in facts:
        found = field(value)
        assert (found.kind, found.number) == (kind, number)
        assert type(found.number) is type(number)


# covers: C42 H20
def test_texts_are_known_by_their_digests() -> None:
    found = field("us-\u00e9")
    assert found.sha256 == hashlib.sha256("us-\u00e9".encode()).hexdigest()
    assert found.upper_sha256 == hashlib.sha256("US-\u00c9".encode()).hexdigest()
    assert field(20260307).sha256 == field("20260307").sha256
    assert [field(value).sha256 for value in (True, 1.5, None, ["x"], 10**400)] == [None] * 5


# covers: C82
def test_only_printable_text_and_numbers_are_echoed() -> None:
    request = {"a": "us", "b": 7, "c": " ", "d": "x" * 201, "e": "a\nb", "f": True, "g": ["x"], "quokka": "x"}
    found = echoed_facts(request, [*"abcdefgh"])
    assert [(one.id, one.text, one.upper) for one in found] == [
        ("a", "us", "US"), ("b", "7", "7"), *((name, None, None) for name in "cdefgh"),
    ]  # fmt: skip
    assert [one.text for one in echoed_facts(["a"], ["a"])] == [None]


RESULT = (
    RateLimit(name="rate", kind="rate", value=2 / 60, decimals=6, percent=PercentLimit(name="rate_pct", decimals=2)),
    NumberLimit(name="share", kind="number", value=0.1234567, decimals=6),
    NumberLimit(name="latency", kind="rounded", value=166.995, decimals=2),
    IntegerLimit(name="alerts", kind="integer", value=1),
    TextLimit(name="severity", kind="choice", value="P1"),
    TextLimit(name="region", kind="request", value="US"),
)


# covers: C42.3 C43.1 C46 C74.1
def test_result_and_metrics_come_from_the_limits() -> None:
    shown = {"latency": round(166.995, 2), "alerts": 1, "severity": "P1"}
    assert result_of(RESULT) == {"rate": 2 / 60, "share": 0.1234567, **shown, "region": "US"}
    assert metrics_of(RESULT) == {"rate": 0.033333, "rate_pct": 3.33, "share": 0.123457, **shown}
    assert echoed_of([EchoedLimit(name="region", value="US")]) == {"region": "US"}


# covers: C79
def test_placeholders_are_replaced_once_and_without_format_syntax() -> None:
    assert sentence("{a} in {b}: {c}%", {"a": 167.0, "b": "{c}"}, {"c": 3.33}) == "167.0 in {c}: 3.33%"
    with pytest.raises(KeyError):
        sentence("{a.__class__}{a}", {"b": 1})
    assert sentence("{a.__class__} {a!r} {0} {}", {"a": 1}) == "{a.__class__} {a!r} {0} {}"


def column(*values: Any) -> ColumnFacts:
    found = output_facts(json.dumps({"x": values}), {"x": ()}).fields[1].column
    assert found is not None
    return found


# covers: C39 C40 H02
def test_a_column_is_summarized_by_counts_and_bounds() -> None:
    found = column(*json.loads("[1, 2.5, -3, true, null]"), "7", "\u00e9\u00e9\u00e9", [1], {}, 2**53)
    counts = {
        name: getattr(found, name) for name in ("missing", "values", "booleans", "integers", "numbers", "strings")
    }
    assert counts == {"missing": 1, "values": 9, "booleans": 1, "integers": 2, "numbers": 3, "strings": 2}
    assert (found.least, found.most, found.longest) == (-3, 2.5, 3)
    texts = {hashlib.sha256(text.encode()).hexdigest() for text in ("7", "\u00e9\u00e9\u00e9")}
    assert set(found.texts or ()) == texts
    empty = column()
    assert (empty.values, empty.least, empty.most, empty.longest, empty.texts) == (0, None, None, 0, ())


def test_distinct_texts_are_listed_up_to_a_bound() -> None:
    texts = [str(number) for number in range(MOST_TEXTS)]
    assert len(column(*texts, *texts).texts or ()) == MOST_TEXTS
    assert column(*texts, "another").texts is None


# covers: C74
def test_of_a_table_only_its_columns_count() -> None:
    rows = [{"a": 1, "b": 2, "c": 3}, {"a": None}, "no row"]
    text = json.dumps({"x": rows})
    whole, first = output_facts(text, {"x": ("a",)}).fields
    assert (whole.id, whole.kind, whole.entries, whole.rows, first.id, first.present) == (
        "x",
        "list",
        3,
        2,
        "x.a",
        True,
    )
    assert (first.column or column()).missing == 2
    content, digest = content_of(text, "x", ("a",))
    assert (content, digest) == ([{"a": 1}, {"a": None}, {"a": None}], whole.content)
    assert content_of(text.replace("2", "4"), "x", ("a",))[1] == digest  # what is dropped
    assert content_of(text.replace("1", "4"), "x", ("a",))[1] != digest


@pytest.mark.parametrize("value", [None, 7, True, {}, {"a": 1}])
def test_a_value_that_is_not_a_list_has_no_content(value: Any) -> None:
    text = json.dumps({"x": value})
    whole, first = output_facts(text, {"x": ("a",)}).fields
    assert (whole.entries, whole.content, (first.column or column(1)).values) == (None, None, 0)
    assert content_of(text, "x", ("a",)) == (None, None)
    assert [one.present for one in output_facts("{}", {"x": ("a",)}).fields] == [False, False]
    assert content_of("no json", "x", ()) == content_of("[]", "x", ()) == (None, None)

"""Contacts are read column by column where all fit, and one by one where one may not: with one result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.facts import material
from engine.facts.material import Reader, Row, Texts, UnfitError, contacts_one_by_one, control_in, fitting_contacts

A = '{"id": 1, "name": "Ada"}'
FIT = {
    "plain": f'[{A}, {{"id": 2, "name": "Eve: :", "tags": ["a:b", "c"], "note": "x:\\ny"}}]',
    "texts_as_ids": '[{"id": "a:1", "name": "Ada"}, {"name": "Eve", "id": "b"}]',
    "minus_zero": '[{"id": -0, "name": "Ada"}]',
    "largest": f'[{{"id": {2**53 - 1}, "name": "Ada"}}, {{"id": {-(2**53) + 1}, "name": "Eve"}}]',
    "escapes": '[{"id": 1, "n\\u0061me": "\\u00e9\\t\\/", "city": "Z\\u00fcrich"}]',
    "spaces": f"\n\t[ {A} \r ] ",
}
"""JSON texts of contacts that are read column by column."""

SLOW = {
    "both_kinds_of_ids": f'[{A}, {{"id": "2", "name": "Eve"}}]',
    "escaped_colon": '[{"id": 1, "name": "a\\u003Ab"}]',
}
"""Contacts that fit, but are read one by one."""

UNFIT = {
    "key_twice": '[{"id": 1, "name": "Ada", "name": "Eve"}]',
    "equal_key_twice": '[{"id": 1, "name": "Ada", "name": "Ada"}]',
    "key_twice_with_colons": '[{"id": 1, "note": "::", "name": "Ada", "note": ":"}]',
    "key_twice_by_an_escape": '[{"id": 1, "name": "Ada", "n\\u0061me": "Eve"}]',
    "key_twice_and_an_escaped_colon": '[{"id": 1, "name": "Ada", "note": "x", "note": "\\u003a"}]',
    "object_behind_a_key_twice": '[{"id": 1, "name": "Ada", "note": {"a": 1}, "note": "b"}]',
    "list_behind_a_key_twice": '[{"id": 1, "name": "Ada", "tags": [], "tags": []}]',
    "id_is_fraction": '[{"id": 1.0, "name": "Ada"}]',
    "id_is_exponent": '[{"id": 1e2, "name": "Ada"}]',
    "id_is_large": f'[{{"id": {2**53}, "name": "Ada"}}]',
    "id_is_huge": f'[{{"id": {10**30}, "name": "Ada"}}]',
    "id_is_true": '[{"id": true, "name": "Ada"}]',
    "id_is_empty": '[{"id": "", "name": "Ada"}]',
    "no_id": f'[{A}, {{"name": "Eve"}}]',
    "no_name": f'[{A}, {{"id": 2}}]',
    "null": f'[{A}, {{"id": 2, "name": "Eve", "city": null}}]',
    "null_tags": f'[{A}, {{"id": 2, "name": "Eve", "tags": null}}]',
    "number_as_tag": f'[{A}, {{"id": 2, "name": "Eve", "tags": ["a", 1]}}]',
    "other_field": f'[{A}, {{"id": 2, "name": "Eve", "age": "7"}}]',
    "no_object": f"[{A}, []]",
    "infinity": '[{"id": 1, "name": "Ada", "note": Infinity}]',
    "leading_zero": '[{"id": 01, "name": "Ada"}]',
    "comma_at_the_end": f"[{A},]",
    "byte_order_mark": f"\ufeff[{A}]",
    "raw_line_feed": '[{"id": 1, "name": "A\nda"}]',
}


def one_by_one(text: str) -> tuple[Row, ...] | None:
    try:
        return contacts_one_by_one(text)
    except UnfitError:
        return None


@pytest.mark.parametrize("name", FIT)
def test_contacts_that_fit_are_read_column_by_column(name: str) -> None:
    found = fitting_contacts(FIT[name])
    assert found is not None
    assert found == one_by_one(FIT[name])


@pytest.mark.parametrize("name", [*UNFIT, *SLOW])
def test_contacts_that_may_not_fit_are_read_one_by_one(name: str) -> None:
    assert fitting_contacts({**UNFIT, **SLOW}[name]) is None
    assert (one_by_one({**UNFIT, **SLOW}[name]) is None) == (name in UNFIT)


_WORDS = st.text(st.sampled_from('a:"\\\u003a\x00é= '), max_size=4)
_VALUES: st.SearchStrategy[Any] = st.one_of(
    _WORDS, st.integers(), st.none(), st.booleans(), st.floats(), st.lists(_WORDS, max_size=2),
    st.dictionaries(_WORDS, _WORDS, max_size=1),
)  # fmt: skip
_FIELD = st.tuples(st.sampled_from([*material.CONTACT, "other"]), st.one_of(_WORDS, _VALUES))
_CONTACT = st.lists(_FIELD, max_size=4).map(lambda more: [("id", 1), ("name", "Ada"), *more])


@given(st.lists(_CONTACT, min_size=1, max_size=3), st.booleans())
def test_the_column_and_row_readers_agree(contacts: list[list[tuple[str, Any]]], ascii_: bool) -> None:  # noqa: FBT001
    def written(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_)

    objects = ("{" + ", ".join(f"{written(key)}: {written(value)}" for key, value in one) + "}" for one in contacts)
    text = f"[{', '.join(objects)}]"
    assert fitting_contacts(text) in (None, one_by_one(text))


@given(st.lists(st.text(st.sampled_from("a=+-@ \t\r\n\x00\u2003\u200b\xad\ufe0fé1"), max_size=4), max_size=4))
def test_batch_counts_equal_individual_counts(texts: list[str]) -> None:
    together = Texts(texts)
    assert together.formulas() == sum(material._FORMULA.match(one) is not None for one in texts)
    assert together.controls() == sum(control_in(one) is not None for one in texts)
    assert together.longest() == max((len(one.encode()) for one in texts), default=0)


@pytest.mark.parametrize(
    ("contact", "problem"),
    [
        ('{"id": 1, "name": "Ada", "email": null}', "item 1 has `email`, which is not text"),
        ('{"id": 1, "name": 7}', "item 1 has `name`, which is not text"),
        ('{"id": 1, "name": "Ada", "tags": "vip"}', "item 1 has `tags`, which is not a list of texts"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(contact: str, problem: str) -> None:
    with pytest.raises(UnfitError, match=problem):
        contacts_one_by_one(f"[{A}, {contact}]")


@pytest.mark.parametrize(
    "text",
    [
        "# Title\r\n\r\nWindows\r\n", "\ufeff# Title", "page 1\n\f\npage 2", "co\xadop", "hyphen\xad\nated",
        "a family: \U0001f468\u200d\U0001f469\u200d\U0001f467, a heart: \u2764\ufe0f", "\u0645\u06cc\u200c\u062e",
        "\u05e9\u05dc\u05d5\u05dd\u200f!",
    ],
)  # fmt: skip
def test_ordinary_text_contains_no_control_character(text: str) -> None:
    assert control_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred", "over\rwritten", "nul\0", "back\b", "pass\u200bword", "\u202egnp.exe", "a\ufeffb", "a\u2028b",
        "tag\U000e0041", "no letters to direct\u200f", "a\x85b",
    ],
)  # fmt: skip
def test_a_character_that_deceives_readers_is_found(text: str) -> None:
    assert control_in(text) is not None


@pytest.mark.parametrize("text", ["+1-555-0100x123", "+49 30/1234", "+44 20 7946 ext. 12", "-12.5", "+1 (555) 0100"])
def test_a_phone_number_is_no_formula(text: str) -> None:
    assert Texts([text]).formulas() == 0


@pytest.mark.parametrize("text", ["+A1", "-2+cmd|x", "+1x", "+1ext", "+1x1+A1", "@SUM(1)", "=1", "-call", "+1/A1"])
def test_what_spreadsheets_may_run_is_a_formula(text: str) -> None:
    assert Texts([text]).formulas() == 1


@pytest.mark.parametrize(
    ("tag", "counted"), [("a\x07b", (1, 0)), ("a\u200bb", (1, 0)), ("a\rb", (1, 0)), ("=1", (0, 1)), ("a", (0, 0))]
)
def test_a_tag_is_a_text_of_its_own(tag: str, counted: tuple[int, int]) -> None:
    contact = {"id": 1, "name": "Ada", "tags": ["friend", tag]}
    read = Reader("contacts", 1_000).read("r", json.dumps([contact], ensure_ascii=False).encode())
    assert (read.controls, read.formulas) == counted
    assert (read.first is None) == (counted == (0, 0))


def test_the_place_of_the_first_control_character_is_stated() -> None:
    data = json.dumps([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Ben", "note": "one\ntwo\u200bthree"}]).encode()
    assert Reader("contacts", 1_000).read("r", data).first == "U+200B in item 1, line 2"
    assert Reader("documents", 1_000).read("r", b"# Title\x1b").first == "U+001B in item 0, line 1"
    assert Reader("documents", 1_000).read("r", b"# Title\r\ntext").first is None
    assert Reader("contacts", 1_000).read("r", b'[{"id": 1, "name": "=1"}]').first == "a formula in item 0"
    assert Reader("contacts", 1_000).read("r", b"[]").first == "it is empty"

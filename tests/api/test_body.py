"""The strict JSON reader: what two readers could read differently is refused, with the field where there is one."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.body import InvalidBodyError, parse_json, read_json
from engine.api.limits import ApiLimits
from tests.expect import refused

LIMITS = ApiLimits()
SMALL = ApiLimits(string_characters=20, nodes=10, depth=3)

REFUSED = {
    "empty": b"",
    "no_json": b"nul",
    "half": b'{"a":',
    "two_documents": b"{} {}",
    "trailing_zero_byte": b"{}\x00",
    "byte_order_mark": b"\xef\xbb\xbf{}",
    "other_charset": '{"a":"é"}'.encode("latin-1"),
    "utf_16": '{"a":1}'.encode("utf-16"),
    "encoded_surrogate": b'"\xed\xa0\x80"',
    "lone_surrogate": b'"\\ud800"',
    "nan": b'{"a":NaN}',
    "infinity": b"[Infinity]",
    "minus_infinity": b"[-Infinity]",
    "beyond_double": b"[1e400]",
    "leading_zero": b"[01]",
    "comment": b"{} // no",
    "single_quotes": b"{'a':1}",
    "deep": b"[" * 10_000 + b"]" * 10_000,
}

TWICE = {
    "plain": b'{"a":1,"a":2}',
    "blank_before_colon": b'{"a":1,"a" :2}',
    "tab_before_colon": b'{"a"\t:1,"a"\t:2}',
    "below": b'{"b":{"c":1,"c":1}}',
    "in_a_list": b'[{"c":1,"c":1}]',
    "escaped": b'{"a\\u0062":1,"ab":2}',
    "beside_a_colon_in_a_string": b'{"x":"\\":","a":1,"a":2}',
    "beside_a_key_like_string": b'{"x":"\\"a\\":","a":1,"a":2}',
}


@pytest.mark.parametrize("name", REFUSED)
def test_json_that_is_not_strict_is_refused(name: str) -> None:
    with refused(InvalidBodyError, "engine.json_invalid"):
        parse_json(REFUSED[name], LIMITS)


@pytest.mark.parametrize("half", [b'["\\ud800"]', b'["\\udc00"]', b'["\\ud800\\u0041"]'])
def test_half_a_surrogate_pair_is_named_as_such(half: bytes) -> None:
    with pytest.raises(InvalidBodyError, match="the body contains an unpaired surrogate") as caught:
        parse_json(half, LIMITS)
    assert caught.value.remedy == "write the character as UTF-8"


@pytest.mark.parametrize("name", TWICE)
def test_a_key_twice_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidBodyError, match="twice") as caught:
        parse_json(TWICE[name], LIMITS)
    assert caught.value.fields[0][1] == "occurs twice"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"a":{"b":[1,9007199254740992]}}', "a.b.1"),
        (b'{"a":-9007199254740992}', "a"),
        (b"9007199254740992", "body"),
        (b'{"a":1e16}', "a"),
        (b'{"a":{"b":"' + b"x" * 21 + b'"}}', "a.b"),
        (b'{"' + b"k" * 21 + b'":1}', "body"),
    ],
)
def test_a_value_beyond_a_bound_is_refused_by_its_path(data: bytes, field: str) -> None:
    with pytest.raises(InvalidBodyError) as caught:
        parse_json(data, ApiLimits(string_characters=20))
    assert [name for name, _ in caught.value.fields] == [field]


@pytest.mark.parametrize(
    ("data", "inside"),
    [
        (b"[[[1]]]", b"[[1]]"),
        (b"[1,2,3,4,5,6,7,8,9,10,11]", b"[1,2,3,4,5,6,7,8,9]"),
        (b"[0." + b"1" * 63 + b"]", b"[0." + b"1" * 62 + b"]"),
    ],
)
def test_a_size_at_the_bound_is_accepted_and_one_above_is_refused(data: bytes, inside: bytes) -> None:
    limits = ApiLimits(nodes=10, depth=2)
    parse_json(inside, limits)
    with pytest.raises(InvalidBodyError):
        parse_json(data, limits)


def test_numbers_up_to_the_largest_and_any_text_pass() -> None:
    data = b'{"u":"http://x:1/\\"","n":[9007199254740991,-9007199254740991,0.5,1e3],"t" : "\\":"}'
    assert parse_json(data, LIMITS) == json.loads(data)
    assert asyncio.run(read_json(data, LIMITS)).data == data


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e9, 1e9)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(_VALUES, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
def test_every_plain_value_is_read_as_it_is(value: object, ascii_only: object, separators: tuple[str, str]) -> None:
    data = json.dumps(value, ensure_ascii=bool(ascii_only), separators=separators).encode()
    assert parse_json(data, LIMITS) == value


@given(st.dictionaries(st.text('ab:"\\ ', max_size=4), st.text('ab:"\\ ', max_size=6), min_size=1), st.data())
def test_a_duplicate_member_is_always_found(members: dict[str, str], data: st.DataObject) -> None:
    written = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members.items()]
    again = data.draw(st.sampled_from(written))
    place = data.draw(st.integers(0, len(written)))
    with pytest.raises(InvalidBodyError, match="twice"):
        parse_json(("{" + ",".join([*written[:place], again, *written[place:]]) + "}").encode(), LIMITS)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    try:
        value = parse_json(data, LIMITS)
    except InvalidBodyError:
        return
    assert json.loads(data) == value

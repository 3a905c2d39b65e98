"""JSON read in pieces has one reading exactly where JSON read as a whole has, and takes little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.documents.json_pieces import check_json
from engine.documents.strict_json import MAX_SAFE_INTEGER, AmbiguousJsonError, NotJsonError, read_strict
from engine.facts.fetched import fetched_content
from tests.lanes import examples

PIECE = 64
KEYS = st.sampled_from(["a", "b", "é", "a:b", '"', "\\", "", "x" * 20])
NUMBERS = st.sampled_from([2**53 - 1, 2**53, 0.5, 1e-7, 1e30])
TEXTS = st.sampled_from(["é", "\\", ":,", "y" * 200, '"' * 70, "]" * 70])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-99, 99), NUMBERS, TEXTS, st.text(max_size=9))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=9) | st.dictionaries(KEYS, inner, max_size=9), max_leaves=60
)
INSERTED = st.sampled_from([*'[]{},:"\\ 0e-', '{"a":1,"a":1},', "\\ud800", ""])
EDITS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2), INSERTED), max_size=2)


def outcome(read: Callable[[], Any]) -> str:
    try:
        read()
    except NotJsonError:
        return "no JSON"
    except AmbiguousJsonError as error:
        return error.problem
    return "one reading"


def whole(text: str) -> str:
    return outcome(lambda: read_strict(text, largest=MAX_SAFE_INTEGER))


def pieces(text: str, piece: int = PIECE) -> str:
    return outcome(lambda: check_json(bytearray(text.encode()), piece))


@settings(max_examples=examples(600))
@given(VALUES, EDITS, st.sampled_from([{}, {"ensure_ascii": False, "indent": 1}]))
@example([[]], [(1, 0, "[" * 126), (2, 0, "]" * 126)], {})
def test_json_is_refused_in_pieces_exactly_when_refused_as_a_whole(
    value: Any, edits: list[tuple[int, int, str]], how: dict[str, Any]
) -> None:
    text = json.dumps(value, **how)
    for place, gone, new in edits:
        at = place % (len(text) + 1)
        text = text[:at] + new + text[at + gone :]
    if len(json.dumps(text)) < 100_000:
        assert (pieces(text) == "one reading") == (whole(text) == "one reading"), text


GOOD = '{"id": 1, "name": "a", "list": [1, {"x": []}]}'
FAULTS = {
    "a key twice": ('{"a": 1, "a": 2}', "has a key twice"),
    "a key twice in two spellings": ('{"a": 1, "\\u0061": 2}', "has a key twice"),
    "a key of a colon twice": ('{"\\u003a": 1, ":": 2}', "has a key twice"),
    "not a number": ("NaN", "has a number that is not finite"),
    "an infinite number": ("-Infinity", "has a number that is not finite"),
    "a large integer": ("9007199254740993", "has an integer beyond 2^53"),
    "a large exponent": ("1E20", "has a number that is too large"),
    "half a pair": ('"\\ud800"', "contains an unpaired surrogate"),
    "the other half": ('"\\\\\\udc00"', "contains an unpaired surrogate"),
    "half a pair in a long text": (f'"{"y" * 100}\\ud83dx"', "contains an unpaired surrogate"),
    "deep": ("[" * 128 + "]" * 128, "is nested deeper than 128"),
    "deep and long": ("[" + "[1, [], " * 127 + "1" + "]" * 128, "is nested deeper than 128"),
    "a comma too many": ("[1, 2,]", "no JSON"),
    "a comma too many behind a long text": (f'["{"y" * 100}",]', "no JSON"),
    "no comma": ('[{"a": 1} {"a": 1}]', "no JSON"),
    "another bracket": ("[1, 2}", "no JSON"),
    "a line in a text": (f'"{"y" * 100}\n"', "no JSON"),
    "a member in a list": ('["a": 1]', "no JSON"),
    "no value": ('{"a"}', "no JSON"),
    "a word": ("nul", "no JSON"),
    "nothing": ("", "no JSON"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_wherever_it_is(name: str) -> None:
    fault, problem = FAULTS[name]
    for before, after in ((20, 20), (0, 20), (20, 0)):
        for form in ("[{}]", '{{"k": [{}]}}', '[[{{"o": {{"k": [{}]}}}}]]'):
            text = form.format(", ".join([GOOD] * before + [fault] + [GOOD] * after))
            expected = problem if form == "[{}]" or "deep" not in name else "is nested deeper than 128"
            assert pieces(text) == whole(text) == expected
    members = ", ".join(f'"k{number}": {GOOD}' for number in range(40))
    assert pieces(f'{{{members}, "k": {fault}}}') == whole(f'{{{members}, "k": {fault}}}') == problem


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([json.loads(GOOD)] * 50), json.dumps({f"k{at}": [1.5, None, "\U0001f600"] for at in range(50)}),
        json.dumps([0.12345678901234567, -1e-300, 2**53 - 1] * 50), json.dumps([[[["y" * 300]]]] * 5, indent=9),
        f'[1{" " * 200},{" " * 200}2{" " * 200}]{" " * 200}', f'{{"a"{" " * 200}:{" " * 200}"b"{" " * 200}}}',
        "[" * 128 + "1," * 99 + "1" + "]" * 128, json.dumps("\\" * 200), json.dumps(["\\u003a", {"\\": ":"}] * 30),
        '["\\\\ud800", "\\ud83d\\ude00"' + ', "\\\\\\\\u003a"' * 30 + "]", "[" + " " * 200 + "]",
    ],
)  # fmt: skip
def test_unambiguous_json_is_accepted(text: str) -> None:
    assert pieces(text) == whole(text) == "one reading"


def test_a_key_that_an_object_has_twice_is_found_over_any_distance() -> None:
    members = [f'"k{number}": {number}' for number in range(2_000)]
    assert pieces(f"{{{', '.join(members)}}}") == "one reading"
    assert pieces(f"{{{', '.join([*members, members[0]])}}}") == "has a key twice"


def test_a_key_that_is_longer_than_a_piece_is_refused() -> None:
    assert pieces(f'{{"{"k" * 50}": 1, "a": [{"1, " * 50}1]}}') == "one reading"
    assert pieces(f'{{"{"k" * 90}": 1, "a": 1}}') == "has a key of more than 64 bytes"


CAP = 16_000_000
"""Bytes of a body that a fetch may bring as shipped."""

BOMBS = {
    "lists": (b"[", b"[],", b"0]"),
    "objects": (b"[", b"{},", b"0]"),
    "members": (b"[", b'{"":0},', b"0]"),
    "texts": (b"[", b'"ab",', b'""]'),
    "numbers": (b"[", b"1.5,", b"0]"),
    "large numbers": (b"[", b"1.5e9,", b"0]"),
    "an object of lists": (b'{"k":[', b"[[]],[],", b"0]}"),
    "deep lists": (b"[", b"[" * 120 + b"]" * 120 + b",", b"0]"),
    "deep lists that begin long": (b"[", b"[0," * 100 + b'"LONG"' + b"]" * 100 + b",", b"0]"),
    "escapes": (b'["', b"\\n", b'"]'),
    "wide text": ('["😀'.encode(), b"y", b'"]'),
    "a key again and again": (b"{", b'"":0,', b'"":0}'),
    "no JSON": (b"[", b"[", b""),
    "a text without an end": (b'["', b"y", b""),
}


def bomb(name: str, size: int) -> bytearray:
    """A body of about this size; `keys` is an object with as many keys as there is room for."""
    if name == "keys":
        return bytearray(b"{%b}" % b",".join(b'"%x":0' % number for number in range(size // 11)))
    before, piece, after = BOMBS[name]
    piece = piece.replace(b"LONG", b"y" * (size // 50))
    return bytearray(before + piece * (size // len(piece)) + after)


def peak(data: bytearray, read: Callable[[bytearray], object]) -> int:
    tracemalloc.start()
    try:
        read(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.full(after=4)
@pytest.mark.parametrize("name", BOMBS)
def test_no_body_takes_more_memory_than_its_size(name: str) -> None:
    data = bomb(name, 600_000)
    assert peak(data, fetched_content) <= len(data)


@pytest.mark.full
@pytest.mark.parametrize("name", ["lists", "members", "wide text"])
def test_no_body_as_large_as_a_fetch_may_bring_takes_more_memory_than_its_size(name: str) -> None:
    assert peak(bomb(name, CAP), fetched_content) <= CAP


def test_a_body_read_as_a_whole_takes_more_memory() -> None:
    """The control: the measure sees what the pieces save."""
    assert peak(bomb("lists", 250_000), lambda text: read_strict(text.decode())) > 10 * 250_000

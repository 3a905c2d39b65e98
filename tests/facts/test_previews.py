"""A preview shows the beginning of the arguments, and never a secret or a piece of one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.points.tool_call import PREVIEW_BYTES, preview
from engine.secrets.redaction import redact

TOKEN = "ghp_" + "a1B2" * 9


def clean(value: Any) -> Any:
    return redact(value)[0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "{}"),
        ({"b": 1, "a": [True, None, "é"]}, '{"a":[true,null,"é"],"b":1}'),
        ({"a": {"b": {"c": {}}}}, '{"a":{"b":{"c":{}}}}'),
    ],
)
def test_a_short_preview_is_complete(arguments: dict[str, Any], text: str) -> None:
    assert preview(arguments, clean) == (text, False)


# covers: B27.1
@pytest.mark.parametrize(
    "arguments",
    [
        {"a": "x" * 1_000},
        {"a": "é" * 1_000},
        {"a": "😀" * 1_000},
        {f"a{number}": number for number in range(1_000)},
        {"a": list(range(1_000))},
        {"a": {str(number): 1 for number in range(1_000)}},
        {"a": ["x" * 10_000] * 100},
        {"a": json.loads("[" * 60 + "]" * 60)},
    ],
)
def test_a_long_preview_is_cut_on_a_character_and_says_so(arguments: dict[str, Any]) -> None:
    text, cut = preview(arguments, clean)
    assert cut
    assert len(text.encode("utf-8")) <= PREVIEW_BYTES
    assert "\ufffd" not in text


def test_a_preview_at_the_limit_is_whole() -> None:
    room = PREVIEW_BYTES - len('{"a":""}')
    assert preview({"a": "x" * room}, clean) == (json.dumps({"a": "x" * room}).replace(" ", ""), False)
    assert preview({"a": "x" * (room + 1)}, clean)[1]


# covers: B26 B27
@pytest.mark.parametrize("before", range(190, 260, 3))
def test_no_piece_of_a_secret_shows_at_the_cut(before: int) -> None:
    for secret in (f"{'x ' * (before // 2)}{TOKEN}", TOKEN):
        text, _ = preview({"a": "y" * (before if secret == TOKEN else 0), "b": secret}, clean)
        assert TOKEN[:10] not in text
        start = text.rfind("[redacted:")
        assert start < 0 or "]" in text[start:]
        assert not text.endswith(("[", "[r", "[redac"))


def test_secrets_by_field_name_and_in_names_are_hidden() -> None:
    text, _ = preview({"password": "hunter2", TOKEN: 1, "headers": {"Authorization": "x"}}, clean)
    assert "hunter2" not in text
    assert TOKEN not in text
    assert '"x"' not in text


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WIDE = st.integers(30, 35).map(lambda count: [0] * count)
DEEP = st.integers(7, 10).map(lambda levels: json.loads("[" * levels + "]" * levels))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT | WIDE | DEEP,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, JSON, max_size=6))
def test_a_preview_is_whole_json_or_cut(arguments: dict[str, Any]) -> None:
    text, cut = preview(arguments, lambda value: value)
    assert len(text.encode("utf-8")) <= PREVIEW_BYTES
    assert cut or json.loads(text) == arguments

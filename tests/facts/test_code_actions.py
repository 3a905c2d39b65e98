"""Facts of actions and hints: whatever comes, something the policy can judge, and none of the content."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.code.actions import action_facts, hint_facts

ACTION: dict[str, Any] = {
    "id": "c1",
    "language": "python",
    "entrypoint": "main.py",
    "code": "print(1)\n",
    "input_payload": {"quokka": [1]},
}


# covers: C15
def test_names_are_trimmed_and_the_language_is_in_lower_case() -> None:
    facts = action_facts({**ACTION, "id": " c1 ", "language": " PyThon ", "entrypoint": " main.py "})
    assert [facts.id.value, facts.language.value, facts.entrypoint.value] == ["c1", "python", "main.py"]
    assert (facts.code, facts.input_payload) == (action_facts(ACTION).code, action_facts(ACTION).input_payload)


# covers: C12 C16.1
def test_code_is_measured_untrimmed() -> None:
    code = " \u00e9\U0001f600 \n"
    facts = action_facts({**ACTION, "code": code}).code
    assert (facts.chars, facts.bytes) == (5, len(code.encode()))
    assert facts.sha256 == hashlib.sha256(code.encode()).hexdigest()
    assert facts.hash == facts.sha256[:16]


# covers: C16.1 C83
def test_neither_code_nor_payload_is_in_the_facts() -> None:
    text = action_facts({**ACTION, "code": "wombat = 1"}).model_dump_json()
    assert "quokka" not in text
    assert "wombat" not in text


# covers: C10.1 C11
@pytest.mark.parametrize("raw", [None, [], "x", 7, True, {}, {"id": None, "code": [], "input_payload": "x", "y": 1}])
def test_an_empty_or_malformed_action_has_facts(raw: Any) -> None:
    facts = action_facts(raw)
    assert facts.object == isinstance(raw, dict)
    assert not (facts.id.text)
    assert not (facts.code.text)
    assert not (facts.input_payload.object)
    assert (facts.id.blank, facts.code.blank) == (True, True)


# covers: C11.1-3
@pytest.mark.parametrize("name", ["", " \u00a0", "\u3164", "\u2800", "\u200b"])
def test_a_name_of_which_nothing_is_seen_is_blank(name: str) -> None:
    facts = action_facts({"id": name, "language": name, "entrypoint": name})
    assert (facts.id.blank, facts.language.blank, facts.entrypoint.blank) == (True, True, True)


@pytest.mark.parametrize("name", ["a\nb", "a" * 129, "a\u2028b", "a\0"])
def test_an_overlong_or_unprintable_name_is_dropped(name: str) -> None:
    assert action_facts({**ACTION, "id": name}).id.value is None


@pytest.mark.parametrize(("name", "found"), [("a/b", True), ("a\\b", True), ("/" * 500, True), ("main.py", False)])
def test_path_separators_in_an_entry_point_are_detected(name: str, found: bool) -> None:  # noqa: FBT001
    assert action_facts({**ACTION, "entrypoint": name}).entrypoint.separators is found


# covers: C02
@pytest.mark.parametrize("raw", [None, [], "denied", 7, True])
def test_hints_that_are_not_an_object_count_as_empty(raw: Any) -> None:
    assert hint_facts(raw) == hint_facts({}).model_copy(update={"object": False})


# covers: C03 C77.3 H19
@pytest.mark.parametrize(
    ("value", "word"),
    [("denied", "denied"), (" OFF ", "off"), ("None", "none"), ("allowed", "allowed"), (None, None), (False, None),
     (0, None), ("", None), (" \t", None), (["none"], None), ({}, None), ("no\nne", None)],
)  # fmt: skip
def test_the_network_access_hint_is_normalized(value: Any, word: str | None) -> None:
    found = hint_facts({"network_access": value}).network_access
    assert (found.stated, found.value) == (True, word)
    assert hint_facts({}).network_access.stated is False


# covers: C05
@pytest.mark.parametrize(
    ("value", "languages"),
    [([" PYTHON ", "javascript", "python"], ("javascript", "python")), (["python", 7, None, ""], ("python",)),
     (["two words"], ()), ("python", None), ([], None), ([" ", 7, None, ["python"]], None), ({"python": 1}, None)],
)  # fmt: skip
def test_language_hints_are_normalized(value: Any, languages: tuple[str, ...] | None) -> None:
    found = hint_facts({"allowed_languages": value}).allowed_languages
    assert (found.readable, found.values) == (languages is not None, languages)


WHOLE: list[tuple[Any, int | None]] = [
    (2400, 2400), ("2400", 2400), (" 300 ", 300), (300.9, 300), (2400.0, 2400), (-5, -5), (10**400, MAX_SAFE_INTEGER),
    (-(10**400), -MAX_SAFE_INTEGER), ("1" * 400, MAX_SAFE_INTEGER), (True, None), (False, None), (None, None),
    ("", None), ("many", None),
    ("2400.5", None), ("0x10", None), ("1_000", None), ("\u0661", None), ("9" * 5000, None), ("inf", None),
    (math.inf, None), (math.nan, None), ([2400], None), ({}, None),
]  # fmt: skip


# covers: C07 C78 H18
def test_integer_hints_are_parsed_strictly() -> None:
    for value, number in WHOLE:
        found = hint_facts({"max_code_chars": value}).max_code_chars
        assert (found.readable, found.value) == (number is not None, number)


SECONDS: list[tuple[Any, float | None]] = [
    (2, 2.0), (2.5, 2.5), ("2.5", 2.5), (" .5 ", 0.5), ("1e-3", 0.001), (1e300, float(MAX_SAFE_INTEGER)), (-1, -1.0),
    (10**400, None), ("1e999", None), ("nan", None), ("-Infinity", None), (math.nan, None), (math.inf, None),
    (True, None), (None, None), ("soon", None), ("1" * 5000, None), ("1_0", None), ([2], None), ({}, None),
]  # fmt: skip


# covers: C08 C78 H18
def test_seconds_hints_are_parsed_strictly() -> None:
    for value, number in SECONDS:
        found = hint_facts({"exec_timeout_seconds": value}).exec_timeout_seconds
        assert (found.readable, found.value) == (number is not None, number)


# covers: C08 H18
def test_invalid_hint_values_are_unreadable() -> None:
    raw = {"max_code_chars": "inf", "exec_timeout_seconds": "nan", "allowed_languages": ["python", None]}
    facts = hint_facts({**raw, "network_access": None})
    assert not (facts.max_code_chars.readable)
    assert not (facts.exec_timeout_seconds.readable)
    assert facts.allowed_languages.values == ("python",)
    assert (facts.network_access.stated, facts.network_access.value) == (True, None)

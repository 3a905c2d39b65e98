"""Facts of actions and hints: whatever comes, something the policy can judge, and none of the content."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from engine.canonical import canonical
from engine.facts.code_actions import LARGEST, action_facts, hint_facts, plain_action, plain_hints

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
def test_code_is_measured_as_it_came() -> None:
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
def test_whatever_comes_has_facts(raw: Any) -> None:
    facts = action_facts(raw)
    assert facts.object == isinstance(raw, dict)
    assert not (facts.id.text)
    assert not (facts.code.text)
    assert not (facts.input_payload.object)
    assert (facts.id.blank, facts.code.blank) == (True, True)


@pytest.mark.parametrize("name", ["a\nb", "a" * 129, "a\u2028b", "a\0"])
def test_a_name_that_can_stand_in_no_record_is_no_fact(name: str) -> None:
    assert action_facts({**ACTION, "id": name}).id.value is None


@pytest.mark.parametrize(("name", "found"), [("a/b", True), ("a\\b", True), ("/" * 500, True), ("main.py", False)])
def test_separators(name: str, found: bool) -> None:  # noqa: FBT001
    assert action_facts({**ACTION, "entrypoint": name}).entrypoint.separators is found


# covers: C02
@pytest.mark.parametrize("raw", [None, [], "denied", 7, True])
def test_hints_that_are_no_object_are_none(raw: Any) -> None:
    assert hint_facts(raw) == hint_facts({}).model_copy(update={"object": False})


# covers: C03 C77.3 H19
@pytest.mark.parametrize(
    ("value", "word"),
    [("denied", "denied"), (" OFF ", "off"), ("None", "none"), ("allowed", "allowed"), (None, None), (False, None),
     (0, None), ("", None), (" \t", None), (["none"], None), ({}, None), ("no\nne", None)],
)  # fmt: skip
def test_what_is_asked_of_the_network(value: Any, word: str | None) -> None:
    found = hint_facts({"network_access": value}).network_access
    assert (found.stated, found.value) == (True, word)
    assert hint_facts({}).network_access.stated is False


# covers: C05
@pytest.mark.parametrize(
    ("value", "languages"),
    [([" PYTHON ", "javascript", "python"], ("javascript", "python")), (["python", 7, None, ""], ("python",)),
     (["two words"], ()), ("python", None), ([], None), ([" ", 7, None, ["python"]], None), ({"python": 1}, None)],
)  # fmt: skip
def test_languages(value: Any, languages: tuple[str, ...] | None) -> None:
    found = hint_facts({"allowed_languages": value}).allowed_languages
    assert (found.readable, found.values) == (languages is not None, languages)


WHOLE: list[tuple[Any, int | None]] = [
    (2400, 2400), ("2400", 2400), (" 300 ", 300), (300.9, 300), (2400.0, 2400), (-5, -5), (10**400, LARGEST),
    (-(10**400), -LARGEST), ("1" * 400, LARGEST), (True, None), (False, None), (None, None), ("", None), ("many", None),
    ("2400.5", None), ("0x10", None), ("1_000", None), ("\u0661", None), ("9" * 5000, None), ("inf", None),
    (math.inf, None), (math.nan, None), ([2400], None), ({}, None),
]  # fmt: skip


# covers: C07 C78 H18
def test_a_whole_number() -> None:
    for value, number in WHOLE:
        found = hint_facts({"max_code_chars": value}).max_code_chars
        assert (found.readable, found.value) == (number is not None, number)


SECONDS: list[tuple[Any, float | None]] = [
    (2, 2.0), (2.5, 2.5), ("2.5", 2.5), (" .5 ", 0.5), ("1e-3", 0.001), (1e300, float(LARGEST)), (-1, -1.0),
    (10**400, None), ("1e999", None), ("nan", None), ("-Infinity", None), (math.nan, None), (math.inf, None),
    (True, None), (None, None), ("soon", None), ("1" * 5000, None), ("1_0", None), ([2], None), ({}, None),
]  # fmt: skip


# covers: C08 C78 H18
def test_a_number_of_seconds() -> None:
    for value, number in SECONDS:
        found = hint_facts({"exec_timeout_seconds": value}).exec_timeout_seconds
        assert (found.readable, found.value) == (number is not None, number)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


BAD: dict[str, Any] = {
    "half a surrogate pair": "\ud800",
    "not a number": math.nan,
    "infinite": math.inf,
    "key is a number": {1: 2},
    "key is half a surrogate pair": {"\udfff": 1},
    "set": {1, 2},
    "bytes": b"x",
    "object": object(),
    "endless number": 10**5000,
    "endless nesting": deep(10_000),
    "cycle": CYCLE,
    "tuple": (1,),
}


# covers: H18
@pytest.mark.parametrize("name", BAD)
def test_what_json_cannot_hold_is_null_and_so_refused(name: str) -> None:
    bad = BAD[name]
    for field in ACTION:
        plain = plain_action({**ACTION, field: bad})
        assert plain == {**ACTION, field: None}
        facts = action_facts(plain)
        proven = {
            "id": facts.id.text, "language": facts.language.text, "entrypoint": facts.entrypoint.text,
            "code": facts.code.text, "input_payload": facts.input_payload.object,
        }  # fmt: skip
        assert proven == {one: one != field for one in ACTION}
    assert plain_action({**ACTION, "input_payload": {"x": [bad]}})["input_payload"] is None
    canonical(plain_action(bad))
    canonical(plain_hints(bad))


def test_what_json_can_hold_stays_as_it_is() -> None:
    assert plain_action({**ACTION, "further": None}) == {**ACTION, "further": None}
    assert plain_hints({"a": ["\u00e9"], "b": 2.0}) == {"a": ["\u00e9"], "b": 2.0}
    assert [plain_action(7), plain_action("x"), plain_hints(None), plain_hints([1])] == [7, "x", None, [1]]


# covers: C08 H18
def test_hints_without_a_form_in_json_are_unreadable_ones() -> None:
    raw = {"max_code_chars": math.inf, "exec_timeout_seconds": math.nan, "allowed_languages": ["python", "\ud800"]}
    plain = plain_hints({**raw, "network_access": "\ud800", 7: "x"})
    assert plain["max_code_chars"] == "inf"
    assert plain["exec_timeout_seconds"] == "nan"
    facts = hint_facts(plain)
    assert not (facts.max_code_chars.readable)
    assert not (facts.exec_timeout_seconds.readable)
    assert facts.allowed_languages.values == ("python",)
    assert (facts.network_access.stated, facts.network_access.value) == (True, None)
    canonical(plain)

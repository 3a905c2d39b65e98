"""One value of a YAML text changed: its lines alone differ, and it says what was wanted."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.edits import changed, removed
from engine.documents.files import load
from engine.errors import GatherError
from engine.settings import ReadLimits
from tests.conftest import ROOT

LICENSES = (ROOT / "policy" / "licenses.yaml").read_text(encoding="utf-8")


def said(text: str) -> Any:
    return load(text.encode(), "text", ReadLimits()).value


def lines(before: str, after: str) -> list[str]:
    """The lines that differ."""
    return [one for one in difflib.ndiff(before.splitlines(), after.splitlines()) if one[:1] in "+-"]


def test_a_word_of_a_row_is_changed_in_its_line() -> None:
    after = changed(LICENSES, ("licenses", "MIT", "decision"), "refuse")
    assert lines(LICENSES, after) == [
        "-   MIT: {category: permissive, decision: admit}",
        "+   MIT: {category: permissive, decision: refuse}",
    ]
    long = changed(LICENSES, ("categories", "attribution", "export"), "refuse")
    assert [one.split(", ")[-1] for one in lines(LICENSES, long)] == ["export: listed,", "export: refuse,"]
    title = changed(LICENSES, ("categories", "attribution", "title"), "Something else")
    assert lines(LICENSES, title)[-1] == '+      title: "Something else"}'  # quoted, as it was


def test_a_row_is_added_after_the_last_and_removed_with_its_line() -> None:
    row = {"category": "permissive", "decision": "admit", "note": "seen: yes"}
    after = changed(LICENSES, ("licenses", "Zed-1.0"), row)
    assert lines(LICENSES, after) == ['+   Zed-1.0: {category: permissive, decision: admit, note: "seen: yes"}']
    assert removed(after, ("licenses", "Zed-1.0")) == LICENSES
    noted = changed(LICENSES, ("licenses", "MIT", "note"), "ours")
    assert lines(LICENSES, noted)[-1] == "+   MIT: {category: permissive, decision: admit, note: ours}"
    assert removed(noted, ("licenses", "MIT", "note")) == LICENSES
    assert lines(LICENSES, removed(LICENSES, ("licenses", "MIT"))) == [
        "-   MIT: {category: permissive, decision: admit}"
    ]


BLOCK = """# head
hosts:
  # why a
  - a.example
  - b.example  # why b
  # after
ports: [1,
        2,  # two
        3]
flow: [a, b, c]
deep:
  under:
    text: |
      one
      two
    last: 1
# tail
none:
empty: {}
"""


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        (("hosts",), ["a.example"], ["-   - b.example  # why b"]),
        (("hosts",), ["a.example", "c.example"], ["-   - b.example  # why b", "+   - c.example"]),
        (("hosts",), ["a.example", "b.example", "*.c"], ['+   - "*.c"']),
        (("flow",), ["a", "c"], ["- flow: [a, b, c]", "+ flow: [a, c]"]),
        (("flow",), ["a", "d"], ["- flow: [a, b, c]", "+ flow: [a, d]"]),
        (("flow",), [], ["- flow: [a, b, c]", "+ flow: []"]),
        (("flow",), ["c", "a"], ["- flow: [a, b, c]", "+ flow: [c, a]"]),
        (("flow",), ["b", "x y", "yes"], ["- flow: [a, b, c]", '+ flow: [b, x y, "yes"]']),
        (("ports",), [1, 2, 3, 4], ["-         3]", "+         3, 4]"]),
        (("deep", "under", "last"), 2, ["-     last: 1", "+     last: 2"]),
        (("deep", "under", "text"), "three", ["-     text: |", "+     text: three", "-       one", "-       two"]),
        (("deep", "under", "more"), True, ["+     more: true"]),
        (("deep", "other", "x"), None, ["+   other: {x: null}"]),
        (("none",), "x", ["- none:", "+ none: x"]),
        (("none", "a", "b"), [1], ["- none:", "+ none: {a: {b: [1]}}"]),
        (("empty", "a"), 1.5, ["- empty: {}", "+ empty: {a: 1.5}"]),
        (("new",), {"a": "2027-03-31"}, ['+ new: {a: "2027-03-31"}']),
    ],
    ids=str,
)
def test_only_the_lines_of_the_value_differ(path: tuple[str, ...], value: Any, wanted: list[str]) -> None:
    after = changed(BLOCK, path, value)
    assert [one for one in lines(BLOCK, after) if not one.startswith("?")] == wanted


@pytest.mark.parametrize("path", [("hosts", "x"), ("flow", "x", "y"), ("deep", "under", "text", "x")], ids=str)
def test_an_edit_that_would_change_the_structure_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(GatherError, match="something else is in its place"):
        changed(BLOCK, path, 1)
    with pytest.raises(GatherError):
        removed(BLOCK, path)
    with pytest.raises(GatherError):
        removed(BLOCK, ("nothing",))


def test_a_list_in_a_block_is_only_replaced_where_no_comment_is_lost() -> None:
    for wanted in ([1, 2], [1, 3], [3, 2, 1]):
        with pytest.raises(GatherError, match="there are comments in it"):
            changed(BLOCK, ("ports",), wanted)
    with pytest.raises(GatherError, match="there are comments in it"):
        changed(BLOCK.replace("  - b.example", "  # why b\n  - b.example"), ("hosts",), ["z.example"])
    assert changed("a:\n  - x\n  - y\n", ("a",), ["z"]) == "a:\n  [z]\n"


@pytest.mark.parametrize("text", ["", "# only this\n", "# only this", "a: 1"])
def test_a_file_without_values_or_newline_gets_a_value(text: str) -> None:
    after = changed(text, ("licenses", "MIT"), {"decision": "refuse"})
    assert after.startswith(text)
    assert after.endswith("licenses:\n  MIT: {decision: refuse}\n")
    assert removed(after, ("licenses", "MIT")) == after.replace("MIT: {decision: refuse}", "{}")


_KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
_LEAVES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12) | st.lists(_KEYS, max_size=4)


@given(rows=st.dictionaries(_KEYS, st.dictionaries(_KEYS, _LEAVES, max_size=3), min_size=1, max_size=4), value=_LEAVES)
def test_any_value_is_read_back_or_refused(rows: dict[str, dict[str, Any]], value: Any) -> None:
    text = "# comment\n"
    for key, row in rows.items():
        for name, one in row.items():
            try:
                text = changed(text, (key, name), one)
            except GatherError:
                return
    key = next(iter(rows))
    try:
        after = changed(text, (key, "new"), value)
    except GatherError:
        return
    assert said(after)[key]["new"] == value
    assert after.startswith("# comment\n")
    assert {k: v for k, v in said(after).items() if k != key} == {k: v for k, v in _read(text).items() if k != key}


def _read(text: str) -> Any:
    return said(text) if text.strip().removeprefix("# comment").strip() else {}

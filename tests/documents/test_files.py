"""Reading what others wrote: everything with two readings, or too much of it, is refused with its line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.files import load, open_beneath, read_bytes
from engine.errors import GatherError, Location
from engine.settings import ReadLimits

LIMITS = ReadLimits(document_bytes=10_000, depth=8, nodes=500)

REFUSED = {
    "empty": (b"", None, "is empty"),
    "only_a_comment": (b"# nothing\n", None, "is empty"),
    "not_utf8": (b"a: 1\nb: \xff", 2, "is not UTF-8"),
    "utf16": ("a: 1".encode("utf-16"), 1, "is not UTF-8"),
    "not_yaml": (b"a: [1,\nb: {", 3, "is not YAML"),
    "control_byte": (b"a: \x00", None, "is not YAML"),
    "duplicate_key": (b"a: 1\nb: 2\na: 3", 3, "the key `a` twice"),
    "duplicate_key_json": (b'{"a": 1, "a": 2}', 1, "the key `a` twice"),
    "duplicate_key_json_on_a_line": (b'{"a": 1,\n "b": "{\\"a\\": 1}",\n "a": 2}', 3, "the key `a` twice"),
    "duplicate_key_json_inside": (
        b'[{"b": [1]}, {"b": [{"c,{": "]"},\n {"x": {"a": 1}, "a": 2, "d": "a",\n "\\u0064": 1}]}]',
        3,
        "the key `1.b.1.d` twice",
    ),
    "duplicate_key_json_and_a_wrong_end": (b'{"a": {"b": 1, "b": 2}}, ]]}}"', 1, "the key `a.b` twice"),
    "alias_bomb": (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", 1, "anchor or alias"),
    "merge_key": (b"a: 1\n<<: {b: 2}", 2, "merge key"),
    "tag": (b"a: !!python/object/apply:os.system [ls]", 1, "a tag"),
    "key_that_is_a_list": (b"? [a]\n: 1", 1, "not plain text"),
    "octal": (b"a: 017", 1, "`017`"),
    "hexadecimal": (b"a: 0x1F", 1, "`0x1F`"),
    "underscore": (b"a: 1_000", 1, "`1_000`"),
    "plus": (b"a: +1", 1, "`+1`"),
    "not_a_number": (b"a: .nan", 1, "`.nan`"),
    "infinite": (b"a: -.inf", 1, "`-.inf`"),
    "not_a_number_json": (b'{"a": NaN}', 1, "not finite"),
    "large_integer": (b"a: 9007199254740993", 1, "2^53"),
    "large_integer_json": (b'{"a": 9007199254740993}', 1, "2^53"),
    "huge_exponent": (b"a: 1e400", 1, "too large"),
    "huge_exponent_json": (b'{"a": 1e400}', 1, "too large"),
    "half_a_surrogate_json": (b'{"a": "\\ud800"}', 1, "unpaired surrogate"),
    "two_documents": (b"a: 1\n---\nb: 2", 2, "more than one document"),
    "deep": (b"[" * 10 + b"]" * 10, 1, "nested deeper"),
    "deep_yaml": (b"a: " + b"[" * 9 + b"]" * 9, 1, "nested deeper"),
    "too_deep_for_any_parser": (b"[" * 4_000, None, ""),
    "many": (b"a:\n" + b"- 1\n" * 600, None, "more than 500"),
    "large": (b"a: " + b"x" * 10_000, None, "larger than 10000 bytes"),
}


@pytest.mark.parametrize(
    ("name", "data", "line", "said"),
    [
        ("call.json", b'{"a": 1\n "b": 2}', 2, "is not JSON: expecting ',' delimiter, column 2"),
        ("standard input", b'{"a": [}', 1, "is not JSON: expecting value, column 8"),
        ("call", b"[1,\n", 2, "is not JSON: expecting value, column 1"),
        ("call.json", b"- a: [", 1, "is not JSON: expecting value, column 1"),
        ("bundle.yaml", b"{a: [}", 1, "is not YAML: "),
        ("standard input", b"a: [}", 1, "is not YAML: "),
    ],
)
def test_broken_json_is_called_so(name: str, data: bytes, line: int, said: str) -> None:
    with pytest.raises(GatherError) as caught:
        load(data, name, LIMITS)
    assert said in str(caught.value)
    assert caught.value.where == Location(name, line)
    assert ("double quotes" in caught.value.remedy) == ("JSON" in said)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, line, words = REFUSED[name]
    with pytest.raises(GatherError) as caught:
        load(data, "some.yaml", LIMITS)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert caught.value.where is not None
    assert caught.value.where.file == "some.yaml"
    if line is not None:
        assert caught.value.where.line == line


def test_values_and_lines() -> None:
    assert load(b"sha256: 0b9f2c\nother: 0o9\n", "some.yaml", LIMITS).value == {"sha256": "0b9f2c", "other": "0o9"}
    document = load(b"a: 1\nb: [x, 'no', no, true, null, 1.5]\nc:\n  d: 2026-11-02\n", "some.yaml", LIMITS)
    assert document.value == {"a": 1, "b": ["x", "no", "no", True, None, 1.5], "c": {"d": "2026-11-02"}}
    assert document.where(("c", "d")).line == 4
    assert document.where(("c", "missing")).line == 3  # where the mapping is named
    assert document.where(("b", 2)).line == 2


@pytest.mark.parametrize(("name", "language"), [("some.json", "JSON"), ("some.yaml", "YAML")])
def test_a_malformed_document_is_reported_with_its_language(name: str, language: str) -> None:
    with pytest.raises(GatherError, match=f"the document is not {language}: "):
        load(b'{"a": [1}', name, LIMITS)


def test_json_surrogate_pair_is_one_character() -> None:
    assert load(b'{"a": "\\ud83d\\ude00"}', "some.json", LIMITS).value == {"a": "\N{GRINNING FACE}"}


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = load(data, "some.yaml", LIMITS).value
    except GatherError:
        return
    json.dumps(value, allow_nan=False).encode("utf-8")


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=8), _json, max_size=4))
def test_json_is_read_as_json_reads_it(value: dict[str, object]) -> None:
    data = json.dumps(value).encode("utf-8")
    try:
        assert load(data, "some.json", LIMITS).value == value
    except GatherError as error:
        assert "surrogate" in str(error) or "nested" in str(error) or "not YAML" in str(error)  # noqa: PT017


def test_only_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        with pytest.raises(GatherError):
            read_bytes(path, 100)


def test_newlines_in_a_name_do_not_reach_the_message(tmp_path: Path) -> None:
    with pytest.raises(GatherError) as caught:
        read_bytes(tmp_path / "two\nlines\x1b[31m", 100)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_path_outside_the_folder_or_through_a_link_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "folder" / "file").write_text("content")
    (tmp_path / "outside").write_text("secret")
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "way").symlink_to(tmp_path)
    root = os.open(inside, os.O_RDONLY)
    with open_beneath(root, "folder/file") as file:
        assert file.read() == b"content"
    assert (inside / "way" / "outside").read_text() == "secret"  # the control: a plain open does follow
    for path in (
        "../outside",
        "/etc/passwd",
        "link",
        "way/outside",
        "folder/../folder/file",
        "folder",
        "",
        "a\\b",
        "a\0",
    ):
        with pytest.raises(GatherError), open_beneath(root, path):
            pass
    with pytest.raises(FileNotFoundError), open_beneath(root, "folder/missing"):
        pass
    os.close(root)

"""Lines from both ends of a file, and the names of the files they stand in."""

from __future__ import annotations

import io

import pytest

from engine.record import lines
from engine.record.chain import LineError, encode, parse
from engine.record.layout import BreakKind, segment_numbers
from tests.record.samples import decision


def test_the_longest_line_is_read_from_both_ends_and_one_byte_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 10)
    for size in (1, 3, 10, 11, 1 << 20):
        monkeypatch.setattr(lines, "_CHUNK", size)
        monkeypatch.setattr(lines, "_BACK", size)
        for line in (b"x" * 9, b"x" * 10):
            data = b"a\n" + line + b"\nb\n"
            assert list(lines.Lines(io.BytesIO(data))) == [b"a", line, b"b"]
            assert [found for _, found in lines.backwards(io.BytesIO(data))] == [b"b", line, b"a"]
        torn = lines.Lines(io.BytesIO(b"a\n" + b"x" * 10))
        assert (list(torn), torn.rest) == ([b"a"], b"x" * 10)
    for data in (b"x" * 11 + b"\nb\n", b"x" * 11 + b"\n"):
        for read in (lines.Lines, lines.backwards):
            monkeypatch.setattr(lines, "_CHUNK", 1)
            monkeypatch.setattr(lines, "_BACK", 1)
            with pytest.raises(LineError, match="more than 10 bytes"):
                list(read(io.BytesIO(data)))


def test_only_names_that_the_writer_gives_are_segments() -> None:
    ours = {1: "decisions.000001.jsonl", 2: "decisions.000002.jsonl", 1234567: "decisions.1234567.jsonl"}
    others = ("decisions.000000.jsonl", "decisions.0000002.jsonl", "decisions.2.jsonl", "lock", "x.jsonl")
    assert segment_numbers([*others, *reversed(ours.values())]) == list(ours)


@pytest.mark.parametrize("text", [b"0" * 64, b"0" * 31 + b"1", b"contacts-1"], ids=["head", "id", "input"])
def test_a_line_with_text_that_has_no_bytes_is_a_break(text: bytes) -> None:
    line = encode(1, "0" * 64, decision(1))
    assert parse(line).seq == 1
    with pytest.raises(LineError) as caught:
        parse(line.replace(b'"%b"' % text, b'"\\ud800"', 1))
    assert caught.value.kind is BreakKind.BAD_JSON

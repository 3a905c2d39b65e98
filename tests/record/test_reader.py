"""Reading the record from its end, for the last entry of a kind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RecordError
from engine.record import lines
from engine.record.chain import Entry, LineError
from engine.record.layout import DECISIONS, LINE_BYTES, segment_file, segment_numbers
from engine.record.reader import Filter, entries, newest
from tests.record.samples import write


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.binary(max_size=4))
def test_lines_from_the_end_are_those_from_the_beginning_turned_round(whole: list[bytes], rest: bytes) -> None:
    rest = rest.replace(b"\n", b"")
    data = b"".join(line + b"\n" for line in whole) + rest
    for size in (1, 2, 3, 7, 1 << 20):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lines, "_CHUNK", size)
            assert list(lines.backwards(io.BytesIO(data))) == whole[::-1]


def test_a_line_longer_than_any_of_ours_ends_the_reading() -> None:
    found = lines.backwards(io.BytesIO(b"x" * (LINE_BYTES + 2) + b"\nlast\n"))
    assert next(found) == b"last"
    with pytest.raises(LineError, match="without a newline"):
        list(found)


def test_the_longest_line_is_read_from_both_ends_and_one_byte_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 10)
    for size in (1, 3, 10, 11, 1 << 20):
        monkeypatch.setattr(lines, "_CHUNK", size)
        for line in (b"x" * 9, b"x" * 10):
            data = b"a\n" + line + b"\nb\n"
            assert list(lines.Lines(io.BytesIO(data))) == [b"a", line, b"b"]
            assert list(lines.backwards(io.BytesIO(data))) == [b"b", line, b"a"]
        torn = lines.Lines(io.BytesIO(b"a\n" + b"x" * 10))
        assert (list(torn), torn.rest) == ([b"a"], b"x" * 10)
    for data in (b"x" * 11 + b"\nb\n", b"x" * 11 + b"\n"):
        for read in (lines.Lines, lines.backwards):
            monkeypatch.setattr(lines, "_CHUNK", 1)
            with pytest.raises(LineError, match="more than 10 bytes"):
                list(read(io.BytesIO(data)))


def test_only_names_that_the_writer_gives_are_segments() -> None:
    ours = {1: "decisions.000001.jsonl", 2: "decisions.000002.jsonl", 1234567: "decisions.1234567.jsonl"}
    others = ("decisions.000000.jsonl", "decisions.0000002.jsonl", "decisions.2.jsonl", "lock", "x.jsonl")
    assert segment_numbers([*others, *reversed(ours.values())]) == list(ours)


def test_the_newest_entries_come_first_over_segments_and_past_lines_that_are_none(tmp_path: Path) -> None:
    write(tmp_path, 5)
    first = (tmp_path / DECISIONS).read_bytes()
    second = tmp_path / segment_file(2)
    second.write_bytes(b"no record\n" + first.splitlines(keepends=True)[2] + b"half a line")
    wanted = Filter(mode="check")
    forwards = [one for one in entries(tmp_path, wanted) if isinstance(one, Entry)]
    assert len(forwards) == 6
    assert list(newest(tmp_path, wanted)) == forwards[::-1]
    second.write_bytes(b"x" * (LINE_BYTES + 2) + b"\n")
    with pytest.raises(RecordError, match="without a newline") as caught:
        list(newest(tmp_path, wanted))
    assert str(caught.value.where) == segment_file(2)
    second.unlink()
    second.mkdir()
    with pytest.raises(RecordError, match="is a directory"):
        list(newest(tmp_path, wanted))

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
from engine.record.layout import DECISIONS, LINE_BYTES, segment_file
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

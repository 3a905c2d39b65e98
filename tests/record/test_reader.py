"""What a filter shows, which lines it does not even read, and reading from the end."""

from __future__ import annotations

import io
from dataclasses import fields
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import Location, RecordError
from engine.model import Level, Mode, Outcome
from engine.record import lines
from engine.record.chain import Entry, LineError
from engine.record.layout import DECISIONS, LINE_BYTES, segment_file
from engine.record.model import DecisionRecord, ResultRecord
from engine.record.reader import Filter, Selection, entries, line_time, newest, select
from tests.record.samples import TIME, VERSIONS, open_log, taken, write

OF_FIRST: dict[str, Any] = {
    "decision_id": f"{1:032x}",
    "point": "source",
    "outcome": "deny",
    "mode": "enforce",
    "since": "2026-11-22T00:00:00.000000Z",
    "code": "license_unknown",
    "principal": "user:ana",
    "run": "run-1",
    "trace": "1" * 32,
    "request_id": "r-1",
}
"""A filter that the first line fits in every field, and the second in none."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Two decisions that have nothing in common, the later one first, and a result that has hardly any field."""
    first = taken(1, outcome=Outcome.DENY, mode=Mode.ENFORCE)
    second = taken(2**120, outcome=Outcome.ALLOW, mode=Mode.CHECK).model_copy(update={"point": "license"})
    with open_log(tmp_path / "state") as log:
        for made, episode, time, more in (
            (
                first,
                "e-1",
                OF_FIRST["since"],
                {"principal": "user:ana", "run": "run-1", "trace": "1" * 32, "request_id": "r-1"},
            ),
            (second, "e-2", TIME, {"principal": "user:lee", "run": "run-2", "trace": "2" * 32, "request_id": "r-2"}),
        ):
            document: dict[str, Any] = {"point": made.point, "episode": episode}
            log.append(DecisionRecord.of(made, time=time, document=document, versions=VERSIONS, durations={}, **more))
        log.append(ResultRecord(time=TIME, decision_id=f"{2**120:032x}", status="done", facts={}, duration=1))
    return tmp_path / "state"


def shown(found: Selection) -> list[int]:
    assert found.matching == len(found.entries)
    return [entry.seq for entry in found.entries]


def test_each_filter_field_selects_lines_with_its_value(state: Path) -> None:
    assert {*OF_FIRST, "until", "kind", "waived", "episodes"} == {field.name for field in fields(Filter)}
    assert shown(select(state, Filter(until=OF_FIRST["since"]), 10)) == [2, 3]
    assert shown(select(state, Filter(), 10)) == [1, 2, 3]
    for name, value in OF_FIRST.items():
        assert shown(select(state, Filter(**{name: value}), 10)) == [1], name
        assert shown(select(state, Filter(**{name: "3" + value[1:]}), 10)) == [], name
    assert shown(select(state, Filter(**OF_FIRST), 10)) == [1]
    assert shown(select(state, Filter(decision_id="0"), 10)) == [1, 2, 3]
    assert shown(select(state, Filter(decision_id="0" * 10), 10)) == [1]


def test_lines_are_filtered_by_kind_and_by_waiver(state: Path) -> None:
    with open_log(state) as log:
        made = taken(5)
        waived = [one.model_copy(update={"level": Level.WARN, "waiver": "terms"}) for one in made.findings]
        made = made.model_copy(update={"outcome": Outcome.ALLOW, "findings": tuple(waived)})
        log.append(DecisionRecord.of(made, time=TIME, document={}, versions=VERSIONS, durations={}))
    assert shown(select(state, Filter(kind="result"), 10)) == [3]
    assert shown(select(state, Filter(kind="decision"), 10)) == [1, 2, 4]
    assert shown(select(state, Filter(kind="policy"), 10)) == []
    (found,) = select(state, Filter(waived=True), 10).entries
    assert isinstance(found.body, DecisionRecord)
    assert {one.waiver for one in found.body.findings} == {"terms"}
    assert b'"waiver":null' not in (state / DECISIONS).read_bytes()


def test_decisions_on_episodes(state: Path) -> None:
    assert shown(select(state, Filter(episodes=("e-1",)), 10)) == [1]
    assert shown(select(state, Filter(episodes=("e-2", "e-1")), 10)) == [1, 2]
    assert shown(select(state, Filter(episodes=("e-",)), 10)) == []


def test_a_value_in_another_field_does_not_match(state: Path) -> None:
    with open_log(state) as log:
        made = taken(5, outcome=Outcome.ALLOW, mode=Mode.CHECK).model_copy(update={"point": "license"})
        hidden = {"input": {name: value for name, value in OF_FIRST.items() if name != "since"}}
        log.append(DecisionRecord.of(made, time=TIME, document=hidden, versions=VERSIONS, durations={}))
    for name, value in OF_FIRST.items():
        assert shown(select(state, Filter(**{name: value}), 10)) == [1], name


def test_a_line_that_cannot_fit_is_not_read(state: Path) -> None:
    whole = (state / DECISIONS).read_bytes()
    other = b'{"kind":"nothing of ours","time":"2026-11-01T00:00:00.000000Z"}\n'
    (state / DECISIONS).write_bytes(whole + other)
    here = Location(DECISIONS, 4)
    assert select(state, Filter(), 10).unreadable == (here,)  # the control: read, it is no record
    for name, value in OF_FIRST.items():
        assert select(state, Filter(**{name: value}), 10).unreadable == (), name
        like = b'{"%b":"%b","time":"%b"}\n' % (name.encode(), value.encode(), OF_FIRST["since"].encode())
        (state / DECISIONS).write_bytes(whole + like)
        assert select(state, Filter(**{name: value}), 10).unreadable == (here,), name
        (state / DECISIONS).write_bytes(whole + other)


def test_each_filter_field_admits_entries_independently(state: Path) -> None:
    first, second, _ = select(state, Filter(), 10).entries
    for name, value in OF_FIRST.items():
        assert (Filter(**{name: value}).admits(first), Filter(**{name: value}).admits(second)) == (True, False), name
    assert Filter().admits(second)


def test_without_a_filter_only_the_last_lines_are_read(state: Path) -> None:
    (state / DECISIONS).write_bytes(b"no record\n" + (state / DECISIONS).read_bytes())
    found = select(state, Filter(), 3)
    assert ([entry.seq for entry in found.entries], found.unreadable) == ([1, 2, 3], ())
    assert select(state, Filter(), 4).unreadable == (Location(DECISIONS, 1),)


def test_the_time_of_a_line_is_read_from_its_end() -> None:
    assert line_time(b'{"time":"2020-01-01T00:00:00.000000Z","x":1,"time":"%b"}' % TIME.encode()) == TIME
    assert line_time(b'{"x":1}') is None
    assert line_time(b"") is None


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.binary(max_size=4))
def test_reading_backwards_returns_the_lines_in_reverse_order(whole: list[bytes], rest: bytes) -> None:
    rest = rest.replace(b"\n", b"")
    data = b"".join(line + b"\n" for line in whole) + rest
    starts = accumulate((len(line) + 1 for line in whole), initial=0)
    placed = [(start, line) for start, line in zip(starts, whole, strict=False)]
    for size in (1, 2, 3, 7, 1 << 20):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lines, "_BACK", size)
            assert list(lines.backwards(io.BytesIO(data))) == placed[::-1]


def test_a_line_longer_than_any_of_ours_ends_the_reading() -> None:
    found = lines.backwards(io.BytesIO(b"x" * (LINE_BYTES + 2) + b"\nlast\n"))
    assert next(found)[1] == b"last"
    with pytest.raises(LineError, match="without a newline"):
        list(found)


@pytest.mark.full
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

"""The record page by page: in order, every decision once, at a bounded cost, whatever the cursor says."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from engine.errors import GatherError
from engine.record.layout import DECISIONS
from engine.record.model import DecisionRecord
from engine.record.pages import read_page
from engine.record.reader import Filter
from engine.record.standing import StandingLog
from tests.record.samples import NoState, clock, decision, result

ALL = Filter()


def at(number: int) -> DecisionRecord:
    return decision(number).model_copy(update={"time": f"2026-11-21T00:00:{number:02}.000000Z"})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Twelve decisions in three chains, one a second in turn, each with a result behind it."""
    folder = tmp_path / "state"
    with ExitStack() as stack:
        logs = [stack.enter_context(closing(StandingLog(folder, NoState, clock=clock))) for _ in range(3)]
        for number in range(1, 13):
            logs[number % 3].append(at(number))
            logs[number % 3].append(result(number).model_copy(update={"time": at(number).time}))
    return folder


def read(state: Path, most: int, most_bytes: int, filter_: Filter = ALL, cursor: str | None = None) -> list[list[int]]:
    """The numbers of the decisions of each page, to the last one."""
    pages = []
    while True:
        page = read_page(state, filter_, most, most_bytes, cursor)
        pages.append([int(entry.body.decision_id, 16) for entry in page.entries if entry.body.kind == "decision"])
        cursor = page.next
        if cursor is None:
            return pages


@pytest.mark.parametrize(("most", "most_bytes"), [(1, 1 << 20), (5, 1 << 20), (100, 1), (100, 3_000), (100, 1 << 20)])
def test_every_decision_is_on_one_page_the_newest_first(state: Path, most: int, most_bytes: int) -> None:
    pages = read(state, most, most_bytes)
    assert [number for page in pages for number in page] == list(range(12, 0, -1))
    assert max(map(len, pages)) <= most


def test_a_page_scans_no_more_bytes_than_allowed(state: Path) -> None:
    longest = max(len(line) for file in state.rglob("decisions.*.jsonl") for line in file.read_bytes().splitlines())
    nothing = Filter(principal="nobody")
    page = read_page(state, nothing, 100, 2_000, None)
    assert (page.entries, page.next is None) == ((), False)
    assert 2_000 <= page.bytes <= 2_000 + longest + 1
    assert read(state, 100, 2_000, nothing)[-1] == []


def test_a_time_filter_includes_its_start_and_excludes_its_end(state: Path) -> None:
    assert read(state, 100, 1 << 20, Filter(since=at(4).time, until=at(7).time)) == [[6, 5, 4]]
    assert read_page(state, Filter(since=at(12).time), 100, 1 << 20, None).bytes < 5_000  # and reads no further


def test_later_decisions_do_not_appear_on_pages_of_an_earlier_cursor(state: Path) -> None:
    first = read_page(state, ALL, 4, 1 << 20, None)
    with closing(StandingLog(state, NoState, clock=clock)) as log:
        log.append(at(13))
    assert read(state, 4, 1 << 20, cursor=first.next) == [[8, 7, 6, 5], [4, 3, 2, 1]]
    assert read(state, 1, 1 << 20)[0] == [13]


def test_a_line_that_is_not_whole_is_not_read(state: Path) -> None:
    with (state / DECISIONS).open("ab") as file:
        file.write(b'{"seq":9')
    assert read(state, 100, 1 << 20) == [list(range(12, 0, -1))]


def cursor_of(rows: object) -> str:
    return urlsafe_b64encode(json.dumps(rows).encode()).decode().rstrip("=")


def test_a_forged_cursor_shows_only_whole_decisions_of_the_record(state: Path) -> None:
    whole = {number for page in read(state, 100, 1 << 20) for number in page}
    size = (state / DECISIONS).stat().st_size
    for end in (*range(0, size + 2, 97), 2**52):
        for segment in (0, 1, 2**52):
            for page in read(state, 100, 1 << 20, cursor=cursor_of([[1, segment, end], [77, 1, 1]])):
                assert set(page) <= whole


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "AAAA",
        *map(cursor_of, [[1], [[1, 2]], [[1, -1, 2]], [[True, 1, 1]], [[1, 1.5, 2]], [[[], 1, 1]], [[1, 1, 1 << 53]]]),
    ],
)
def test_another_cursor_is_refused(state: Path, cursor: str) -> None:
    with pytest.raises(GatherError, match="the cursor was not issued by this engine"):
        read_page(state, ALL, 1, 1, cursor)

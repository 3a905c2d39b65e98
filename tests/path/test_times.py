"""Times as callers, people and the record write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.points.license import DecisionTaken
from engine.points.record_read import RecordReadRequest
from engine.state.rows import StopRow
from engine.times import moment, row_document, seconds, time_text, timestamp


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-21T00:00:00Z", 1_795_219_200),
        ("2024-02-29T23:59:59Z", 1_709_251_199),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
        ("2026-11-21T00:00:00+00:00", 1_795_219_200),
        ("2026-11-21T00:00:00-00:00", 1_795_219_200),
        ("2026-11-21t00:00:00z", 1_795_219_200),
        ("2026-11-21 00:00:00Z", 1_795_219_200),
        ("2026-11-21T00:00:00.999999999Z", 1_795_219_200),
        ("2026-11-21T02:00:00+02:00", 1_795_219_200),
    ],
)
def test_a_time_of_rfc_3339_is_read_as_an_instant(text: str, count: int) -> None:
    assert seconds(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T00:00:00",
        "2026-11-21T00:00Z",
        "2026-11-21",
        "2026-11-21T00:00:00.Z",
        "2026-11-21T00:00:00+0000",
        "2026-11-21T00:00:00+24:00",
        "2026-11-21T00:00:00+00:60",
        "2026-11-21T24:00:00Z",
        "2026-11-21T00:00:60Z",
        "2026-02-30T00:00:00Z",
        "1969-12-31T23:59:59.9Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "２026-11-21T00:00:00Z",  # noqa: RUF001
        "2026-11-21T00:00:00Z\n",
        "",
    ],
)
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        seconds(text)


def test_each_time_has_one_text() -> None:
    at = datetime(2026, 11, 21, 2, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(at) == timestamp(moment(at.isoformat())) == "2026-11-21T00:00:00.500000Z"
    assert time_text(at) == time_text(1_795_219_200) == "2026-11-21T00:00:00Z"
    assert moment(time_text(at)) == datetime(2026, 11, 21, tzinfo=UTC)
    assert time_text(2**53) == "after the year 9999"


def test_a_row_is_shown_with_its_times_as_text() -> None:
    shown = row_document(StopRow("all", "", "bob", 1_795_219_200, "1"))
    assert (shown["created_at"], shown["lifted_at"]) == ("2026-11-21T00:00:00Z", None)


@pytest.mark.parametrize("text", ["2026-11-21T09:30:00Z", "2026-11-21t09:30:00.0+00:00", "2026-11-21 10:30:00+01:00"])
def test_each_spelling_of_a_time_gives_the_same_input(text: str) -> None:
    taken = {"sha256": "a" * 64, "decision": "accepted", "decided_at": text}
    assert seconds(DecisionTaken.model_validate(taken).decided_at) == 1_795_253_400
    assert RecordReadRequest(whose="own", since=text, limit=1).since == "2026-11-21T09:30:00.000000Z"

"""What a subagent said: bounded, whole lines, cut on a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_adapters.subagents.process import HistoryLimits, Transcript
from admission_adapters.tools.outcome import cut


def kept(data: bytes, limits: HistoryLimits = HistoryLimits(), piece: int = 7) -> Transcript:  # noqa: B008  (frozen)
    transcript = Transcript(limits)
    for at in range(0, len(data), piece):
        transcript.feed(data[at : at + piece])
    transcript.close()
    return transcript


# covers: B20
@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("aé", 2, "a"),
        ("aé", 3, "aé"),
        ("é", 1, ""),
        ("ab€", 4, "ab"),
        ("a😀b", 4, "a"),
        ("a😀b", 5, "a😀"),
        ("e\u0301", 2, "e"),
        ("", 1, ""),
    ],
)
def test_a_line_is_cut_between_two_characters(text: str, limit: int, wanted: str) -> None:
    assert cut(text.encode(), limit) == wanted


# covers: B20.1
@given(text=st.text(), limit=st.integers(1, 30))
def test_a_truncated_line_is_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    got = cut(text.encode(), limit)
    assert text.startswith(got)
    assert len(got.encode()) <= limit
    assert got == text or len(text[: len(got) + 1].encode()) > limit


# covers: B19
def test_the_last_turns_are_returned_oldest_first() -> None:
    transcript = kept(b"".join(b"turn %d\n" % number for number in range(60)))
    assert transcript.count == 60
    assert transcript.last(50, 100) == tuple(f"turn {number}" for number in range(10, 60))
    assert transcript.last(1, 100) == ("turn 59",)
    assert transcript.last(1000, 4) == ("turn",) * 60
    assert transcript.last(0, 100) == ()


def test_a_transcript_keeps_a_bounded_number_of_turns_and_bytes() -> None:
    transcript = kept(
        b"".join(b"%d" % number * 100 + b"\n" for number in range(9)), HistoryLimits(turns=3, line_bytes=10)
    )
    assert transcript.last(50, 100) == ("6" * 10, "7" * 10, "8" * 10)
    assert transcript.count == 9
    endless = kept(b"x" * 1_000_000, HistoryLimits(line_bytes=10), piece=65_536)
    assert endless.last(1, 100) == ("x" * 10,)


@given(data=st.binary(max_size=60), piece=st.integers(1, 9))
def test_a_transcript_does_not_depend_on_the_piece_size(data: bytes, piece: int) -> None:
    transcript = kept(data, piece=piece)
    whole = kept(data, piece=100)
    assert transcript.last(100, 1000) == whole.last(100, 1000)
    assert transcript.count == whole.count
    assert "".join(transcript.last(100, 1000)).encode() is not None  # always has a UTF-8 form


def test_invalid_utf_8_is_replaced_and_truncation_keeps_whole_characters() -> None:
    assert kept(b"a\xffb\r\n\nlast").last(9, 99) == ("a\ufffdb", "", "last")
    assert kept("aé".encode(), HistoryLimits(line_bytes=2)).last(9, 99) == ("a",)


def test_a_reader_that_waits_for_the_first_turn_is_notified() -> None:
    transcript = Transcript(HistoryLimits())
    transcript.feed(b"no end yet")
    assert not transcript.spoken.is_set()
    transcript.feed(b"\n")
    assert transcript.spoken.is_set()
    silent = kept(b"")
    assert silent.spoken.is_set()
    assert silent.count == 0

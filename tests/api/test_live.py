"""What a program prints, shown while it runs: whole lines, without secrets, in any pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.live import LiveText
from engine.secrets.redaction import redact_text

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nqwertyuiop\n-----END PRIVATE KEY-----\n"
TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
PRINTED = f"première\n{KEY}then {TOKEN} and\r 50 %\r100 %\nno end"


def shown(*pieces: bytes) -> list[str]:
    text = LiveText()
    return [*(text.take(piece) for piece in pieces), text.take(b"", last=True)]


@given(st.lists(st.integers(0, len(PRINTED.encode())), max_size=8))
def test_output_in_arbitrary_pieces_is_redacted_as_a_whole(cuts: list[int]) -> None:
    data, places = PRINTED.encode(), [0, *sorted(cuts), len(PRINTED.encode())]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert "".join(shown(*pieces)) == redact_text(PRINTED)


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ((b"one\ntw", b"o\n"), ["one\n", "two\n", ""]),
        ((b"\xc3", b"\xa9\n"), ["", "\u00e9\n", ""]),
        ((b"\xff\n",), ["\ufffd\n", ""]),
        ((b"10 %\r",), ["10 %\r", ""]),
    ],
)
def test_a_line_is_shown_when_it_ends(pieces: tuple[bytes, ...], wanted: list[str]) -> None:
    assert shown(*pieces) == wanted


def test_a_secret_over_several_lines_waits_for_its_end() -> None:
    lines = [line.encode() for line in KEY.splitlines(keepends=True)]
    *begun, end, _ = shown(*lines)
    assert begun == [""] * (len(lines) - 1)
    assert end.startswith("[redacted:")

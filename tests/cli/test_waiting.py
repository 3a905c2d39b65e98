"""Progress of long work: nothing at first, then once a second, and never in the way."""

from __future__ import annotations

import sys
import time

import pytest

from engine.cli.waiting import Waiting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_it_tells_from_the_second_second_on_once_a_second(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    told = Waiting("decisions read")
    for moment, count in ((0.5, 10), (1.9, 20), (2.0, 1_000), (2.5, 1_500), (3.0, 2_000)):
        clock[0] = 100.0 + moment
        told.done(count)
    told.end()
    assert capsys.readouterr() == ("", "decisions read: 1,000\ndecisions read: 2,000\n")


def test_on_a_terminal_it_leaves_no_line_behind(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = Waiting("decisions read")
    told.end()
    assert capsys.readouterr().err == ""
    clock[0] += 2
    told.done(5)
    told.end()
    assert capsys.readouterr().err == "\r\x1b[Kdecisions read: 5\r\x1b[K"


def test_nobody_who_listens_is_no_reason_to_stop(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: str) -> int:
        raise OSError(5, "closed")

    told = Waiting("decisions read")
    clock[0] += 2
    monkeypatch.setattr(sys.stderr, "write", closed)
    told.done(5)
    told.end()

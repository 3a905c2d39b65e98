"""Progress of long work: nothing at first, then once a second, and never in the way."""

from __future__ import annotations

import sys
import threading
import time
from contextvars import copy_context

import pytest

from engine.cli import terminal
from engine.cli.waiting import Waiting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_progress_is_reported_once_a_second_from_the_second_second_on(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Waiting() as waiting:
        for moment, count in ((0.5, 10), (1.9, 20), (2.0, 1_000), (2.5, 1_500), (3.0, 2_000)):
            clock[0] = 100.0 + moment
            waiting.show(f"{count:,} read")
    assert capsys.readouterr() == ("", "1,000 read\n2,000 read\n")


def test_on_a_terminal_it_leaves_no_line_behind(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Waiting() as waiting:
        pass
    assert capsys.readouterr().err == ""
    with waiting:
        clock[0] += 2
        waiting.show("5 read")
    assert capsys.readouterr().err == "\r\x1b[K5 read\r\x1b[K"


def test_quiet_holds_in_other_threads(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        terminal._choose_quiet(chosen=True)
        with Waiting() as waiting:
            clock[0] += 2
            thread = threading.Thread(target=waiting.show, args=("5 read",))
            thread.start()
            thread.join()

    copy_context().run(work)
    assert capsys.readouterr().err == ""

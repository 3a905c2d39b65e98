"""The thread that watches work in progress."""

from __future__ import annotations

import sys
import threading
from typing import NoReturn
from unittest.mock import Mock

import pytest

from engine.model import StopSignal
from engine.running import Running


def never(*_: object) -> NoReturn:
    raise AssertionError("nothing is looked up while no work is in progress")


def test_closing_never_loses_its_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads change places as often as they can, so that a wake-up that can be lost is lost, and no look ends it."""
    monkeypatch.setattr("engine.running._LOOK_SECONDS", 3600)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(500):
            running = Running(never, never)
            with running.watching(StopSignal(), [], lambda *_: True):
                pass
            closing = threading.Thread(target=running.close, daemon=True)
            closing.start()
            closing.join(60)
            assert not closing.is_alive()
    finally:
        sys.setswitchinterval(before)


def test_an_unexpected_exception_of_the_watcher_ends_work_but_not_the_watching() -> None:
    """A thread that ended would watch nothing for as long as the engine runs."""

    def broken(*_: object) -> NoReturn:
        raise RuntimeError("unforeseen")

    unreadable, asked = (Running(never, opened) for opened in (broken, lambda: Mock(stops_in_force=lambda: (Mock(),))))
    for running, allowed in ((unreadable, never), (asked, broken)):
        for _ in range(2):
            with running.watching(signal := StopSignal(), [], allowed):
                assert signal.wait(60)
        running.close()

"""The thread that watches work under way."""

from __future__ import annotations

import sys
import threading
from typing import NoReturn

import pytest

from engine.model import StopSignal
from engine.running import Running


def never() -> NoReturn:
    raise AssertionError("nothing is looked up while no work is under way")


def test_it_is_closed_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
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

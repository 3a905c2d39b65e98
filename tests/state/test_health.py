"""The last result of a check that may block: how old it may be, who waits for it, and when it counts as failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from engine.state import health
from engine.state.health import HealthCheck
from tests.expect import there
from tests.processes import until

NEVER = 3600.0


class Component:
    """Works or not, and blocks while its gate is closed."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.good = True
        self.looks = 0

    def look(self) -> bool:
        self.looks += 1
        self.gate.wait()
        if not self.good:
            raise OSError("it is gone")
        return True


@pytest.fixture
def component() -> Iterator[Component]:
    one = Component()
    yield one
    one.gate.set()


def test_the_first_caller_waits_for_the_result(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_BOUND_SECONDS", NEVER)
    good, age = HealthCheck(component.look).last()
    assert good
    assert 0 <= age < NEVER


def test_a_result_is_used_until_it_is_old(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_BOUND_SECONDS", NEVER)
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", NEVER)
    monkeypatch.setattr(health, "_FRESH_SECONDS", NEVER)
    check = HealthCheck(component.look)
    check.last()
    component.good = False
    assert check.last()[0]
    assert component.looks == 1
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)
    assert not check.last()[0]
    assert component.looks == 2
    component.good = True
    assert check.last()[0]


def test_an_older_result_is_used_until_a_blocked_check_is_overdue(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_BOUND_SECONDS", NEVER)
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)
    check = HealthCheck(component.look)
    check.last()
    component.gate.clear()
    assert [check.last()[0], check.last()[0]] == [True, True]
    assert component.looks == 2  # one check at a time
    monkeypatch.setattr(health, "_BOUND_SECONDS", -1.0)
    assert not check.last()[0]
    monkeypatch.setattr(health, "_BOUND_SECONDS", NEVER)
    component.gate.set()
    until(lambda: check.last()[0])


def test_a_blocked_first_check_counts_as_failed(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_BOUND_SECONDS", 0.01)
    component.gate.clear()
    assert not HealthCheck(component.look).last()[0]


def test_no_caller_waits_again_for_a_check_that_timed_out(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_BOUND_SECONDS", 0.01)
    component.gate.clear()
    check = HealthCheck(component.look)
    check.last()
    running = there(check._running)
    check._running = _NeverWaited(), running[1] - 1
    assert not check.last()[0]


class _NeverWaited(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        raise AssertionError(timeout)


def test_without_another_thread_it_counts_as_failed(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    assert not HealthCheck(component.look).last()[0]
    assert component.looks == 0

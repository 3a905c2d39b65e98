"""Threads that wait for the same row are served together: each gets its own result, and nobody the fault of another."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from engine.errors import StateError
from engine.state.postgres.combining import Combined, _Job
from engine.state.postgres.faults import OneFaultError
from tests.processes import until
from tests.state.samples import SECONDS, together

BROKEN = 13


class Squares:
    """Squares numbers, once it may; a number that is broken spoils the whole run."""

    def __init__(self, fault: type[StateError] = OneFaultError) -> None:
        self.runs: list[list[int]] = []
        self.go_on = threading.Event()
        self._fault = fault

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.runs.append(list(items))
        assert self.go_on.wait(SECONDS)
        if BROKEN in items:
            raise self._fault("broken", remedy="none")
        return [item * item for item in items]


def test_operations_queued_during_a_run_are_batched_with_separate_results() -> None:
    squares = Squares()
    combined = Combined(squares, 5)
    with ThreadPoolExecutor(16) as pool:
        first = pool.submit(combined, 1)
        until(lambda: squares.runs == [[1]])
        others = [pool.submit(combined, number) for number in range(2, 14) if number != BROKEN]
        until(lambda: len(combined._waiting) == len(others))
        squares.go_on.set()
        assert [one.result(SECONDS) for one in (first, *others)] == [number**2 for number in range(1, 13)]
    assert [len(run) for run in squares.runs] == [1, 5, 5, 1]
    assert combined(7) == 49  # nobody is waited for any more


def test_a_fault_of_one_item_fails_only_that_item() -> None:
    squares = Squares()
    combined = Combined(squares, 100)
    with ThreadPoolExecutor(16) as pool:
        first = pool.submit(combined, 1)
        until(lambda: squares.runs == [[1]])
        others = {number: pool.submit(combined, number) for number in (2, BROKEN, 3)}
        until(lambda: len(combined._waiting) == len(others))
        squares.go_on.set()
        assert (first.result(SECONDS), others[2].result(SECONDS), others[3].result(SECONDS)) == (1, 4, 9)
        with pytest.raises(OneFaultError, match="broken"):
            others[BROKEN].result(SECONDS)
    assert sorted(map(len, squares.runs)) == [1, 1, 1, 1, 3]


def test_a_lost_database_fails_the_whole_batch_without_a_retry() -> None:
    squares = Squares(StateError)
    squares.go_on.set()
    combined = Combined(squares, 100)

    def work(_: int) -> bool:
        try:
            combined(BROKEN)
        except StateError:
            return True
        return False

    assert together(32, work) == [True] * 32
    assert sum(map(len, squares.runs)) == 32  # each item once
    assert combined(3) == 9


def test_many_threads_lose_nothing() -> None:
    squares = Squares()
    squares.go_on.set()
    combined = Combined(squares, 7)

    def work(number: int) -> bool:
        return [combined(1000 + 100 * number + count) for count in range(50)] == [
            (1000 + 100 * number + count) ** 2 for count in range(50)
        ]

    assert together(24, work) == [True] * 24
    assert max(map(len, squares.runs)) <= 7


class InterruptedCallError(BaseException):
    """As Ctrl-C, which nobody may swallow."""


@pytest.mark.parametrize("apart", [False, True])
def test_those_whose_leader_is_interrupted_get_an_error_and_no_result(apart: bool) -> None:  # noqa: FBT001
    leading, go_on = threading.Event(), threading.Event()

    def run(items: Sequence[int]) -> list[int]:
        if items == [1]:
            leading.set()
            assert go_on.wait(SECONDS)
            return [1]
        if apart and len(items) > 1:
            raise OneFaultError("broken", remedy="none")
        raise InterruptedCallError

    combined = Combined(run, 5)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(combined, 1)
        assert leading.wait(SECONDS)
        others = [pool.submit(combined, number) for number in (2, 3, 4)]
        until(lambda: len(combined._waiting) == len(others))
        go_on.set()
        assert first.result(SECONDS) == 1
        faults = [one.exception(SECONDS) for one in others]
    assert sorted(type(one).__name__ for one in faults) == ["InterruptedCallError", "StateError", "StateError"]


def test_a_waiter_that_is_interrupted_blocks_no_other_caller() -> None:
    squares = Squares()
    combined = Combined(squares, 5)
    main, interrupted = threading.main_thread().ident, threading.Event()
    assert main is not None

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise InterruptedCallError

    def send() -> None:
        until(lambda: len(combined._waiting) == 1)
        while not interrupted.is_set():  # a signal right before a thread begins to wait does not wake it
            signal.pthread_kill(main, signal.SIGUSR1)
            interrupted.wait(0.01)

    def call(item: int) -> Future[int]:
        """Call in a thread that holds up nobody, should it wait for ever."""
        found: Future[int] = Future()
        threading.Thread(target=lambda: found.set_result(combined(item)), daemon=True).start()
        return found

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        first = call(1)
        until(lambda: squares.runs == [[1]])
        threading.Thread(target=send, daemon=True).start()
        with pytest.raises(InterruptedCallError):
            combined(2)
        squares.go_on.set()
        assert (first.result(SECONDS), call(3).result(SECONDS)) == (1, 9)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupted_leader_hands_over_to_the_next_waiter() -> None:
    combined = Combined(Squares(), 5)
    first, second, third = (_Job(number) for number in (1, 2, 3))
    combined._leader, combined._waiting = first, [second, third]
    combined._leave(second)
    assert (combined._leader, combined._waiting) == (first, [third])
    combined._leave(second)  # its batch runs
    assert (combined._leader, combined._waiting) == (first, [third])
    combined._leave(first)
    assert (combined._leader, third.turn.locked()) == (third, False)

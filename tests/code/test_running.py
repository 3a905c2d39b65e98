"""Who runs and who waits: places, turns of several callers, and how much one of them gets."""

from __future__ import annotations

import uuid
from contextlib import ExitStack

import pytest

from engine.code.running import Running, RunWatcher, Ticket
from engine.errors import EngineError
from engine.model import Caller, Via

PIPELINE = Caller(via=Via.PROCESS)


def named(name: str) -> Caller:
    return Caller(via=Via.TOKEN, principal=name)


def enter(running: Running, stack: ExitStack, caller: Caller) -> Ticket:
    return stack.enter_context(running.slot(str(uuid.uuid4()), caller, RunWatcher(), 0))


def test_callers_are_served_in_turn() -> None:
    running = Running(1, 8)
    with ExitStack() as first, ExitStack() as second, ExitStack() as rest:
        ada = enter(running, first, named("ada"))
        again, bob = enter(running, second, named("ada")), enter(running, rest, named("bob"))
        assert [one.place for one in (ada, again, bob)] == [0, 2, 1]  # ada has one already
        first.close()
        assert [one.place for one in (again, bob)] == [0, 1]  # now neither has one, and hers came first
        second.close()
        assert bob.place == 0


def test_one_caller_gets_half_of_the_slots_and_the_process_itself_all() -> None:
    with ExitStack() as stack:
        running = Running(4, 4)
        assert [enter(running, stack, named("ada")).place for _ in range(4)] == [0, 0, 1, 2]
        with pytest.raises(EngineError, match="the queue is full"):
            enter(running, stack, named("ada"))
        assert enter(running, stack, named("bob")).place == 0
        assert len(running.of(named("ada"))) == 4
    with ExitStack() as stack:
        running = Running(2, 1)
        assert [enter(running, stack, PIPELINE).place for _ in range(3)] == [0, 0, 1]
        with pytest.raises(EngineError, match="the queue is full"):
            enter(running, stack, PIPELINE)


def test_a_run_that_leaves_the_queue_moves_the_others_on() -> None:
    running, places = Running(1, 8), list[int]()
    with ExitStack() as first, ExitStack() as gone, ExitStack() as last:
        enter(running, first, PIPELINE)
        enter(running, gone, PIPELINE)
        last.enter_context(running.slot(str(uuid.uuid4()), PIPELINE, RunWatcher(on_place=places.append), 0))
        gone.close()
        assert places == [2, 1]
        first.close()
        assert places == [2, 1]  # it has begun
        assert [one.place for one in running.of(PIPELINE)] == [0]

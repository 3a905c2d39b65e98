"""Many callers, one sync: batches form while the one before is on its way, and every caller gets its own answer."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.errors import RecordError
from engine.record import commit as commit_module
from engine.record import log as log_module
from engine.record.layout import DECISIONS, EVENTS
from engine.record.log import RecordLog
from engine.record.storage import Storage
from engine.record.verify import verify
from tests.expect import there
from tests.processes import until
from tests.record.samples import decision, event, numbers, open_log

PATIENCE = 20.0  # seconds until something that never comes is called a failure


class Gated(Storage):
    """Holds up the sync of decisions while the gate is shut; counts what is done to each file."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        self.syncs: list[str] = []
        self.writes: list[tuple[str, int]] = []
        self.error: Exception | None = None
        self.released: list[bool] = []
        """Each time that all files were let go of: whether nothing was being written."""

    def release_all(self) -> None:
        self.released.append(self.gate.is_set())
        super().release_all()

    def append(self, path: str, data: bytes) -> None:
        super().append(path, data)
        self.writes.append((path, data.count(b"\n")))

    def sync(self, path: str) -> None:
        if path == DECISIONS:
            self.waiting.set()
            assert self.gate.wait(PATIENCE)
            if self.error is not None:
                raise self.error
        super().sync(path)
        self.syncs.append(path)


@contextmanager
def gated(state: Path) -> Iterator[tuple[RecordLog, Gated]]:
    storage = Gated(state)
    log = open_log(storage)
    storage.syncs.clear()
    storage.writes.clear()
    try:
        yield log, storage
    finally:
        storage.gate.set()
        log.close()


def queue_of(log: RecordLog, count: int) -> None:
    """Wait until so many lines are queued."""
    until(lambda: len(log._commits._queue) == count)


class Caller(threading.Thread):
    """A thread that appends one decision and keeps what came of it."""

    def __init__(self, log: RecordLog, number: int, events: int = 0) -> None:
        super().__init__(daemon=True)
        self.log, self.number, self.events = log, number, events
        self.seq: int | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.seq = self.log.append(decision(self.number), (event(self.number),) * self.events)
        except BaseException as error:  # noqa: BLE001 (looked at by the test)
            self.error = error


def held(log: RecordLog, storage: Gated) -> Caller:
    """Shut the gate, and wait until a first line is held up at it."""
    storage.gate.clear()
    first = Caller(log, 1)
    assert storage.waiting.wait(PATIENCE)
    return first


async def held_by_a_task(log: RecordLog, storage: Gated) -> asyncio.Task[int]:
    """`held` by a task of an event loop."""
    storage.gate.clear()
    first = asyncio.create_task(log.append_async(decision(1)))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(storage.waiting.wait, PATIENCE)
    return first


def ended(threads: Iterable[threading.Thread]) -> None:
    """Wait for the end of them all."""
    for one in threads:
        one.join(PATIENCE)
        assert not one.is_alive()


def let_go(storage: Gated, threads: Iterable[threading.Thread]) -> None:
    """Open the gate, and wait for the end of all."""
    storage.gate.set()
    ended(threads)


def test_callers_that_wait_share_one_write_and_one_sync(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        first = held(log, storage)
        others = [Caller(log, number, events=number % 2) for number in range(2, 42)]
        queue_of(log, 40)
        assert all(one.seq is None for one in (first, *others))
        let_go(storage, (first, *others))
    assert sorted(one.seq or 0 for one in (first, *others)) == list(range(1, 42))
    assert storage.syncs[:3] == [DECISIONS, EVENTS, DECISIONS]
    assert storage.writes[:3] == [(DECISIONS, 1), (EVENTS, 20), (DECISIONS, 40)]
    assert verify(tmp_path / "state").records == 41


def test_threads_and_tasks_share_one_queue_and_the_loop_goes_on(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):

        async def tasks() -> list[int]:
            waiting = [await held_by_a_task(log, storage)]
            waiting += [asyncio.create_task(log.append_async(decision(number), (event(1),))) for number in range(2, 12)]
            callers = [Caller(log, number) for number in range(20, 30)]
            await asyncio.to_thread(queue_of, log, 20)
            assert not any(task.done() for task in waiting)
            storage.gate.set()  # said by the loop itself, which therefore was not held up
            told = await asyncio.gather(*waiting)
            await asyncio.to_thread(ended, callers)
            return told + [one.seq or 0 for one in callers]

        assert sorted(asyncio.run(tasks())) == list(range(1, 22))
    assert storage.syncs[:3] == [DECISIONS, EVENTS, DECISIONS]
    assert sorted(numbers(tmp_path / "state")) == [*range(1, 12), *range(20, 30)]
    assert verify(tmp_path / "state").ok


def workers() -> Callable[[], int]:
    """Counts the threads of records that were started since then and go on."""
    others = set(threading.enumerate())
    return lambda: sum(one.name == "record" for one in set(threading.enumerate()) - others)


def test_a_single_thread_needs_no_worker(tmp_path: Path) -> None:
    started = workers()
    with open_log(tmp_path / "state") as log:
        for number in range(1, 20):
            log.append(decision(number))
        assert started() == 0
        asyncio.run(log.append_async(decision(20)))
        assert started() == 1  # from the first event loop on
    assert started() == 0


def test_a_batch_has_an_upper_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_module, "BATCH_RECORDS", 4)
    with gated(tmp_path / "state") as (log, storage):
        callers = [held(log, storage), *(Caller(log, number) for number in range(2, 12))]
        queue_of(log, 10)
        let_go(storage, callers)
    assert [lines for path, lines in storage.writes if path == DECISIONS] == [1, 4, 4, 2]
    assert verify(tmp_path / "state").records == 11


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(5, "Input/output error"), "cannot be written: input/output error"),
        (MemoryError(), "closed after a failure"),
    ],
)
def test_a_failed_sync_fails_every_waiter_and_closes_the_log(error: Exception, told: str, tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):

        async def tasks() -> list[Any]:
            first = await held_by_a_task(log, storage)
            more = [asyncio.create_task(log.append_async(decision(number))) for number in (2, 3)]
            callers = [Caller(log, number) for number in (4, 5)]
            await asyncio.to_thread(queue_of, log, 4)
            storage.error = error
            storage.gate.set()
            failed = await asyncio.gather(first, *more, return_exceptions=True)
            await asyncio.to_thread(ended, callers)
            return [*failed, *(one.error for one in callers)]

        usable = [log.usable]
        errors = asyncio.run(tasks())
        assert [type(one) for one in errors] == [RecordError] * 5
        assert all(told in str(one) for one in errors)
        assert [*usable, log.usable] == [True, False]
        storage.error = None
        before = list(storage.writes)
        with pytest.raises(RecordError, match="closed after a failure"):
            log.append(decision(6))
        with pytest.raises(RecordError, match="closed after a failure"):
            asyncio.run(log.append_async(decision(7)))
        assert storage.writes == before
    with open_log(tmp_path / "state") as again:
        again.append(decision(8))
    assert verify(tmp_path / "state").ok


def test_a_cancelled_waiter_neither_loses_nor_doubles_its_record(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):

        async def tasks() -> None:
            first = await held_by_a_task(log, storage)
            second, third = (asyncio.create_task(log.append_async(decision(number))) for number in (2, 3))
            await asyncio.sleep(0)
            first.cancel()
            second.cancel()
            storage.gate.set()
            assert await third == 3
            assert first.cancelled()
            assert second.cancelled()

        asyncio.run(tasks())
        assert log.append(decision(4)) == 4
    assert numbers(tmp_path / "state") == [1, 2, 3, 4]
    assert verify(tmp_path / "state").ok


def test_a_closed_event_loop_does_not_block_other_callers(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):

        async def leave() -> None:
            (await held_by_a_task(log, storage)).cancel()

        asyncio.run(leave())
        caller = Caller(log, 2)
        queue_of(log, 1)
        let_go(storage, [caller])
        assert caller.seq == 2
    assert numbers(tmp_path / "state") == [1, 2]


def test_a_body_that_cannot_be_written_fails_only_its_own_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "LINE_BYTES", 2_000)

    async def tasks(log: RecordLog) -> list[Any]:
        bodies = [decision(1), decision(2, {"a": float("nan")}), decision(3, {"words": ["word"] * 1000}), decision(4)]
        return await asyncio.gather(*(log.append_async(body) for body in bodies), return_exceptions=True)

    with open_log(tmp_path / "state") as log:
        told = asyncio.run(tasks(log))
        assert told[0::3] == [1, 2]
        assert ["cannot be written as JSON" in str(told[1]), "longer than 2000 bytes" in str(told[2])] == [True, True]
        assert log.usable
    assert numbers(tmp_path / "state") == [1, 4]


def test_closing_waits_for_what_is_queued_and_refuses_the_rest(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        callers = [held(log, storage), Caller(log, 2)]
        queue_of(log, 1)
        closing = threading.Thread(target=log.close)
        closing.start()
        until(lambda: not log.usable)
        with pytest.raises(RecordError):
            log.append(decision(3))
        let_go(storage, (closing, *callers))
        assert [one.seq for one in callers] == [1, 2]
    assert numbers(tmp_path / "state") == [1, 2]


class Interrupted(BaseException):
    """As Ctrl-C, which nobody may swallow."""


def interrupted_append(log: RecordLog, number: int) -> None:
    """Append from the main thread, and be interrupted while the line waits in the queue."""
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise Interrupted

    main = there(threading.main_thread().ident)

    def send() -> None:
        queue_of(log, 1)
        until(lambda: log._commits._queue[0].held is not None)
        until(lambda: not log._commits._queue[0].joining)  # interrupted in the middle of joining, it closes the log
        while not interrupted.is_set():  # a signal right before a thread begins to wait does not wake it
            signal.pthread_kill(main, signal.SIGUSR1)
            interrupted.wait(0.01)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        sender = threading.Thread(target=send)
        sender.start()
        with pytest.raises(Interrupted):
            log.append(decision(number))
        sender.join(PATIENCE)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_waiting_thread_that_is_interrupted_leaves_and_the_others_go_on(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        first = held(log, storage)
        interrupted_append(log, 2)
        let_go(storage, [first])
        assert log.append(decision(3)) == 3
    assert numbers(tmp_path / "state") == [1, 2, 3]
    assert verify(tmp_path / "state").ok


@contextmanager
def no_more_threads() -> Iterator[None]:
    """No stack of this size can be had, so that no thread can be started."""
    before = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(before)


def closes(log: RecordLog) -> bool:
    """Whether closing comes to an end."""
    closing = threading.Thread(target=log.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    return not closing.is_alive()


def test_a_worker_that_cannot_start_fails_those_who_need_it_and_closing_ends(tmp_path: Path) -> None:
    async def append() -> int:
        return await asyncio.wait_for(log.append_async(decision(2)), PATIENCE)

    log = open_log(tmp_path / "state")
    log.append(decision(1))
    with no_more_threads(), pytest.raises(RecordError, match="no more threads"):
        asyncio.run(append())
    with pytest.raises(RecordError, match="closed after a failure"):
        log.append(decision(3))
    assert closes(log)
    with open_log(tmp_path / "state") as again:
        again.append(decision(4))
        asyncio.run(again.append_async(decision(5)))  # the control: a worker that can start
    assert numbers(tmp_path / "state") == [1, 4, 5]
    assert verify(tmp_path / "state").ok


def test_a_queued_line_without_a_worker_fails_and_the_durable_one_succeeds(tmp_path: Path) -> None:
    storage = Gated(tmp_path / "state")
    log = open_log(storage)
    first = held(log, storage)
    interrupted_append(log, 2)
    with no_more_threads():
        let_go(storage, [first])
    assert (first.seq, first.error) == (1, None)
    assert not log.usable
    assert closes(log)
    assert numbers(tmp_path / "state") == [1]


@pytest.mark.parametrize("how", ["thread", "task"])
def test_a_fork_may_not_write(tmp_path: Path, how: str) -> None:
    with open_log(tmp_path / "state") as log:
        log.append(decision(1))
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if how == "thread":
                    log.append(decision(2))
                else:
                    log.append_async(decision(2)).send(None)
            except RecordError as error:
                os.write(theirs, error.message.encode())
                log.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            assert pipe.read() == "this record was opened in another process"
        assert log.append(decision(3)) == 2
    assert verify(tmp_path / "state").ok


@pytest.mark.full
def test_many_threads_and_tasks_at_once(tmp_path: Path) -> None:
    with open_log(tmp_path / "state") as log:
        told: list[int] = []

        def thread(start: int) -> None:
            told.extend([log.append(decision(start + step)) for step in range(50)])

        async def tasks() -> None:
            async def one(start: int) -> None:
                for step in range(50):
                    told.extend([await log.append_async(decision(start + step))])

            await asyncio.gather(*(one(10_000 + 100 * task) for task in range(16)))

        threads = [threading.Thread(target=thread, args=(100 * index,)) for index in range(8)]
        for worker in threads:
            worker.start()
        asyncio.run(tasks())
        ended(threads)
    assert sorted(told) == list(range(1, 24 * 50 + 1))
    assert len(set(numbers(tmp_path / "state"))) == 24 * 50
    assert verify(tmp_path / "state").ok


def test_lines_of_one_caller_share_one_sync_and_fail_individually(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        bodies: list[Any] = [(decision(number), (event(number),)) for number in (1, 2)]
        told = log.append_many([*bodies, (decision(3, {"a": float("nan")}), ()), (decision(4), ())])
        assert [one if isinstance(one, int) else one.code for one in told] == [1, 2, "engine.record_unavailable", 3]
        assert storage.writes == [(EVENTS, 2), (DECISIONS, 3)]
        assert log.append_many([]) == []
        storage.error = OSError(28, "No space left on device")
        failed = log.append_many([(decision(5), ()), (decision(6), ())])
        assert ["no space left" in str(one) for one in failed] == [True, True]
        later = log.append_many([(decision(7), ()), (decision(8), ())])
        assert ["closed after a failure" in str(one) for one in later] == [True, True]
    assert numbers(tmp_path / "state")[:3] == [1, 2, 4]


def test_concurrent_close_calls_wait_for_queued_lines(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        callers = [held(log, storage), Caller(log, 2)]
        queue_of(log, 1)
        closing = [threading.Thread(target=close, daemon=True) for close in (log.close, log.leave, log._commits.close)]
        for one in closing:
            one.start()
            until(lambda: log._commits._idle is not None)
        assert not log.usable
        let_go(storage, (*closing, *callers))
        assert [one.seq for one in callers] == [1, 2]


def test_loops_one_after_the_other_share_one_worker(tmp_path: Path) -> None:
    started = workers()
    with open_log(tmp_path / "state") as log:
        for number in (1, 2, 3):
            assert asyncio.run(log.append_async(decision(number))) == number
        assert started() == 1
    assert started() == 0


def test_a_batch_takes_exactly_its_bytes_and_a_longer_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gated(tmp_path / "state") as (log, storage):
        callers = [held(log, storage)]
        for number in range(2, 9):
            callers.append(Caller(log, number, events=1))
            queue_of(log, len(callers) - 1)
        each = {len(one.line) + len(one.events) for one in log._commits._queue}
        assert len(each) == 1
        monkeypatch.setattr(commit_module, "BATCH_BYTES", 3 * each.pop())
        let_go(storage, callers)
        assert [lines for path, lines in storage.writes if path == DECISIONS] == [1, 3, 3, 1]
        monkeypatch.setattr(commit_module, "BATCH_BYTES", 1)
        assert log.append_many([(decision(number), ()) for number in (20, 21)]) == [9, 10]
        assert [lines for path, lines in storage.writes if path == DECISIONS][4:] == [1, 1]


def test_an_action_is_a_batch_of_its_own_between_those_of_lines(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        threads: list[threading.Thread] = [held(log, storage)]
        seen: list[int] = []

        def look() -> None:
            log.between_batches(lambda writer: seen.append(writer.opened.end.seq))

        def refuse() -> None:
            def action(_: object) -> None:
                raise RecordError("not now", remedy="none")

            with pytest.raises(RecordError, match="not now"):
                log.between_batches(action)
            seen.append(-1)

        for step in (2, 3, look, look, refuse, 4, 5, look):
            threads.append(Caller(log, step) if isinstance(step, int) else threading.Thread(target=step))
            if not isinstance(step, int):
                threads[-1].start()
            queue_of(log, len(threads) - 1)
        let_go(storage, threads)
        assert sorted(seen) == [-1, 3, 3, 5]
        assert [lines for path, lines in storage.writes if path == DECISIONS] == [1, 2, 2]
        assert log.usable
    assert verify(tmp_path / "state").records == 5


def test_closing_comes_back_when_all_that_is_queued_is_durable(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        callers = [held(log, storage), Caller(log, 2)]
        queue_of(log, 1)
        closed = threading.Event()

        def open_gate() -> None:
            until(lambda: not log.usable)
            closed.wait(0.5)  # too early, if ever
            storage.gate.set()

        opener = threading.Thread(target=open_gate)
        opener.start()
        log.close()
        durable = log.seq
        closed.set()
        ended((opener, *callers))
        assert durable == 2


def test_threads_lead_for_each_other_and_need_no_worker(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        threads: list[threading.Thread] = [held(log, storage)]
        many: list[Any] = [(decision(number), ()) for number in (2, 3, 4)]
        threads.append(threading.Thread(target=log.append_many, args=(many,)))
        threads[-1].start()
        queue_of(log, 3)
        threads.append(Caller(log, 5))
        queue_of(log, 4)
        let_go(storage, threads)
        assert log._commits._thread is None
    assert numbers(tmp_path / "state") == [1, 2, 3, 4, 5]


def test_an_interrupted_join_closes_no_file_that_another_thread_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise Interrupted

    with gated(tmp_path / "state") as (log, storage):
        first, second = held(log, storage), Caller(log, 2)
        queue_of(log, 1)
        monkeypatch.setattr(log._commits, "_chain", interrupt)
        with pytest.raises(Interrupted):
            log.append(decision(3))
        assert (log.usable, storage.released) == (False, [])
        let_go(storage, [first, second])
        until(lambda: storage.released)
        assert (first.seq, type(second.error), storage.released) == (1, RecordError, [True])
    assert numbers(tmp_path / "state") == [1]


def test_a_worker_that_cannot_start_releases_the_files(tmp_path: Path) -> None:
    with gated(tmp_path / "state") as (log, storage):
        log.append(decision(1))
        with no_more_threads(), pytest.raises(RecordError, match="no more threads"):
            asyncio.run(log.append_async(decision(2)))
        assert storage.released == [True]

"""The runners of steps by themselves: what runs side by side, in which threads, and what OPA must answer."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from engine.drive import (
    BATCH_ITEMS,
    SLOW_CALLS,
    WAVE,
    Append,
    Ask,
    Call,
    Steps,
    ended,
    off_loop,
    run_all,
    run_all_async,
)
from engine.errors import DecideError
from engine.model import Pace
from engine.opa.reply import Reply
from engine.steps import own_thread

SECONDS = 20.0
"""Far more than threads need to meet."""


@dataclass
class Opa:
    """Answers a batch as a test says, by default each item with itself, and keeps the threads that ask."""

    answer: Callable[[list[Any]], Any] = lambda items: items
    defined: bool = True
    together: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    threads: list[int] = field(default_factory=list)
    shared: None = None

    def ask(self, rule: str, document: dict[str, Any]) -> Reply:
        assert rule == "decisions"
        self.threads.append(threading.get_ident())
        self.together.wait(SECONDS)
        return Reply({"result": self.answer(document["items"])} if self.defined else {})

    async def ask_async(self, rule: str, document: dict[str, Any]) -> Reply:
        return self.ask(rule, document)


def asking(opa: Opa, number: int) -> Steps[Any]:
    try:
        reply = yield Ask(cast("Any", opa), {"number": number})
    except DecideError as error:
        return error.code
    return reply.result["number"]


def all_of(opa: Opa, count: int) -> list[Any]:
    found: list[Any] = run_all([asking(opa, number) for number in range(count)])
    assert found == asyncio.run(run_all_async([asking(opa, number) for number in range(count)]))
    return found


def test_one_batch_is_sent_from_the_calling_thread_and_several_in_parallel() -> None:
    opa = Opa()
    assert run_all([asking(opa, number) for number in range(BATCH_ITEMS)]) == list(range(BATCH_ITEMS))
    assert opa.threads == [threading.get_ident()]
    opa = Opa(together=threading.Barrier(2))  # neither is answered before both are asked
    more = BATCH_ITEMS + 1
    assert run_all([asking(opa, number) for number in range(more)]) == list(range(more))
    assert len(opa.threads) == 2


@pytest.mark.parametrize(
    ("opa", "defined"),
    [
        (Opa(), True),
        (Opa(lambda items: items[1:]), False),
        (Opa(lambda items: [*items, items[0]]), False),
        (Opa(lambda _: []), False),
        (Opa(lambda items: dict(enumerate(items))), False),
        (Opa(lambda _: None), False),
        (Opa(lambda _: "abc"), False),
        (Opa(defined=False), False),
    ],
    ids=["each", "one less", "one more", "none", "an object", "null", "text", "undefined"],
)
def test_a_batch_is_answered_item_by_item_or_not_at_all(opa: Opa, defined: bool) -> None:  # noqa: FBT001
    assert all_of(opa, 3) == ([0, 1, 2] if defined else ["engine.answer_malformed"] * 3)


def test_each_pace_has_its_own_threads() -> None:
    """Short, slow and bundle calls run at once, as many as there are threads for; heavy ones take turns."""

    async def threads(pace: Pace, meeting: int, count: int) -> set[str]:
        barrier, handed = threading.Barrier(meeting), threading.Event()

        def call() -> str:
            assert handed.wait(SECONDS)
            barrier.wait(SECONDS)
            return threading.current_thread().name

        calls = [asyncio.ensure_future(off_loop(call, pace)) for _ in range(count)]
        await asyncio.sleep(0)  # each has gone to its threads
        handed.set()
        return set(await asyncio.gather(*calls))

    async def every() -> list[set[str]]:
        return [
            await threads(Pace.SHORT, 2, 2),
            await threads(Pace.SLOW, SLOW_CALLS, SLOW_CALLS),
            await threads(Pace.BUNDLE, SLOW_CALLS, SLOW_CALLS),
            await threads(Pace.HEAVY, 1, 3),
        ]

    short, slow, bundle, heavy = asyncio.run(every())
    assert (len(short), len(slow), len(bundle), len(heavy)) == (2, SLOW_CALLS, SLOW_CALLS, 1)
    assert not any(name.startswith("engine-") for name in short)
    assert all(name.startswith("engine-slow") for name in slow)
    assert all(name.startswith("engine-bundle") for name in bundle)
    assert all(name.startswith("engine-heavy") for name in heavy)


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_paths_go_on(enabled: bool) -> None:  # noqa: FBT001
    seen: list[bool] = []

    def path() -> Steps[None]:
        seen.append(gc.isenabled())
        yield Call(lambda: seen.append(gc.isenabled()))
        seen.append(gc.isenabled())

    (gc.enable if enabled else gc.disable)()
    try:
        run_all([path()])
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert seen == [False, enabled, False]


def test_calls_and_questions_of_many_paths_end_in_their_own_order() -> None:
    def path(opa: Opa, number: int) -> Steps[Any]:
        found = yield Call(lambda: number)
        reply = yield Ask(cast("Any", opa), {"number": found})
        return reply.result["number"]

    assert run_all([path(Opa(), number) for number in range(3)]) == [0, 1, 2]


def test_opa_decides_one_wave_while_its_neighbours_begin_and_are_recorded() -> None:
    asked, begun, recorded = threading.Event(), threading.Event(), threading.Event()
    seen: list[bool] = []

    class Slow(Opa):
        """Answers the first wave when the second one has begun, the last when the first is recorded."""

        def ask(self, rule: str, document: dict[str, Any]) -> Reply:
            asked.set()
            last = document["items"][-1]["number"] >= 2 * WAVE
            seen.append((recorded if last else begun).wait(SECONDS))
            return super().ask(rule, document)

    class Lines:
        def append_many(self, bodies: Sequence[tuple[int, Any]]) -> list[int]:
            recorded.set()
            return [number for number, _ in bodies]

    def path(number: int) -> Steps[Any]:
        if number == WAVE:
            seen.append(asked.wait(SECONDS))
            begun.set()
        reply = yield Ask(cast("Any", opa), {"number": number})
        return (yield Append(cast("Any", log), reply.result["number"]))

    opa, log = Slow(), Lines()
    numbers = range(2 * WAVE + 1)
    assert run_all([path(number) for number in numbers]) == [*numbers]
    assert seen
    assert all(seen)


@pytest.mark.parametrize("cancelled", [False, True])
def test_work_that_raises_cancelled_error_ends_its_caller(*, cancelled: bool) -> None:
    """Whether or not its caller is cancelled too, the event loop goes on."""
    began, released = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        released.wait(SECONDS)
        raise asyncio.CancelledError

    async def whole() -> str:
        waiting = asyncio.create_task(ended(own_thread(work)))
        await asyncio.to_thread(began.wait, SECONDS)
        if cancelled:
            waiting.cancel()
        released.set()
        (end,) = await asyncio.gather(waiting, return_exceptions=True)
        return type(end).__name__

    assert asyncio.run(whole()) == "CancelledError"

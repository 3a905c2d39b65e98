"""Runs a generator to its end: each step that it yields is performed, and it receives the outcome or the error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

StepT = TypeVar("StepT")
ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")


def run(steps: Generator[StepT, ValueT, ResultT], perform: Callable[[StepT], ValueT]) -> ResultT:
    """The result of the generator; blocking."""
    try:
        step = next(steps)
        while True:
            try:
                value = perform(step)
            except BaseException as error:  # noqa: BLE001  (the generator decides what it means)
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        result: ResultT = end.value
        return result


async def run_async(steps: Generator[StepT, ValueT, ResultT], perform: Callable[[StepT], Awaitable[ValueT]]) -> ResultT:
    """The result of the generator; from an event loop."""
    try:
        step = next(steps)
        while True:
            try:
                value = await perform(step)
            except BaseException as error:  # noqa: BLE001  (the generator decides what it means)
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        result: ResultT = end.value
        return result


def own_thread(work: Callable[[], ResultT]) -> asyncio.Future[ResultT]:
    """A thread with the caller's context variables; the end of the program does not wait for it.

    It does for those of a pool, which could also be used up by work that waits for other work in it.
    """
    ended: Future[ResultT] = Future()
    ended.set_running_or_notify_cancel()  # from here on it cannot be cancelled
    context = copy_context()

    def body() -> None:
        try:
            ended.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001  (the caller decides what it means)
            ended.set_exception(error)

    threading.Thread(target=body, name="engine-work", daemon=True).start()
    return asyncio.wrap_future(ended)

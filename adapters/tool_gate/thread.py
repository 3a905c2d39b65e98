"""Runs a tool in a thread of its own and waits for it no longer than its time."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from adapters.tool_gate.effects import Effects, recording
from adapters.tool_gate.outcome import Given, Outcome, ToolValidationError

Tool = Callable[..., Any]

_THREADS = 32  # at once, as many as asyncio has on a large machine


def in_thread(tool: Tool, arguments: Mapping[str, Any], seconds: float, most: int, effects: Effects) -> Outcome:
    """Call the tool and give its end, never later than `seconds`; what it gives is cut to `most` bytes.

    An async tool runs on an event loop of its own and is cancelled in time. A Python thread cannot be
    killed: a tool that hangs goes on behind the result, without a way to report another side effect,
    until it ends by itself; the end of the program waits neither for it nor for threads of `asyncio.to_thread`,
    but for pools that the tool makes. Whatever must really end belongs into a process (`in_process`).
    """
    ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    context = copy_context()

    def body() -> None:
        ended.put(context.run(attempt, tool, arguments, seconds, most, effects))

    threading.Thread(target=body, name="tool", daemon=True).start()
    try:
        return ended.get(timeout=seconds)
    except queue.Empty:
        return Outcome.too_late()


def attempt(tool: Tool, arguments: Mapping[str, Any], seconds: float, most: int, effects: Effects) -> Outcome:
    """Call the tool here; gives its end whatever it raises, SystemExit and KeyboardInterrupt included."""
    try:
        with recording(effects):
            _fit(tool, arguments)
            value = tool(**arguments)
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value, seconds))
            return Outcome(given=Given.of(value, most))
    except _LateError:
        return Outcome.too_late()
    except BaseException as error:  # noqa: BLE001  (nothing of a tool gets out but its end)
        return Outcome.failed(error)


class _LateError(Exception):
    """The time of an async tool is up; a TimeoutError of the tool itself is its own."""


class _Daemons(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread` within a tool: the end of the program waits for those of any other pool."""

    def __init__(self) -> None:
        super().__init__(_THREADS)
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it in one of the threads; called by the event loop alone."""
        done: Future[Any] = Future()

        def run() -> None:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(fn(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001  (whoever awaits it gets it)
                    done.set_exception(error)

        self._waiting.put(run)
        if self._started < _THREADS:
            self._started += 1
            threading.Thread(target=self._work, name="tool-thread", daemon=True).start()
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Let the threads end; nobody waits for what a tool left in them."""
        for _ in range(self._started):
            self._waiting.put(None)

    def _work(self) -> None:
        while (run := self._waiting.get()) is not None:
            run()


async def _awaited(value: Awaitable[Any], seconds: float) -> Any:
    asyncio.get_running_loop().set_default_executor(_Daemons())
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await value
    except TimeoutError:
        if deadline.expired():
            raise _LateError from None
        raise


def _fit(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise ToolValidationError for arguments that the tool does not take, before it begins."""
    try:
        signature = inspect.signature(tool)
    except (ValueError, TypeError):
        return  # a built-in without one says so itself
    try:
        signature.bind(**arguments)
    except TypeError:
        raise ToolValidationError("arguments_do_not_fit", "these are not the arguments that the tool takes") from None

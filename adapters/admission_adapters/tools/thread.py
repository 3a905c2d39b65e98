"""Runs a tool in its own thread, with a timeout."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from admission_adapters.tools.effects import Effects, recording
from admission_adapters.tools.forms import gathered, joined, whole
from admission_adapters.tools.outcome import Outcome, ResultText, ToolValidationError
from engine.model import StopSignal

Tool = Callable[..., Any]

_THREADS = 32  # at once, as many as asyncio has on a large machine


def in_thread(
    tool: Tool,
    arguments: Mapping[str, Any],
    seconds: float,
    most: int,
    effects: Effects,
    stop: StopSignal,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Outcome:
    """Call the tool and return its outcome after `seconds` at the latest, or once it is stopped, cut to `most` bytes.

    An async tool runs on `loop`, else on its own event loop, and is cancelled at the timeout. A Python thread cannot be
    killed: a tool that hangs, or was stopped, goes on after the result, unable to report another side effect,
    until it ends by itself; the end of the program waits neither for it nor for threads of `asyncio.to_thread`,
    but for pools of the tool itself. A tool that must certainly end belongs into a process (`in_process`).
    """
    ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    context = copy_context()

    def body() -> None:
        ended.put(context.run(attempt, tool, arguments, seconds, most, effects, loop))

    def stopped() -> None:
        ended.put(Outcome.stopped())

    threading.Thread(target=body, name="tool", daemon=True).start()
    stop.then(stopped)
    try:
        return ended.get(timeout=seconds)
    except queue.Empty:
        return Outcome.too_late()
    finally:
        stop.forget(stopped)


def attempt(
    tool: Tool,
    arguments: Mapping[str, Any],
    seconds: float,
    most: int,
    effects: Effects,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Outcome:
    """Call the tool in this thread; returns its outcome for any exception, also SystemExit and KeyboardInterrupt."""
    try:
        with recording(effects):
            fit(tool, arguments)
            value = tool(**arguments)
            if inspect.isawaitable(value):
                value = _result(value, seconds, loop)
            if isinstance(value, AsyncIterator):
                value = joined(_result(gathered(value), seconds, loop))
            return Outcome(result_text=ResultText.of(whole(value), most))
    except _LateError:
        return Outcome.too_late()
    except BaseException as error:  # noqa: BLE001  (nothing of a tool gets out but its end)
        return Outcome.failed(error)


class _LateError(Exception):
    """The timeout of an async tool, unlike a TimeoutError that the tool itself raises."""


class _Daemons(ThreadPoolExecutor):
    """A pool of daemon threads for `asyncio.to_thread` within a tool; the program does not wait for them at its end."""

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
                except BaseException as error:  # noqa: BLE001  (the awaiting caller gets it)
                    done.set_exception(error)

        self._waiting.put(run)
        if self._started < _THREADS:
            self._started += 1
            threading.Thread(target=self._work, name="tool-thread", daemon=True).start()
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Let the threads end, without waiting for tools that hang in them."""
        for _ in range(self._started):
            self._waiting.put(None)

    def _work(self) -> None:
        while (run := self._waiting.get()) is not None:
            run()


def _result(value: Awaitable[Any], seconds: float, loop: asyncio.AbstractEventLoop | None) -> Any:
    if loop is None:
        return asyncio.run(_alone(value, seconds))
    return asyncio.run_coroutine_threadsafe(_awaited(value, seconds), loop).result()


async def _alone(value: Awaitable[Any], seconds: float) -> Any:
    asyncio.get_running_loop().set_default_executor(_Daemons())
    return await _awaited(value, seconds)


async def _awaited(value: Awaitable[Any], seconds: float) -> Any:
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await value
    except TimeoutError:
        if deadline.expired():
            raise _LateError from None
        raise


def fit(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise ToolValidationError for arguments that do not fit the tool's signature, before the call."""
    try:
        signature = inspect.signature(tool)
    except (ValueError, TypeError):
        return  # a built-in without one raises by itself
    try:
        signature.bind(**arguments)
    except TypeError:
        raise ToolValidationError(
            "arguments_do_not_fit", "the arguments do not match the parameters of the tool"
        ) from None

"""Work on an event loop of its own, which a stop cancels: whatever it waits for, its connections are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from engine.model import StopSignal

T = TypeVar("T")


class WasStoppedError(Exception):
    """The work was stopped before its end."""


def run_until(stop: StopSignal, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; blocks. Raises what it raises, and WasStoppedError."""
    return asyncio.run(_until(stop, work))


async def _until(stop: StopSignal, work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    stop.then(cancel)
    try:
        return await task
    except asyncio.CancelledError as error:
        if not stop.is_set():
            raise
        raise WasStoppedError from error
    finally:
        stop.forget(cancel)

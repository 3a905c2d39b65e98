"""Answers in parts: what happens in a run, for clients that follow it, as NDJSON or as server-sent events.

A thread makes the parts and the connection sends them. A client that reads slowly slows its own run down, up to the
deadline of the connection; one that is gone misses the rest, and the run goes on and is recorded.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any

from engine.api.messages import Exchange, Response

NDJSON = b"application/x-ndjson"
EVENTS = b"text/event-stream"

_PARTS = 64
"""Parts that wait for a client."""


class Following:
    """A client that may follow a run. The first event begins its answer; without one, the answer is the result."""

    def __init__(self, exchange: Exchange) -> None:
        accept = exchange.head.headers.get(b"accept", b"").lower()
        media = next((one for one in (NDJSON, EVENTS) if one in accept), None)
        self._media = media if exchange.head.version == "1.1" else None
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_PARTS)
        self._gone = threading.Event()
        self._begun = False
        self.answer: asyncio.Future[Response] = self._loop.create_future()

    @property
    def follows(self) -> bool:
        """Whether the client accepts an answer in parts."""
        return self._media is not None

    def __call__(self, event: dict[str, Any]) -> None:
        """One event, from a thread of the run."""
        if self.follows and not self._gone.is_set():
            asyncio.run_coroutine_threadsafe(self.put(event, "allow"), self._loop).result()

    async def end(self, response: Response) -> None:
        """The result: the last event, or the whole answer."""
        if not self._begun:
            self.answer.set_result(response)
            return
        await self._queue_up(json.loads(response.body), "result")
        await self._queue.put(None)

    async def parts(self) -> AsyncIterator[bytes]:
        """The parts, for the connection."""
        while (part := await self._queue.get()) is not None:
            yield part

    def leave(self) -> None:
        """The client is gone, or has everything: nothing waits for it."""
        self._gone.set()
        while not self._queue.empty():
            self._queue.get_nowait()

    async def put(self, event: Mapping[str, Any], outcome: str | None = None) -> None:
        """One event, on the event loop; with the first one, the answer begins and is logged with this outcome."""
        if not self._begun:
            self._begun = True
            self.answer.set_result(Response(200, media_type=self._media or NDJSON, stream=self, outcome=outcome))
        await self._queue_up(event, str(event.get("type", "update")))

    async def _queue_up(self, event: Mapping[str, Any], name: str) -> None:
        if not self._gone.is_set():
            text = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
            await self._queue.put(
                b"event: %b\ndata: %b\n\n" % (_word(name), text) if self._media == EVENTS else text + b"\n"
            )


_UNDER_WAY: set[asyncio.Task[None]] = set()
"""An event loop itself does not keep its tasks."""


def under_way(whole: Coroutine[Any, Any, None]) -> None:
    """Take this to its end, whatever becomes of the client."""
    task = asyncio.get_running_loop().create_task(whole)
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)


def _word(name: str) -> bytes:
    return name.encode() if name.isascii() and name.replace("_", "").isalnum() else b"update"

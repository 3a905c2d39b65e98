"""One OPA process and the policy that it serves; a request leases it until its answer."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from engine.opa.reply import Reply, down, forked
from engine.opa.server import Server

if TYPE_CHECKING:
    from engine.opa.async_client import AsyncClient
    from engine.opa.sharing import SharedAnswers


PolicyT = TypeVar("PolicyT")


class Generation(Generic[PolicyT]):
    """Asks one OPA, from threads and from event loops. Made and closed by the supervisor.

    Each event loop has `connections` calls in flight, and `queue` more that wait for one.
    """

    def __init__(
        self, policy: PolicyT, server: Server, connections: int, queue: int, shared: SharedAnswers | None = None
    ) -> None:
        self.policy = policy
        self._shared = shared
        self.server = server
        self.holders = 0  # number of leases, counted by the supervisor
        self.answers = 0  # so far, roughly: that it grows shows that OPA works
        self.promoted = False  # it was made the current one
        self._connections = connections
        self._queue = queue
        self._owner = os.getpid()
        self.since = time.monotonic()  # when it was ready
        self._clients: dict[asyncio.AbstractEventLoop, AsyncClient] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Process id of this OPA."""
        return self.server.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs and accepts queries."""
        return self.server.alive and not self._closed

    @property
    def shared(self) -> SharedAnswers | None:
        """The answers that equal cases share; None if every request is to be asked, or cannot be any more."""
        return self._shared if self.alive and os.getpid() == self._owner else None

    def ask(self, rule: str, document: dict[str, Any], seconds: float | None = None) -> Reply:
        """The value of `data.admission.<rule>`, from exactly the revisions of this policy. Raises DecideError."""
        reply = self.server.ask(rule, document, seconds)
        self.answers += 1
        return reply

    async def ask_async(self, rule: str, document: dict[str, Any]) -> Reply:
        """As `ask`, from an event loop."""
        if not self.alive:
            raise down()
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop) or self._join(loop)
        reply = self.server.demand(await client.ask(rule, document))
        self.answers += 1
        return reply

    async def leave(self) -> None:
        """Hang up from this event loop; to be called before the loop ends."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            client.close()
            await asyncio.sleep(0)  # the loop closes sockets in its next round

    def close(self) -> None:
        """Fail all running queries and end OPA. Blocks while OPA stops, at most 2 seconds."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for loop, client in tuple(self._clients.items()):
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(client.close)
        self.server.close()

    def _join(self, loop: asyncio.AbstractEventLoop) -> AsyncClient:
        from engine.opa.async_client import AsyncClient  # the command line never needs it

        if os.getpid() != self._owner:
            raise forked()
        with self._lock:
            if self._closed:
                raise down()
            for ended in [known for known in self._clients if known.is_closed()]:
                del self._clients[ended]
            made = AsyncClient(self.server.path, self.server.limits, self._connections, self._queue)
            self._clients[loop] = made
        return made

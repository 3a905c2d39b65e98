"""Nothing but the way to OPA and back: the floor of any engine that is written in Python.

uvloop and httptools as the engine uses them, its own client for OPA, no checks, no facts, no record.
Run it with the socket of its OPA in BENCH_OPA_SOCKET and its port in BENCH_PORT.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import cast

import httptools
import uvloop

from engine.documents.canonical import canonical
from engine.opa.async_client import AsyncClient
from engine.settings import OpaLimits

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of the input."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The input is there."""
        body, self._body = b"".join(self._body), []
        self._answering = self._loop.create_task(self._answer(body))

    async def _answer(self, body: bytes) -> None:
        reply = await self._client.ask("decision", json.loads(body))
        answer = canonical(reply.result)
        self._transport.write(_HEAD % (len(answer), answer))


async def _serve() -> None:
    client = AsyncClient(os.environ["BENCH_OPA_SOCKET"], OpaLimits())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(client), "127.0.0.1", int(os.environ["BENCH_PORT"]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())

"""The server's side of the proxy as streams of messages: a server in the sandbox, or one that is reached over HTTP."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from admission_adapters.extras import not_installed
from admission_adapters.runner.mcp_server import LINE_BYTES, ServerLines
from admission_adapters.shim.pump import ServerGate, pumped

try:
    import anyio
    import httpx2
    import mcp_types as types
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.message import SessionMessage
except ImportError as missing:
    raise not_installed("the MCP proxy needs packages that are", "mcp", "engine.mcp_unavailable") from missing


class SandboxedTalk(ServerLines):
    """The lines of a server in the sandbox as streams of messages."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Its messages, and where messages to it go. Start the server within."""
        loop = asyncio.get_running_loop()
        received, reading = anyio.create_memory_object_stream[Any](math.inf)
        writing, to_send = anyio.create_memory_object_stream[Any](0)

        def on_line(line: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(deliver, line)
            except RuntimeError:  # the client has gone, and its loop with it
                self.over.set()

        def deliver(line: bytes | None) -> None:
            if line is None:
                received.close()
                return
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # a stray print
                return
            received.send_nowait(SessionMessage(message))

        async def send() -> None:
            await anyio.to_thread.run_sync(self.begun.wait)
            async for item in to_send:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8") + b"\n"
                if self.over.is_set():
                    break
                try:
                    await anyio.to_thread.run_sync(self._write, data)
                except OSError:
                    break
            to_send.close()

        self._on_line = on_line
        with received, reading, writing, to_send:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                try:
                    yield reading, writing
                finally:
                    self.over.set()
                    self.begun.set()
                    tasks.cancel_scope.cancel()


_WAIT = httpx2.Timeout(30.0, read=300.0)
"""Seconds; a tool may think for minutes, and the gate ends its call before."""

_NO_ANSWER = 502


class _Answer(httpx2.AsyncByteStream):
    """The body of an answer: events of any number, whose size the SDK limits, else `LINE_BYTES` at most."""

    def __init__(self, parts: httpx2.AsyncByteStream, *, events: bool) -> None:
        self._parts, self._events = parts, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._parts:
                size += len(part)
                if size > LINE_BYTES and not self._events:
                    raise httpx2.StreamError(f"the answer has more than {LINE_BYTES} bytes")
                yield part
        except httpx2.TransportError as error:
            raise httpx2.StreamError("the connection ended within the answer") from error

    async def aclose(self) -> None:
        await self._parts.aclose()


class _Exactly(httpx2.AsyncHTTPTransport):
    """Has every request answered: what fails, points elsewhere or is packed ends its own call, and no other."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError:
            return httpx2.Response(_NO_ANSWER)
        parts, packed = response.stream, response.headers.get("content-encoding", "identity") != "identity"
        if packed or response.has_redirect_location or not isinstance(parts, httpx2.AsyncByteStream):
            await response.aclose()
            return httpx2.Response(_NO_ANSWER)
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _Answer(parts, events=events)
        return response


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """A server at exactly this address: no redirect, no proxy and no variable of the environment counts."""
    own, exactly = {**headers, "accept-encoding": "identity"}, _Exactly(trust_env=False)
    async with (
        httpx2.AsyncClient(headers=own, transport=exactly, timeout=_WAIT, trust_env=False) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams[0], streams[1]


def serve_started(
    gate: ServerGate, start: Callable[[SandboxedTalk], None], close: Callable[[], None], log: Callable[[str], None]
) -> None:
    """Serve one client on standard input and output in front of a server that `start` starts with a talk of ours.

    Raises what `start` raises. `close` ends the server.
    """
    failed: list[Exception] = []

    async def serve() -> None:
        talk = SandboxedTalk()
        async with talk.streams() as up:
            try:
                await anyio.to_thread.run_sync(start, talk)
            except Exception as error:  # noqa: BLE001  (raised again, outside of every group)
                failed.append(error)
            else:
                await pumped(gate, up, log)

    try:
        anyio.run(serve)
    finally:
        close()
    if failed:
        raise failed[0]


def serve_http(gate: ServerGate, url: str, headers: Mapping[str, str], log: Callable[[str], None]) -> None:
    """Serve one client on standard input and output in front of a server at this address."""

    async def serve() -> None:
        async with over_http(url, headers) as up:
            await pumped(gate, up, log)

    anyio.run(serve)

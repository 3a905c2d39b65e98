"""One connection: httptools reads, limits hold from the first byte, requests are answered in order.

A deadline is one number per connection; one sweep checks them all, so no request needs a timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from email.utils import formatdate
from math import inf
from typing import TYPE_CHECKING, Protocol

import httptools

from engine.api.limits import ApiLimits, too_large, too_large_head, too_much_framing
from engine.api.load import Shares, overloaded
from engine.api.messages import Exchange, Head, Parts, Peer, Response
from engine.api.problems import bare_problem
from engine.errors import EngineError, GatherError

if TYPE_CHECKING:
    from engine.api.peers import PeerOf

_PIPELINED = 64
"""Requests that one client may send ahead; with more, these are answered and the connection ends."""


_SWEEP_SECONDS = 0.25
"""How often deadlines of connections are looked at."""


class Application(Protocol):
    """What connections pass their requests to. It never raises."""

    limits: ApiLimits
    connections: Shares
    bodies: Shares
    stopping: bool
    date: bytes

    def open(self, head: Head, peer: Peer) -> Exchange:
        """Accept or refuse a request by its headers."""

    async def answer(self, exchange: Exchange) -> Response:
        """Answer a request whose body is complete, or that was refused."""

    def broken(self, status: int) -> None:
        """A request could not be parsed."""


async def sweep(app: Application, connections: set[Connection]) -> None:
    """End connections whose deadline has passed, and keep the date of answers current, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        app.date = formatdate(usegmt=True).encode("ascii")
        now = loop.time()
        for connection in [one for one in connections if one.deadline < now]:
            connection.expire()


class Connection(asyncio.Protocol):
    """Reads requests, answers them in order, and ends where a client is too slow or sends too much.

    It is one of `connections` as long as it is open.
    """

    def __init__(
        self, app: Application, loop: asyncio.AbstractEventLoop, peer: PeerOf, connections: set[Connection]
    ) -> None:
        self._app = app
        self._limits = app.limits
        self._loop = loop
        self._peer_of = peer
        self._all = connections
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Exchange] = deque()
        self._serving: Exchange | None = None
        self._reading: Exchange | None = None
        self._in_head = False
        self._head_bytes = 0  # bytes of the target and headers so far
        self._unfinished = 0  # bytes of reads after the one in which the head began
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._repeated: set[bytes] = set()
        self._busy = False
        self._last = False
        self._paused = False
        self._dropped = 0
        self._framing = 0
        self._bodiless = 0
        self._upgrade = False
        self._primed = False
        self._overrun = False
        self._drained: asyncio.Event | None = None
        self._gone = False
        self.deadline = inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it when there are too many."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        peer = self._peer_of(transport)
        if peer is None:
            self._gone = True
            self.cut()
            return
        if not self._app.connections.take(peer.account):
            self._gone = True
            self._refuse_raw(503, "engine.overloaded", "too many connections")
            return
        self._all.add(self)
        self._peer = peer
        self.deadline = self._loop.time() + self._limits.head_seconds

    def connection_lost(self, _: Exception | None) -> None:
        """Drop unfinished requests; one being answered goes on and is recorded."""
        self._gone = True
        self._hang_up()
        if self in self._all:
            self._all.remove(self)
            self._app.connections.give(self._peer.account)
        if self._reading is not None:
            self._drop(self._reading)
            self._reading = None
        while self._queue:
            self._drop(self._queue.popleft())
        if self._drained is not None:
            self._drained.set()

    def eof_received(self) -> bool:
        """A client that has stopped sending may still read: keep the connection open until it has its answers."""
        waiting = self._busy or bool(self._queue)
        self._last = True
        self._hang_up()
        return waiting

    def data_received(self, data: bytes) -> None:
        """Feed the parser, within the bounds of a head."""
        if self._gone or (self._last and self._reading is None):
            self._linger(len(data))
            return
        self._unfinished += len(data)
        exchange, ahead = self._reading, self._busy
        before = 0 if exchange is None else exchange.size
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._broken(400, "engine.http_invalid", "this is not HTTP/1.1")
            return
        if exchange is not None and exchange is self._reading and exchange.head.chunked:
            self._check_framing(exchange, len(data), exchange.size - before)
        if self._in_head and max(self._head_bytes, self._unfinished) > self._limits.head_bytes:
            self._broken(431, "engine.head_too_large", f"the headers are longer than {self._limits.head_bytes} bytes")
        elif ahead and self._busy and not self._paused and (self._queue or self._reading is not None):
            self._paused = True  # sent ahead: read on after the answer
            self._transport.pause_reading()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self._upgrade:
                self._last = True  # the engine supports no other protocol; the request itself is answered
                return
            self._upgrade = False
            self._prime()
            self._parser.feed_data(data[upgrade.args[0] :])

    def _prime(self) -> None:
        """Read the body of a request that offers an upgrade, as RFC 9110 demands; httptools stops before it.

        A new parser is given the framing of the body, and that the connection ends after it.
        """
        exchange = self._reading
        chunked = exchange is not None and exchange.head.chunked
        length = 0 if exchange is None else exchange.head.length or 0
        end = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % length
        self._parser = httptools.HttpRequestParser(self)
        self._primed = True
        self._parser.feed_data(b"POST / HTTP/1.1\r\nConnection: close\r\n" + end + b"\r\n\r\n")

    def _check_framing(self, exchange: Exchange, wire: int, body: int) -> None:
        """Limit the framing of a chunked body, which is not stored and does not count as body size."""
        limits = self._limits
        self._framing += wire - body
        self._bodiless = 0 if body else self._bodiless + wire
        if self._framing <= limits.framing_bytes + exchange.size and self._bodiless <= limits.trailer_bytes:
            return
        if not exchange.answered:
            exchange.refuse(too_much_framing())
            self._early(exchange)
        self._reading = None  # nothing more of it is parsed
        self._parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        """A request starts: its headers have a deadline."""
        if self._primed:
            return
        self._in_head = True
        self._head_bytes = self._unfinished = 0
        self._url = b""
        self._headers = {}
        self._repeated = set()
        if not self._busy:
            self.deadline = self._loop.time() + self._limits.head_seconds

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        if not self._in_head:
            return
        self._head_bytes += len(url)
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; repeated ones are joined and remembered. Trailers mean nothing."""
        if not self._in_head:
            return
        name = name.lower()
        self._head_bytes += len(name) + len(value)
        if name in self._headers:
            self._repeated.add(name)
            value = self._headers[name] + b", " + value
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        """Accept or refuse the request before its body is read."""
        self._in_head = False
        if self._primed:
            self._primed = False
            return
        self._framing = self._bodiless = 0
        if self._last:
            return
        limits, headers = self._limits, self._headers
        path, _, query = self._url.decode("latin-1").partition("?")
        chunked = b"transfer-encoding" in headers
        length = int(headers[b"content-length"]) if b"content-length" in headers else (None if chunked else 0)
        head = Head(
            self._parser.get_method().decode("ascii"),
            path,
            query,
            headers,
            frozenset(self._repeated),
            length,
            chunked,
            self._parser.get_http_version(),
        )
        exchange = self._app.open(head, self._peer)
        self._reading = exchange
        if exchange.identifying is not None:
            self._transport.pause_reading()
            exchange.identifying.add_done_callback(lambda _: self._identified(exchange))
        self._upgrade = self._parser.should_upgrade() and length != 0 and head.method != "CONNECT"
        if self._head_bytes > limits.head_bytes or len(headers) > limits.headers:
            exchange.refuse(too_large_head(limits), recorded=False)
            self._last = True
        if length is not None and length > exchange.limit:
            exchange.refuse(too_large(exchange.limit))
        if exchange.refusal is not None:
            self._answer_early(exchange)
        elif headers.get(b"expect", b"").lower() == b"100-continue" and length != 0:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self._busy:
            seconds = limits.body_seconds if exchange.upload is None else limits.upload_seconds
            self.deadline = self._loop.time() + seconds

    def _answer_early(self, exchange: Exchange) -> None:
        """Answer a refused request at once if its body may be long."""
        if exchange.head.chunked or (exchange.head.length or 0) > self._limits.drop_bytes:
            self._early(exchange)

    def _identified(self, exchange: Exchange) -> None:
        """The caller is known, or refused: read on."""
        if self._gone or self._transport.is_closing():
            return
        if exchange.refusal is not None and self._reading is exchange and not exchange.answered:
            self._answer_early(exchange)
        if not self._paused:
            self._transport.resume_reading()

    def on_body(self, data: bytes) -> None:
        """A part of the body, stored up to the limit of this request."""
        exchange = self._reading
        if exchange is None:
            return
        exchange.size += len(data)
        if exchange.answered or exchange.refusal is not None:
            if exchange.size > self._limits.drop_bytes and not exchange.answered:
                self._early(exchange)
            if exchange.answered:
                self._linger(len(data))
        elif exchange.size > exchange.limit:
            exchange.refuse(too_large(exchange.limit))
            self._early(exchange)
        elif exchange.upload is not None:
            if exchange.upload.feed(data):
                self._transport.pause_reading()
                self._loop.create_task(self._write_upload(exchange))
        elif not self._app.bodies.take(exchange.account, len(data)):
            exchange.refuse(overloaded(), recorded=False)
            self._early(exchange)
        else:
            exchange.keep(data)

    def on_message_complete(self) -> None:
        """The body is complete: answer when it is this request's turn."""
        if self._upgrade:  # the body follows
            return
        exchange, self._reading = self._reading, None
        if exchange is None:
            return
        exchange.complete = True
        if exchange.answered:
            if not self._busy:
                self._close()
            return
        if not self._parser.should_keep_alive():
            self._last = True
        if len(self._queue) >= _PIPELINED:
            self._drop(exchange)
            self._last = self._overrun = True
            return
        self._start(exchange)

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._drained = asyncio.Event()

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._drained is not None:
            self._drained.set()
            self._drained = None

    def stop(self) -> None:
        """Accept no further request; close once those accepted are answered."""
        if not self._busy and not self._queue and self._reading is None and not self._in_head:
            self._close()

    def cut(self) -> None:
        """Close at once, without an answer."""
        self._transport.abort()

    def expire(self) -> None:
        """The deadline has passed: answer 408 where a request had begun, and close."""
        self.deadline = inf
        if self._transport.is_closing() or self._last:
            self.cut()
        elif self._reading is not None:
            self._reading.refuse(
                GatherError(
                    "the body did not arrive in time",
                    remedy="send it without pauses",
                    code="engine.body_timeout",
                )
            )
            self._early(self._reading)
        elif self._in_head:
            self._broken(408, "engine.head_timeout", "the headers did not arrive in time")
        elif self._busy:
            self.cut()  # the client does not read its answer
        else:
            self._close()

    def _start(self, exchange: Exchange) -> None:
        self._queue.append(exchange)
        if not self._busy:
            self._busy = True
            self.deadline = inf
            self._loop.create_task(self._serve())

    def _early(self, exchange: Exchange) -> None:
        """Answer before the body has ended; the rest of it is dropped and the connection closed."""
        exchange.answered = True
        self._last = True
        exchange.release(self._app.bodies)
        self._start(exchange)

    async def _serve(self) -> None:
        while self._queue:
            exchange = self._serving = self._queue.popleft()
            response = await self._app.answer(exchange)
            exchange.release(self._app.bodies)
            if self._gone or self._transport.is_closing():
                if response.stream is not None:
                    response.stream.leave()
                continue
            keep = not (self._app.stopping or response.stream is not None or (self._last and not self._queue))
            self._transport.write(
                response.encode(exchange, self._app.date, keep=keep, body=exchange.head.method != "HEAD")
            )
            if response.stream is not None:
                await self._send_parts(response.stream)
            if not keep:
                self._busy = False
                self._end(exchange)
                return
            await self._drain()
        self._busy = False
        if self._gone:
            return
        now = self._loop.time()
        if self._reading is not None:
            self.deadline = now + self._limits.body_seconds
        else:
            self.deadline = now + (self._limits.head_seconds if self._in_head else self._limits.idle_seconds)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _hang_up(self) -> None:
        """Tell those requests that want to know: their client sends no more, or is gone."""
        for exchange in (self._serving, *self._queue):
            if exchange is not None:
                exchange.hang_up()

    async def _send_parts(self, stream: Parts) -> None:
        try:
            async for part in stream.parts():
                if self._gone or self._transport.is_closing():
                    return
                self._transport.write(b"%x\r\n%b\r\n" % (len(part), part))
                await self._drain()
            self._transport.write(b"0\r\n\r\n")
        finally:
            stream.leave()

    async def _drain(self) -> None:
        """Wait for a client that does not read, until the deadline."""
        if self._drained is not None:
            self.deadline = self._loop.time() + self._limits.write_seconds
            await self._drained.wait()
            self.deadline = inf

    async def _write_upload(self, exchange: Exchange) -> None:
        try:
            if exchange.upload is not None:
                await exchange.upload.write()
        except EngineError as error:
            exchange.refuse(error)
            if self._reading is exchange:
                self._early(exchange)
        finally:
            if not self._gone and not self._transport.is_closing():
                self._transport.resume_reading()

    def _end(self, exchange: Exchange) -> None:
        """Close; where the client still sends, only after it had time to read the answer."""
        self._last = True
        if (exchange.complete and not self._overrun) or self._gone:
            self._close()
            return
        self.deadline = self._loop.time() + self._limits.linger_seconds
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _linger(self, size: int) -> None:
        self._dropped += size
        if self._dropped > self._limits.linger_bytes and not self._busy:
            self._close()

    def _broken(self, status: int, code: str, message: str) -> None:
        if self._busy:  # an answer is being sent: what follows gets none
            self._last = True
            return
        self._refuse_raw(status, code, message)

    def _refuse_raw(self, status: int, code: str, message: str) -> None:
        self._app.broken(status)
        self._last = True
        response = bare_problem(status, code, message)
        self._transport.write(response.encode(None, self._app.date, keep=False))
        self._close()

    def _drop(self, exchange: Exchange) -> None:
        exchange.release(self._app.bodies)
        if exchange.upload is not None:
            exchange.upload.close()

    def _close(self) -> None:
        self.deadline = self._loop.time() + self._limits.linger_seconds
        self._transport.close()

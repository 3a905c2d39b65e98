"""What a handler sees of a request and gives for an answer; nothing of sockets."""

from __future__ import annotations

import http
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.model import Caller, Via

if TYPE_CHECKING:
    from engine.api.routes import Operation
    from engine.api.uploads import Upload

_NOBODY = Caller(via=Via.NONE)

JSON = b"application/json"
PROBLEM = b"application/problem+json"

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, as far as the transport itself shows it.

    `caller` is set where the transport proves it: a client certificate, or the user at the control socket.
    `account` is whom its load is counted for where nothing else identifies the caller.
    """

    address: str
    loopback: bool
    account: str = ""
    control: bool = False
    tls: bool = False
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Request line and headers, their names in lower case; a repeated one is joined by `, ` and in `repeated`."""

    method: str
    path: str
    query: str
    headers: Mapping[bytes, bytes]
    repeated: frozenset[bytes] = frozenset()
    length: int | None = None
    chunked: bool = False
    version: str = "1.1"


@dataclass(frozen=True, slots=True)
class Trace:
    """The W3C trace that a request belongs to, and the span of its handling; `flags` as they came in.

    `parent_id` is the span of the caller, where it gave one.
    """

    trace_id: str
    span_id: str
    flags: str = "00"
    parent_id: str | None = None

    def header(self) -> bytes:
        """The value of the header `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}".encode()


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. `outcome` and `codes` are what the log and the metrics tell of it."""

    status: int
    body: bytes = b""
    media_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    outcome: str | None = None
    codes: tuple[str, ...] = ()
    decision_id: str | None = None

    def encode(self, exchange: Exchange | None, date: bytes, *, keep: bool, body: bool = True) -> bytes:
        """The bytes on the wire; without `body` as HEAD wants it."""
        parts = [_STATUS_LINES[self.status], b"content-type: ", self.media_type]
        parts.append(b"\r\ncontent-length: %d\r\ncache-control: no-store\r\ndate: " % len(self.body))
        parts.append(date)
        if exchange is not None:
            parts += (
                b"\r\nx-request-id: ",
                exchange.request_id.encode("ascii"),
                b"\r\ntraceparent: ",
                exchange.trace.header(),
            )
        for name, value in self.headers:
            parts += (b"\r\n", name, b": ", value)
        parts.append(b"\r\n\r\n" if keep else b"\r\nconnection: close\r\n\r\n")
        if body:
            parts.append(self.body)
        return b"".join(parts)


@dataclass(slots=True)
class Exchange:
    """One request on its way through the API; made when its headers are complete.

    `refusal` is what already stands against it; its body is then dropped unread. `recorded` says whether that
    refusal is a decision to be recorded, where the operation decides.
    """

    head: Head
    peer: Peer
    operation: Operation
    request_id: str
    trace: Trace
    started: int
    """Nanoseconds of the monotonic clock."""
    limit: int
    """Bytes of body that this operation takes."""
    caller: Caller = _NOBODY
    named: bool = False
    """Whether the caller gave the request id, so that it may be anything."""
    account: str = ""
    """Whom the load of this request is counted for: the caller where it has a name, else the peer."""
    run: str | None = None
    approval: str | None = None
    idempotency_key: str | None = None
    identified: bool = False
    """Whether it is known who asks, as far as the operation wants to know."""
    refusal: EngineError | None = None
    recorded: bool = True
    chunks: list[bytes | bytearray] = field(default_factory=list)
    """The body so far, in one piece: small ones would each cost more than they hold."""
    size: int = 0
    upload: Upload | None = None
    complete: bool = False
    answered: bool = False

    def refuse(self, error: EngineError, *, recorded: bool = True) -> None:
        """Hold this against the request, unless something was before."""
        if self.refusal is None:
            self.refusal, self.recorded = error, recorded

    def keep(self, data: bytes) -> None:
        """One more part of the body."""
        if not self.chunks:
            self.chunks.append(data)
            return
        kept = self.chunks[0]
        if not isinstance(kept, bytearray):
            kept = self.chunks[0] = bytearray(kept)
        kept += data

    @property
    def body(self) -> bytes:
        """The whole body, once it is complete."""
        if not self.chunks:
            return b""
        whole = self.chunks[0] = bytes(self.chunks[0])
        return whole

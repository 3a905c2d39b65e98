"""What a handler receives and returns: exchanges, answers and operations; nothing of sockets."""

from __future__ import annotations

import asyncio
import http
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import EngineError
from engine.flow import Context
from engine.model import Caller, Decision, Mode, Model, Via

if TYPE_CHECKING:
    from engine.api.load import Shares
    from engine.api.uploads import Upload

_UNIDENTIFIED = Caller(via=Via.NONE)

JSON = b"application/json"
PROBLEM = b"application/problem+json"

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection, as far as the transport itself shows it.

    `caller` is set where the transport proves it: a client certificate, or the user at the control socket.
    Load is counted for `account` where nothing else identifies the caller.
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


class Parts(Protocol):
    """A body that comes in parts."""

    def parts(self) -> AsyncIterator[bytes]:
        """Each part once it is there."""

    def leave(self) -> None:
        """The client is gone, or has everything: nothing waits for it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. `outcome` and `codes` go into the log and the metrics."""

    status: int
    body: bytes = b""
    media_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    outcome: str | None = None
    codes: tuple[str, ...] = ()
    decision_id: str | None = None
    stream: Parts | None = None
    """The body in parts, as they come; the connection is closed after them."""

    @classmethod
    def of(
        cls,
        document: Model | Mapping[str, Any],
        status: int = 200,
        media_type: bytes = JSON,
        *,
        decision: Decision | None = None,
        codes: tuple[str, ...] | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> Response:
        """The answer with this JSON document; without `codes`, those of the decision's findings."""
        text = document.model_dump_json() if isinstance(document, Model) else json.dumps(document, ensure_ascii=False)
        if codes is None:
            codes = () if decision is None else tuple(finding.code for finding in decision.findings)
        return cls(
            status,
            text.encode("utf-8"),
            media_type,
            headers,
            outcome=None if decision is None else decision.outcome.value,
            codes=codes,
            decision_id=None if decision is None else decision.decision_id,
        )

    def encode(self, exchange: Exchange | None, date: bytes, *, keep: bool, body: bool = True) -> bytes:
        """The bytes on the wire; without `body` as HEAD wants it."""
        parts = [_STATUS_LINES[self.status], b"content-type: ", self.media_type]
        length = b"transfer-encoding: chunked" if self.stream is not None else b"content-length: %d" % len(self.body)
        parts.append(b"\r\n%b\r\ncache-control: no-store\r\ndate: " % length)
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
    """One request on its way through the API; created when its headers are complete.

    `refusal` is a known reason to refuse it; its body is then dropped unread. `recorded` states whether that
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
    """Maximum body size of this operation, in bytes."""
    caller: Caller = _UNIDENTIFIED
    named: bool = False
    """Whether the request id is the caller's own text."""
    account: str = ""
    """The load of this request is counted for this: the caller where it has a name, else the peer."""
    run: str | None = None
    approval: str | None = None
    idempotency_key: str | None = None
    mode: Mode = Mode.ENFORCE
    query: Mapping[str, str] = field(default_factory=dict)
    """The parameters of an operation that takes others than the mode."""
    identified: bool = False
    """Whether the caller is identified, as far as the operation demands it."""
    identifying: asyncio.Task[None] | None = None
    """Identifies the caller, or refuses the request; the body is read on when it has ended."""
    own_files: Callable[[str], str] = str
    """Names the files of values that are edited for the policy in force, in a text that is not of its catalogue."""
    refusal: EngineError | None = None
    recorded: bool = True
    stored: bytes | bytearray = b""
    """The body so far, in one piece: small pieces would cost more memory than their content."""
    size: int = 0
    upload: Upload | None = None
    complete: bool = False
    answered: bool = False
    hung_up: bool = False
    """Whether the client has stopped sending, or is gone."""
    _on_hang_up: Callable[[], None] | None = None

    def when_hung_up(self, act: Callable[[], None]) -> None:
        """Call this when the client hangs up; now, if it has."""
        self._on_hang_up = act
        if self.hung_up:
            act()

    def hang_up(self) -> None:
        """The client has stopped sending, or is gone."""
        self.hung_up = True
        if self._on_hang_up is not None:
            self._on_hang_up()

    def refuse(self, error: EngineError, *, recorded: bool = True) -> None:
        """Refuse the request for this, unless it is refused already."""
        if self.refusal is None:
            self.refusal, self.recorded = error, recorded

    def keep(self, data: bytes) -> None:
        """One more part of the body."""
        if not self.stored:
            self.stored = data
            return
        if not isinstance(self.stored, bytearray):
            self.stored = bytearray(self.stored)
        self.stored += data

    def release(self, bodies: Shares) -> None:
        """Drop the stored part of the body, which counts in `bodies`."""
        if self.stored:
            bodies.give(self.account, len(self.stored))
            self.stored = b""

    @property
    def context(self) -> Context:
        """What belongs to the request besides its body."""
        return Context(
            caller=self.caller,
            run=self.run,
            approval=self.approval,
            idempotency_key=self.idempotency_key,
            request_id=self.request_id,
            trace=self.trace.trace_id,
        )

    @property
    def body(self) -> bytes:
        """The whole body, once it is complete."""
        self.stored = whole = bytes(self.stored)
        return whole


def outline(exchange: Exchange, response: Response) -> dict[str, Any]:
    """What logs and spans report about an answer, without any content."""
    found = {
        "point": exchange.operation.point,
        "outcome": response.outcome,
        "codes": response.codes,
        "decision_id": response.decision_id,
    }
    return {name: value for name, value in found.items() if value}


class Access(Enum):
    """Who gets an answer. What a caller may do is policy."""

    OPEN = "open"  # everyone; identified callers see more
    CALLER = "caller"  # identified callers: token, certificate, socket, or this machine
    LOCAL = "machine"  # everyone on this machine, elsewhere as CALLER
    CONTROL = "control"  # the user at the control socket


class Body(Enum):
    """The body that an operation accepts."""

    NONE = "none"
    JSON = "json"
    BATCH = "batch"
    SOURCE = "source"  # JSON, or an archive


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `point` is the decision point, so that refusals are recorded as its denies."""

    name: str
    handler: Callable[[Any, Exchange], Awaitable[Response]]
    """Takes the `engine.api.app.App`."""
    access: Access = Access.CALLER
    body: Body = Body.NONE
    point: str | None = None
    query: frozenset[str] | None = frozenset()
    """Names of query parameters; None if the query belongs to another service and may be any text."""
    media_code: str = "engine.media_type"
    """The code for a body of another media type."""
    refuses: bool = False
    """Whether the handler answers callers that are not identified, in a form of its own."""


Routes = Mapping[str, Mapping[str, Operation]]
"""By path. `{run_id}`, or `{id}` at its end, matches any last part, `{id}` any part before it, `{path}` the rest."""

ANYTHING_BELOW = "/v1/envoy/"
"""Below this are the paths of other services."""


def methods_of(table: Routes, path: str) -> Mapping[str, Operation] | None:
    """The operation of a path; None if nothing is served there."""
    found = table.get(path)
    if found is None and path.startswith(ANYTHING_BELOW):
        return table.get(ANYTHING_BELOW + "{path}")
    if found is None and len(parts := path.split("/")) > 2 and parts[-1]:  # noqa: PLR2004
        found = table.get("/".join([*parts[:-1], "{run_id}"])) or table.get("/".join([*parts[:-1], "{id}"]))
        if found is None and parts[-2]:
            found = table.get("/".join([*parts[:-2], "{id}", parts[-1]]))
    return found

"""The headers that mean something here, each within its alphabet and length; W3C trace context beside them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from engine.api.messages import Trace
from engine.errors import GatherError

if TYPE_CHECKING:
    from engine.api.messages import Exchange, Head

_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_KEY = re.compile(rb"[!-~]{1,255}")
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

_MEANT = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"transfer-encoding",
        b"x-agenta-runner-token",
        b"x-approval",
        b"x-request-id",
        b"x-run-id",
    }
)
"""Headers that may be there once: two readers could take different ones for the truth."""


def read_trace(head: Head) -> Trace:
    """The trace of a request with a span of our own; a new trace where `traceparent` is absent or invalid."""
    value = head.headers.get(b"traceparent")
    if value is not None and b"traceparent" not in head.repeated:
        found = _TRACEPARENT.fullmatch(value)
        if found is not None and found[1] != b"ff" and not (found[1] == b"00" and found[5]):
            trace_id = found[2].decode("ascii")
            if trace_id.strip("0") and found[3].strip(b"0"):
                return Trace(trace_id, os.urandom(8).hex(), found[4].decode("ascii"), found[3].decode("ascii"))
    random = os.urandom(24).hex()
    return Trace(random[:32], random[32:])


def read_request_id(head: Head) -> str | None:
    """The caller's id of this request, where it gave a valid one."""
    value = head.headers.get(b"x-request-id")
    return value.decode("ascii") if value is not None and _ID.fullmatch(value) else None


def read_headers(exchange: Exchange) -> None:
    """Run, approval and idempotency key of the request; refuses what is repeated or out of its alphabet."""
    headers = exchange.head.headers
    if exchange.head.repeated and (twice := exchange.head.repeated & _MEANT):
        exchange.refuse(_invalid(min(twice), "is there more than once", "send it once"))
    for name in headers.keys() & _READ:
        pattern = _KEY if name == b"idempotency-key" else _ID
        if not pattern.fullmatch(headers[name]):
            rule = "1 to 255 printable characters without spaces" if pattern is _KEY else "1 to 128 of A-Za-z0-9._:-"
            exchange.refuse(_invalid(name, "has characters or a length that are not taken", f"send {rule}"))
            continue
        value = headers[name].decode("ascii")
        if name == b"x-run-id":
            exchange.run = value
        elif name == b"x-approval":
            exchange.approval = value
        elif name == b"idempotency-key":
            exchange.idempotency_key = value


_READ = frozenset({b"x-run-id", b"x-approval", b"idempotency-key", b"x-request-id"})


class HeaderError(GatherError):
    """A header that cannot be taken; `fields` names it."""

    code = "engine.header_invalid"

    def __init__(self, name: str, problem: str, *, remedy: str, code: str | None = None) -> None:
        super().__init__(f"the header `{name}` {problem}", remedy=remedy, code=code)
        self.fields = ((name, problem),)


def _invalid(name: bytes, problem: str, remedy: str) -> HeaderError:
    return HeaderError(name.decode("ascii"), problem, remedy=remedy)


def check_media_type(exchange: Exchange, accepted: tuple[bytes, ...]) -> bytes | None:
    """The media type of the body when it is one of these and nothing else is said; otherwise a refusal."""
    headers = exchange.head.headers
    value = headers.get(b"content-type", b"")
    kind, _, parameters = value.partition(b";")
    kind = kind.strip().lower()
    charset = parameters.strip().lower().replace(b'"', b"")
    if b"content-encoding" in headers and headers[b"content-encoding"].strip().lower() != b"identity":
        exchange.refuse(
            HeaderError("content-encoding", "is not taken", remedy="send it as it is", code="engine.media_type")
        )
    elif kind not in accepted or (charset and charset != b"charset=utf-8"):
        names = ", ".join(name.decode("ascii") for name in accepted)
        exchange.refuse(
            HeaderError("content-type", "is not taken here", remedy=f"use {names}, in UTF-8", code="engine.media_type")
        )
    else:
        return kind
    return None

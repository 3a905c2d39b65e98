"""The headers that the engine reads, each within its alphabet and length, and the W3C trace context."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl

from engine.api.messages import Exchange, Head, Trace
from engine.errors import GatherError
from engine.model import Mode

_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_KEY = re.compile(rb"[!-~]{1,255}")
_TEXT = re.compile(rb"[ -~]{1,255}")
_OF_ID = (_ID, "1 to 128 of A-Za-z0-9._:-")
_READ = {
    b"x-run-id": ("run", *_OF_ID),
    b"x-approval": ("approval", *_OF_ID),
    b"x-request-id": (None, _TEXT, "1 to 255 printable characters"),
    b"idempotency-key": ("idempotency_key", _KEY, "1 to 255 printable characters without spaces"),
}
"""Headers with the field of an exchange that has their value, what they must match, and the same in words."""

_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

_MODES = {"mode=enforce": Mode.ENFORCE, "mode=check": Mode.CHECK}

_SINGLE = frozenset(
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
"""Headers that may occur once: of repeated ones, two readers could use different values."""


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
    """The caller's id of this request, where it sent a valid one."""
    value = head.headers.get(b"x-request-id")
    return value.decode("ascii") if value is not None and _TEXT.fullmatch(value) else None


def read_headers(exchange: Exchange) -> None:
    """Run, approval and idempotency key of the request; refuses repeated and malformed headers."""
    headers = exchange.head.headers
    if exchange.head.repeated and (twice := exchange.head.repeated & _SINGLE):
        exchange.refuse(_invalid(min(twice), "is repeated", "send it once"))
    for name, (attribute, pattern, rule) in _READ.items():
        value = headers.get(name)
        if value is not None and not pattern.fullmatch(value):
            exchange.refuse(_invalid(name, "has invalid characters or an invalid length", f"send {rule}"))
        elif value is not None and attribute is not None:
            setattr(exchange, attribute, value.decode("ascii"))


class HeaderError(GatherError):
    """An invalid header; `fields` names it."""

    code = "engine.header_invalid"

    def __init__(self, name: str, problem: str, *, remedy: str, code: str | None = None) -> None:
        super().__init__(f"the header `{name}` {problem}", remedy=remedy, code=code)
        self.fields = ((name, problem),)


def _invalid(name: bytes, problem: str, remedy: str) -> HeaderError:
    return HeaderError(name.decode("ascii"), problem, remedy=remedy)


def check_media_type(exchange: Exchange, accepted: tuple[bytes, ...], code: str = "engine.media_type") -> bytes | None:
    """The media type of the body if it is one of these, in UTF-8 and without a content encoding; otherwise refuses."""
    headers = exchange.head.headers
    value = headers.get(b"content-type", b"")
    kind, _, parameters = value.partition(b";")
    kind = kind.strip().lower()
    charset = parameters.strip().lower().replace(b'"', b"")
    if b"content-encoding" in headers and headers[b"content-encoding"].strip().lower() != b"identity":
        wrong = "content-encoding", "is not supported", "send the body without encoding"
    elif kind not in accepted or (charset and charset != b"charset=utf-8"):
        names = ", ".join(name.decode("ascii") for name in accepted)
        wrong = "content-type", "is not supported here", f"use {names}, in UTF-8"
    else:
        return kind
    name, problem, remedy = wrong
    exchange.refuse(HeaderError(name, problem, remedy=remedy, code=code))
    return None


def read_query(exchange: Exchange) -> None:
    """The parameters of the query, and its mode (default: `enforce`); refuses anything else."""
    query, known = exchange.head.query, exchange.operation.query
    if not query or known is None:
        return
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=16, separator="&")
    except ValueError:
        exchange.refuse(QueryError("&", "has more than 16 fields"))
        return
    names = [name for name, _ in fields]
    unknown = [name for name in names if name not in known]
    if unknown:
        label = "".join(c if c.isalnum() or c in "_-" else "?" for c in unknown[0][:32])
        exchange.refuse(QueryError(label, "is unknown"))
    elif len(names) > len(set(names)):
        exchange.refuse(QueryError(names[0], "is repeated"))
    elif "mode" not in names:
        exchange.query = dict(fields)
    elif query in _MODES:
        exchange.mode = _MODES[query]
    else:
        exchange.refuse(QueryError("mode", "is neither `check` nor `enforce`"))


class QueryError(GatherError):
    """An invalid query; `fields` names the parameter, never its value."""

    code = "engine.query_invalid"

    def __init__(self, name: str, problem_: str) -> None:
        super().__init__(
            f"the query parameter `{name}` {problem_}",
            remedy="GET /openapi.json lists the parameters; credentials go into headers",
        )
        self.fields = ((name, problem_),)

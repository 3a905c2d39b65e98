"""Limits of one listener, with units and reasons, and the refusals of larger requests."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import EngineError, GatherError


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Limits of the decision API; together they bound its memory.

    One caller gets at most half of the connections, body memory, archives and turns (load.py).
    """

    connections: int = 2048  # each costs about 10 KiB while it is idle
    head_bytes: int = 16 << 10  # request line and headers; browsers and proxies stay below 8 KiB
    headers: int = 64  # of one request
    head_seconds: float = 10.0  # from the first byte of a request to the end of its headers
    body_seconds: float = 30.0  # from the end of the headers to the end of a JSON body
    upload_seconds: float = 900.0  # the same for an archive; 1 GiB at 10 Mbit/s
    idle_seconds: float = 75.0  # between two requests; longer than the 60 of common load balancers
    write_seconds: float = 30.0  # how long a client may leave an answer unread
    drop_bytes: int = 256 << 10  # of a refused body; for a longer one the answer does not wait
    linger_seconds: float = 5.0  # reading on after such an answer, so that the client gets it before the close
    linger_bytes: int = 64 << 20  # read and dropped meanwhile
    body_bytes: int = 4 << 20  # JSON of one request
    framing_bytes: int = 64 << 10  # of a chunked body besides its bytes, on top of one for each of them
    trailer_bytes: int = 16 << 10  # of one without any byte of the body: trailers, extensions of one chunk
    batch_bytes: int = 32 << 20  # JSON of a batch
    upload_bytes: int = 1 << 30  # an archive, packed
    all_bodies_bytes: int = 128 << 20  # JSON bodies in memory of all connections together
    uploads: int = 8  # archives received at once
    depth: int = 32  # nesting of a JSON body, as for documents
    string_characters: int = 1 << 20  # one string, or one key
    number_characters: int = 64  # one number as written
    nodes: int = 200_000  # values of one JSON body
    batch_nodes: int = 500_000  # values of a batch
    batch_items: int = 1_000  # requests of one batch
    running: int = 64  # decisions in progress; OPA evaluates only a few at once
    waiting: int = 2_048  # decisions waiting for their turn; more are refused with 503
    batches: int = 4  # batches in progress
    stop_seconds: float = 30.0  # for what was accepted, once the engine stops
    refusal_seconds: float = 60.0  # for which callers that are not identified share one recorded deny a point
    failures_burst: int = 10  # wrong credentials of one peer before they are refused unread
    failures_per_second: float = 1.0  # and how fast that allowance comes back
    all_failures_burst: int = 200  # the same for all peers together
    all_failures_per_second: float = 20.0


def too_large(limit: int) -> EngineError:
    """The refusal of a body over the limit."""
    return GatherError(
        f"the body is larger than {limit} bytes", remedy="send less in one request", code="engine.body_too_large"
    )


def too_much_framing() -> EngineError:
    """The refusal of a chunked body that is mostly framing."""
    return GatherError(
        "the body has too much framing overhead: trailers, chunk extensions or very small chunks",
        remedy="send larger chunks, or a `content-length`",
        code="engine.body_too_large",
    )


def too_large_head(limits: ApiLimits) -> EngineError:
    """The refusal of a head over the limits."""
    return GatherError(
        f"there are more than {limits.headers} headers, or they are longer than {limits.head_bytes} bytes",
        remedy="send fewer headers",
        code="engine.head_too_large",
    )

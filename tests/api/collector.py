"""An OpenTelemetry collector on this machine: takes OTLP over HTTP, and can be slow or refuse."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Span:
    """One span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    error: bool
    start: int
    end: int
    attributes: dict[str, Any]


@dataclass(slots=True)
class Collector:
    """What came, byte by byte and as spans. While `open` is not set nothing is answered."""

    status: int = 200
    url: str = ""
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)

    def requests(self) -> list[ExportTraceServiceRequest]:
        """Everything posted so far, read with the schema of the standard."""
        return [ExportTraceServiceRequest.FromString(body) for _, _, body in tuple(self.posts)]

    def spans(self, operation: str | None = None) -> list[Span]:
        """Every span so far, or those of one operation."""
        found = [
            _span(span)
            for request in self.requests()
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return [span for span in found if operation in {None, span.name}]

    def bytes(self) -> bytes:
        """All that arrived, headers too."""
        return b"\n".join(f"{path} {headers}".encode() + body for path, headers, body in tuple(self.posts))


@contextmanager
def collecting(*, status: int = 200, slow: bool = False) -> Iterator[Collector]:
    """A collector on any free port; a slow one reads what is posted and answers only at its end."""
    collector = Collector(status)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            collector.open.wait()
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  (the name is inherited)
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away while it waited is what some tests want."""

    if not slow:
        collector.open.set()
    with Server(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            collector.open.set()
            server.shutdown()
            thread.join()


def _span(span: Any) -> Span:
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        error=span.status.code == span.status.STATUS_CODE_ERROR,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes={item.key: _value(item.value) for item in span.attributes},
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)

"""OpenTelemetry spans of requests, for a collector that may be slow or down. Only file that imports the packages.

A span states which operation was requested and how it ended, without content: no arguments, results, bodies,
headers, credentials, principals or messages (B41, B43). The event loop puts a few values into a bounded queue;
a background thread makes spans of them and sends them. Spans that no collector accepts are counted as lost.
The variables OTEL_EXPORTER_OTLP_* add headers and certificates for the collector.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from engine.api.messages import Exchange, Response, Trace, outline
from engine.api.oplog import Level, OperationalLog
from engine.errors import GatherError, install_extra
from engine.version import __version__

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
except ImportError as missing:
    raise GatherError(
        "`--otlp` needs packages that are not installed",
        remedy=install_extra("otel"),
        code="engine.otlp_unavailable",
    ) from missing


_SPANS = 8_192
"""Spans buffered for a slow collector, about 1 KiB each; more are dropped and counted."""

_BATCH = 128
"""Spans sent at once; making a batch of them takes a few milliseconds of the interpreter."""

_GATHER_SECONDS = 0.5
_SEND_SECONDS = 5.0
"""For one batch, tries and pauses between them together."""

_STOP_SECONDS = 2.0
"""What is left is sent within this time when the engine stops."""

_PATH = "/v1/traces"
_RESOURCE = {"service.name": "admission-engine", "service.version": __version__}
_SCOPE = InstrumentationScope("engine.api", __version__)


class Tracing:
    """Takes answered requests from the event loop and exports them to `url` in the background.

    Raises GatherError when this is not the address of a collector.
    """

    def __init__(self, url: str, log: OperationalLog) -> None:
        endpoint = _endpoint(url)
        _silence()
        try:
            self._exporter: SpanExporter = OTLPSpanExporter(endpoint, timeout=_SEND_SECONDS)
        except Exception as error:
            raise GatherError(
                f"the exporter of spans cannot start: {type(error).__name__}",
                remedy="correct the environment variables that begin with OTEL_",
                code="engine.otlp_invalid",
            ) from error
        self._resource = Resource(_RESOURCE)
        self._log = log
        self._waiting: deque[_Answered] = deque()
        self._dropped = 0  # counted on the event loop
        self._failed = 0  # counted in the thread
        self._failing = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Spans that no collector accepted."""
        return self._dropped + self._failed

    def answered(self, exchange: Exchange, response: Response, nanoseconds: int) -> None:
        """Queue the span of one answered request; never waits."""
        if len(self._waiting) >= _SPANS:
            self._dropped += 1
            return
        attributes = {"status": response.status, **outline(exchange, response)}
        if response.outcome is not None:
            attributes["mode"] = exchange.mode.value
        end = time.time_ns()
        self._waiting.append(_Answered(exchange.operation.name, exchange.trace, end - nanoseconds, end, attributes))

    def close(self) -> None:
        """Send what is left, for a bounded time, and log how many spans were lost."""
        self._closing.set()
        self._thread.join(_STOP_SECONDS)
        self._exporter.shutdown()
        if lost := self.lost + len(self._waiting):
            self._log.event("spans_lost", Level.WARNING, spans=lost)

    def _work(self) -> None:
        while not self._closing.wait(_GATHER_SECONDS):
            self._send()
        self._send()

    def _send(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            sent = self._sent(batch)
            if not sent:
                self._failed += len(batch)
            if sent is self._failing:
                self._failing = not sent
                name, level = ("spans_sent_again", Level.INFO) if sent else ("spans_not_sent", Level.WARNING)
                self._log.event(name, level, lost=self.lost)

    def _sent(self, batch: list[_Answered]) -> bool:
        try:
            return self._exporter.export([self._span(one) for one in batch]) is SpanExportResult.SUCCESS
        except Exception:  # noqa: BLE001  (the thread continues whatever happens to spans)
            return False

    def _span(self, one: _Answered) -> ReadableSpan:
        trace = one.trace
        failed = one.attributes["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR
        return ReadableSpan(
            one.name,
            context=_context(trace.trace_id, trace.span_id, remote=False),
            parent=None if trace.parent_id is None else _context(trace.trace_id, trace.parent_id, remote=True),
            resource=self._resource,
            attributes=one.attributes,
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
            start_time=one.start,
            end_time=one.end,
            instrumentation_scope=_SCOPE,
        )


class _Answered(NamedTuple):
    """The data stored about a request; times in nanoseconds since 1970."""

    name: str
    trace: Trace
    start: int
    end: int
    attributes: dict[str, Any]


def _context(trace_id: str, span_id: str, *, remote: bool) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), remote, TraceFlags(TraceFlags.SAMPLED))


def _endpoint(url: str) -> str:
    """Where spans are posted below this address."""
    try:
        parts = urlsplit(url)
        taken = (
            url.isascii()
            and url.isprintable()
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not ({"@", "?", "#", " ", "\\"} & set(url))
        )
    except ValueError:
        taken = False
    if not taken:
        raise GatherError(
            "the address given with `--otlp` is not valid",
            remedy="use http or https with host and port, such as http://127.0.0.1:4318; "
            "credentials go into OTEL_EXPORTER_OTLP_HEADERS",
            code="engine.otlp_invalid",
        )
    return url if url.endswith(_PATH) else url.rstrip("/") + _PATH


def _silence() -> None:
    """The packages write lines of their own to standard error, which is the operational log."""
    for name in ("opentelemetry", "urllib3"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False

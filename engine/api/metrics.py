"""Prometheus metrics: counts and times by point, outcome and code. No ids, no content, no names of callers.

Counting happens on the event loop only and costs a dictionary access; the library writes the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from engine import __version__
from engine.api.messages import Response

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange
    from engine.engine import Status
    from engine.model import Decision

_MEDIA_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


async def metrics(api: Api, _exchange: Exchange) -> Response:
    """All metrics as text."""
    return Response(200, api.metrics.text(api, await api.status()), _MEDIA_TYPE)


class _Times:
    """A histogram of seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        found, sum_ = [], 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self.counts, strict=True):
            sum_ += count
            found.append((bound, float(sum_)))
        return found


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, ...]] = Counter()
        self.findings: Counter[tuple[str, ...]] = Counter()
        self.unidentified: Counter[str] = Counter()
        self.responses: Counter[tuple[str, ...]] = Counter()
        self.verbs: dict[tuple[str, ...], _Times] = {}
        self.seconds: dict[tuple[str, ...], _Times] = {}

    def decided(self, decision: Decision, durations: Mapping[str, int]) -> None:
        """Count one recorded decision; `durations` has microseconds a verb."""
        point = decision.point
        self.decisions[point, decision.mode, decision.outcome] += 1
        for finding in decision.findings:
            self.findings[point, finding.code, finding.level] += 1
        for verb, microseconds in durations.items():
            times = self.verbs.get((point, verb))
            if times is None:
                times = self.verbs[point, verb] = _Times()
            times.add(microseconds / 1e6)

    def answered(self, operation: str, status: int, nanoseconds: int) -> None:
        """Count one HTTP answer."""
        self.responses[operation, str(status)] += 1
        times = self.seconds.get((operation,))
        if times is None:
            times = self.seconds[operation,] = _Times()
        times.add(nanoseconds / 1e9)

    def text(self, api: Api, status: Status) -> bytes:
        """Everything, with the state of this moment."""
        registry = CollectorRegistry()
        registry.register(_Everything(self, api, status))
        return generate_latest(registry)


class _Everything(Collector):
    def __init__(self, counted: Metrics, api: Api, status: Status) -> None:
        self._counted = counted
        self._api = api
        self._status = status

    def collect(self) -> Iterator[Metric]:
        counted = self._counted
        yield _counter("engine_decisions", "Decisions recorded.", ("point", "mode", "outcome"), counted.decisions)
        yield _counter("engine_findings", "Findings of decisions.", ("point", "code", "level"), counted.findings)
        yield _counter(
            "engine_unidentified",
            "Requests refused before it was known who asks.",
            ("code",),
            {(code,): count for code, count in counted.unidentified.items()},
        )
        yield _counter("engine_http_responses", "HTTP answers.", ("operation", "status"), counted.responses)
        yield _histogram("engine_verb_seconds", "Time of a verb.", ("point", "verb"), counted.verbs)
        yield _histogram("engine_http_seconds", "From headers to answer.", ("operation",), counted.seconds)
        yield from self._now()

    def _now(self) -> Iterator[Metric]:
        api, status = self._api, self._status
        gauges = {
            "engine_http_connections": ("Open connections.", len(api.connections)),
            "engine_http_body_bytes": ("Bytes of bodies in memory.", api.load.bytes),
            "engine_decisions_in_flight": ("Decisions under way.", api.load.running + api.batches.running),
            "engine_decisions_waiting": ("Decisions waiting for their turn.", api.load.waiting + api.batches.waiting),
            "engine_opa_up": ("Whether OPA answers.", status.opa),
            "engine_record_up": ("Whether the record can be written.", status.record),
            "engine_state_up": ("Whether the state can be written.", status.state),
        }
        for name, (words, value) in gauges.items():
            yield GaugeMetricFamily(name, words, float(value))
        counts = {
            "engine_overloaded": ("Requests refused because too much was under way.", api.refused),
            "engine_log_lines_dropped": ("Lines of the operational log nobody read in time.", api.log.dropped),
            "engine_opa_restarts": ("Restarts of OPA.", status.opa_restarts),
        }
        if api.tracing is not None:
            counts["engine_spans_lost"] = ("Spans that no collector took.", api.tracing.lost)
        for name, (words, count) in counts.items():
            yield CounterMetricFamily(name, words, float(count))
        yield InfoMetricFamily("engine_build", "Version of the engine.", {"version": __version__})


def _counter(
    name: str, words: str, labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, words, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, float(count))
    return family


def _histogram(
    name: str, words: str, labels: tuple[str, ...], times: Mapping[tuple[str, ...], _Times]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, words, labels=labels)
    for values, one in times.items():
        family.add_metric(values, one.buckets(), one.total)
    return family

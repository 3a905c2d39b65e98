"""Prometheus metrics: counts and times by point, outcome and code. No ids, no content, no names of callers.

Counting happens on the event loop only and costs a dictionary access; the library writes the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from engine.version import __version__

if TYPE_CHECKING:
    from engine.model import Decision

MEDIA_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


@dataclass(slots=True)
class _Times:
    """A histogram of seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, ...]] = Counter()
        self.findings: Counter[tuple[str, ...]] = Counter()
        self.unidentified: Counter[str] = Counter()
        self.responses: Counter[tuple[str, ...]] = Counter()
        self.verbs: defaultdict[tuple[str, ...], _Times] = defaultdict(_Times)
        self.seconds: defaultdict[tuple[str, ...], _Times] = defaultdict(_Times)

    def decided(self, decision: Decision, durations: Mapping[str, int]) -> None:
        """Count one recorded decision; `durations` has microseconds a verb."""
        point = decision.point
        self.decisions[point, decision.mode, decision.outcome] += 1
        for finding in decision.findings:
            self.findings[point, finding.code, finding.level] += 1
        for verb, microseconds in durations.items():
            self.verbs[point, verb].add(microseconds / 1e6)

    def answered(self, operation: str, status: int, nanoseconds: int) -> None:
        """Count one HTTP answer."""
        self.responses[operation, str(status)] += 1
        self.seconds[operation,].add(nanoseconds / 1e9)

    def text(self, gauges: Mapping[str, tuple[str, float]], counts: Mapping[str, tuple[str, float]]) -> bytes:
        """Everything; with gauges and further counts of this moment, each as name to help text and value."""
        return generate_latest(_Everything(self, gauges, counts))


@dataclass(frozen=True, slots=True)
class _Everything(Collector):
    _counted: Metrics
    _gauges: Mapping[str, tuple[str, float]]
    _counts: Mapping[str, tuple[str, float]]

    def collect(self) -> Iterator[Metric]:
        counted = self._counted
        unidentified = {(code,): count for code, count in counted.unidentified.items()}
        for name, words, labels, counts in (
            ("engine_decisions", "Decisions recorded.", ("point", "mode", "outcome"), counted.decisions),
            ("engine_findings", "Findings of decisions.", ("point", "code", "level"), counted.findings),
            ("engine_unidentified", "Requests refused before the caller was identified.", ("code",), unidentified),
            ("engine_http_responses", "HTTP answers.", ("operation", "status"), counted.responses),
        ):
            family = CounterMetricFamily(name, words, labels=labels)
            for values, number in counts.items():
                family.add_metric(values, float(number))
            yield family
        yield _histogram("engine_verb_seconds", "Duration of each verb.", ("point", "verb"), counted.verbs)
        yield _histogram("engine_http_seconds", "Time from headers to answer.", ("operation",), counted.seconds)
        for name, (words, value) in self._gauges.items():
            yield GaugeMetricFamily(name, words, float(value))
        for name, (words, count) in self._counts.items():
            yield CounterMetricFamily(name, words, count)
        yield InfoMetricFamily("engine_build", "Version of the engine.", {"version": __version__})


def _histogram(
    name: str, words: str, labels: tuple[str, ...], times: Mapping[tuple[str, ...], _Times]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, words, labels=labels)
    for values, one in times.items():
        counts = map(float, accumulate(one.counts))
        family.add_metric(values, list(zip((*map(str, _SECONDS), "+Inf"), counts, strict=True)), one.total)
    return family

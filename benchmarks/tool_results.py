"""T3: the decision on a result of a tool divided by that on a short one, as text and as JSON.

An engine in this process, its record on disk. A result is searched for secrets, hidden characters, links and
instructions to the model; what is shown is made of it. No goal is set: 64 KiB are a thousand times the text of the
short result, and what matters is that the ratio does not grow from release to release.

T3 linear is the CPU time of the search alone, a byte of 1 MiB divided by one of 64 KiB.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.measure import Bench, Row, interleaved
from benchmarks.tool_arguments import TIMES, taken
from engine.documents.canonical import digest
from engine.engine import Engine
from engine.facts.tools.result_content import ResultContent
from engine.policy_bundle.lookups import Lookups
from engine.settings import Settings

_BYTES, _MANY = 1 << 16, 16
_LINEAR = 1.0
_TOOL = "files_read"
_LINE = "2026-11-21 10:00:00 GET https://docs.example.com/guide/page?id={} 200, for ana@example.org in {} ms\n"


def rows(bench: Bench) -> Iterator[Row]:
    """Wall time: one caller, one decision after the other."""
    results = _results(_BYTES)
    with Engine(Settings(state=bench.folder("t3") / "state", cache=bench.cache)) as engine:
        short = partial(taken, engine, request("done", "text"), "tool_result")
        for kind, (text, media) in results.items():
            parts = [partial(taken, engine, request(text, media), "tool_result"), short]
            found = interleaved(parts, bench.rounds, partial(bench.report_round, f"T3 {kind}"))
            yield Row("T3", f"{kind} of 64 KiB as a result ÷ one word", None, tuple(many / one for many, one in found))
            checked = tuple(seconds / TIMES * 1e6 for seconds, _ in found)
            yield Row("T3", f"  the result with {kind}, microseconds", None, checked, "µs")
        with engine.opened.policy() as serving:
            lookups = serving.lookups
        for kind, (text, media) in results.items():
            sizes = [
                partial(_searched, lookups, *_results(_BYTES * _MANY)[kind]),
                partial(_searched, lookups, text, media),
            ]
            costs = interleaved(sizes, bench.rounds, partial(bench.report_round, f"T3 linear {kind}"))
            grown = tuple(large / small for large, small in costs)
            yield Row("T3", f"linear: search of {kind}, CPU a byte, 1 MiB ÷ 64 KiB", _LINEAR, grown)
            each = tuple(one * 1e9 for _, one in costs)
            yield Row("T3", f"  search of {kind}, CPU nanoseconds a byte", None, each, "ns")


def _results(size: int) -> dict[str, tuple[str, str]]:
    """Texts of about this size, with their media types."""
    lines = [_LINE.format(number, number % 97) for number in range(size // len(_LINE))]
    found = json.dumps([{"id": at, "line": one} for at, one in enumerate(lines)])
    return {"a log": ("".join(lines), "text"), "JSON": (found, "json")}


def _searched(lookups: Lookups, text: str, media: str) -> float:
    """Seconds of CPU time for each byte of a text."""
    started = time.process_time()
    ResultContent(text, media, lookups.forms, lookups.markers)
    return (time.process_time() - started) / len(text)


def request(text: str, media: str) -> dict[str, Any]:
    """A result of a tool with this text."""
    data = text.encode("utf-8")
    result = {"bytes": len(data), "digest": digest(data), "media": media, "text": text}
    return {"tool": _TOOL, "status": "ok", "result": result, "side_effects": []}

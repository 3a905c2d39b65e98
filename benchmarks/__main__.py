"""`scripts/bench [ROW…]`: measure, report progress, print one table."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import (
    bulk,
    environments,
    episodes,
    equal_cases,
    fetching,
    latency,
    licenses,
    linear,
    memory,
    opa_killed,
    policy_swap,
    raydata,
    record_check,
    replaying,
    requirement_first,
    sandbox,
    shared_state,
    startup,
    throughput,
    tool_arguments,
    tool_commands,
    tool_results,
    tool_rules,
)
from benchmarks.measure import FEWEST, Bench, NotMeasuredError, Row
from benchmarks.table import document, table
from engine.binaries import find_binary
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings

_PYTHON = platform.python_version()
_ROOT = Path(__file__).parent.parent
Measurement = Callable[[Bench], Iterator[Row]]
"""Gives the rows that were asked for, of all those that it can measure together."""
_ROWS: Mapping[str, Measurement] = {
    "P1": throughput.rows,
    "P2": throughput.rows,
    "P3": throughput.rows,
    "P4": latency.rows,
    "P5": throughput.rows,
    "P6": throughput.rows,
    "P7": bulk.rows,
    "P8": bulk.rows,
    "P9": requirement_first.rows,
    "P10": throughput.rows,
    "P11": record_check.rows,
    "P12": sandbox.rows,
    "P13": sandbox.rows,
    "P14": startup.rows,
    "P15": opa_killed.rows,
    "P16": policy_swap.rows,
    "P17": tool_rules.rows,
    "licenses": licenses.rows,
    "P18": memory.rows,
    "P19": equal_cases.rows,
    "scale": linear.rows,
    "actions": sandbox.rows,
    "analysis": sandbox.rows,
    "T1": tool_arguments.rows,
    "T2": tool_commands.rows,
    "T3": tool_results.rows,
    "E1": environments.rows,
    "F1": fetching.rows,
    "F2": fetching.rows,
    "F3": fetching.rows,
    "episodes": episodes.rows,
    "P23": replaying.rows,
    "state": shared_state.rows,
    "P24": raydata.rows,
}


def main() -> None:
    """Run the rows that were asked for; a row that falls short ends no differently than one that passes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _options()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="engine-bench-") as scratch:
        bench = _bench(Path(scratch), options)
        rows, refusals = measure(bench)
    _end()
    load = (load_before, os.getloadavg()[0])
    print(table(rows))
    print(
        f"Load {load[0]:.1f} before and {load[1]:.1f} after on {os.cpu_count()} cores, Python {_PYTHON}, "
        f"OPA {bench.binary.version}; {bench.rounds} rounds. Short of its goal is what misses it by more than 10 %."
    )
    if options.json is not None:
        options.json.write_text(document(rows, _machine(bench, load)), encoding="utf-8")
    if refusals:
        sys.exit("\n".join(refusals))


def measure(bench: Bench) -> tuple[list[Row], list[str]]:
    """All rows that could be measured, those before an interrupt, and why the others could not."""
    rows: list[Row] = []
    refusals = []
    for measurement in dict.fromkeys(_ROWS[name] for name in _ROWS if name in bench.asked):
        names = [name for name in _ROWS if name in bench.asked and _ROWS[name] is measurement]
        try:
            rows += measurement(bench)
        except NotMeasuredError as error:
            refusals.append(f"bench: not measured: {', '.join(names)}: {error}")
            bench.report(refusals[-1])
        except KeyboardInterrupt:
            refusals.append(f"bench: interrupted: {', '.join(names)} and the rows after it are not measured")
            break
    return rows, refusals


def _machine(bench: Bench, load: tuple[float, float]) -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load_before": load[0],
        "load_after": load[1],
        "python": _PYTHON,
        "opa": bench.binary.version,
        "rules": bench.policy.rules.revision,
        "values": bench.policy.values.revision,
        "rounds": bench.rounds,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure ratios and print one table.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(_ROWS)}; all of them when none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every value to this file")
    parser.add_argument("--rounds", type=int, default=7, help=f"rounds that count, at least {FEWEST} (default: 7)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long one part of a round under load takes")
    options = parser.parse_args()
    if unknown := [name for name in options.rows if name not in _ROWS]:
        parser.error(f"there is no row `{unknown[0]}`: use {', '.join(_ROWS)}")
    if options.rounds < FEWEST:
        parser.error(f"fewer than {FEWEST} rounds say nothing")
    return options


def _bench(scratch: Path, options: argparse.Namespace) -> Bench:
    settings = Settings()
    binary = find_binary()
    sources = PolicySources(settings.rego, settings.policy, settings.recipe)
    _report("building the policy")
    cache = scratch / "cache" / "admission-engine"
    policy = build(sources, POINTS, binary, cache)
    asked = frozenset(options.rows or _ROWS)
    return Bench(_ROOT, scratch, cache, binary, policy, options.rounds, _report, asked, options.seconds)


_progress: dict[str, Any] = {"next": 0.0}


def _report(text: str) -> None:
    terminal = sys.stderr.isatty()
    if not terminal and time.monotonic() < _progress["next"]:
        return
    _progress["next"] = time.monotonic() + 2.0
    sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
    sys.stderr.flush()


def _end() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


if __name__ == "__main__":
    main()

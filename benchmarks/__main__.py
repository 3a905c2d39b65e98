"""`scripts/bench [ROW…]`: measure, tell what is going on, print one table."""

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

from benchmarks import licenses, linear, requirement_first, startup
from benchmarks.measure import FEWEST, Bench, Row
from benchmarks.table import document, table
from engine.opa.binary import find_binary
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings

_PYTHON = platform.python_version()
_ROOT = Path(__file__).parent.parent
_ROWS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "P9": requirement_first.rows,
    "P14": startup.rows,
    "P17": licenses.rows,
    "scale": linear.rows,
}


def main() -> None:
    """Run the rows that were asked for; a row that falls short ends no differently than one that passes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _options()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="engine-bench-") as scratch:
        bench = _bench(Path(scratch), options.rounds)
        try:
            rows = [row for name in options.rows or _ROWS for row in _ROWS[name](bench)]
        except RuntimeError as error:  # what was to be measured did not do what it should
            sys.exit(f"bench: {error}")
    _end()
    load = (load_before, os.getloadavg()[0])
    print(table(rows))
    print(
        f"Load {load[0]:.1f} before and {load[1]:.1f} after on {os.cpu_count()} cores, Python {_PYTHON}, "
        f"OPA {bench.binary.version}; {bench.rounds} rounds. Short of its goal is what misses it by more than 10 %."
    )
    if options.json is not None:
        options.json.write_text(document(rows, _machine(bench, load)), encoding="utf-8")


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
    options = parser.parse_args()
    if unknown := [name for name in options.rows if name not in _ROWS]:
        parser.error(f"there is no row `{unknown[0]}`: use {', '.join(_ROWS)}")
    if options.rounds < FEWEST:
        parser.error(f"fewer than {FEWEST} rounds say nothing")
    return options


def _bench(scratch: Path, rounds: int) -> Bench:
    settings = Settings()
    binary = find_binary()
    sources = PolicySources(settings.rego, settings.policy, settings.recipe)
    _say("building the policy")
    policy = build(sources, frozenset(POINTS), binary, scratch / "cache" / "admission-engine")
    return Bench(_ROOT, scratch, binary, policy, rounds, _say)


_told: dict[str, Any] = {"next": 0.0}


def _say(text: str) -> None:
    terminal = sys.stderr.isatty()
    if not terminal and time.monotonic() < _told["next"]:
        return
    _told["next"] = time.monotonic() + 2.0
    sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
    sys.stderr.flush()


def _end() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


if __name__ == "__main__":
    main()

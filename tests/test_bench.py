from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.licenses import license_rows
from benchmarks.linear import write_bundle
from benchmarks.measure import Row, interleaved, ratios
from benchmarks.processes import cost, environment
from benchmarks.table import document, table
from engine.engine import Engine
from engine.model import Outcome
from engine.settings import Settings


def _counting(*values: float) -> Iterator[float]:
    yield from values


def test_rounds_run_in_turn_and_the_first_is_thrown_away() -> None:
    order: list[str] = []
    told: list[tuple[int, int]] = []

    def part(name: str) -> str:
        order.append(name)
        return f"{name}{len(order)}"

    found = interleaved((lambda: part("a"), lambda: part("b")), 2, lambda done, of: told.append((done, of)))
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert found == [("a3", "b4"), ("a5", "b6")]
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_ratio_divides_the_medians_of_its_round() -> None:
    over = _counting(900, 900, 900, 3, 1, 100)
    under = _counting(1, 1, 1, 2, 50, 1)
    assert ratios(lambda: next(over), lambda: next(under), times=3, rounds=1) == (1.5,)


@pytest.mark.parametrize(
    ("values", "goal", "verdict"),
    [
        ((1.0, 9.0, 1.2), 1.3, "pass"),
        ((1.43, 1.43, 1.43), 1.3, "pass"),
        ((1.44, 1.44, 1.44), 1.3, "falls short"),
        ((5.0, 5.0, 5.0), None, ""),
    ],
)
def test_only_a_median_beyond_ten_percent_falls_short(
    values: tuple[float, ...], goal: float | None, verdict: str
) -> None:
    assert Row("P0", "something", goal, values).verdict == verdict


def test_the_table_shows_goal_median_min_max_and_verdict() -> None:
    rows = [Row("P0", "a ÷ b", 1.5, (1.0, 2.0, 3.0)), Row("scale", "seconds", None, (0.25,), "s")]
    assert table(rows).splitlines() == [
        "row    what       goal  median     min     max",
        "-----  -------  ------  ------  ------  ------  -----------",
        "P0     a ÷ b    <= 1.5    2.00    1.00    3.00  falls short",
        "scale  seconds          0.25 s  0.25 s  0.25 s",
    ]


def test_the_json_has_every_value() -> None:
    told = json.loads(document([Row("P0", "a ÷ b", 1.5, (1.0, 2.0, 3.0))], {"cores": 2}))
    assert told["machine"] == {"cores": 2}
    assert told["rows"] == [
        {
            "row": "P0",
            "what": "a ÷ b",
            "unit": "x",
            "goal": 1.5,
            "median": 2.0,
            "min": 1.0,
            "max": 3.0,
            "verdict": "falls short",
            "values": [1.0, 2.0, 3.0],
        }
    ]


def test_a_process_that_fails_is_not_measured(tmp_path: Path) -> None:
    surroundings = environment(tmp_path)
    assert cost([sys.executable, "-c", "pass"], tmp_path, surroundings).cpu > 0
    with pytest.raises(RuntimeError, match="ended with 3: why"):
        cost([sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"], tmp_path, surroundings)


def test_the_measured_process_sees_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "x")
    monkeypatch.setenv("ENGINE_STATE_DIR", "x")
    surroundings = environment(tmp_path)
    assert "PYTHONPATH" not in surroundings
    assert surroundings["ENGINE_STATE_DIR"] == str(tmp_path / "state")


def test_license_tables_differ_only_in_rows_nobody_asks_for() -> None:
    table_ = {key: {"category": key} for key in ("CC-BY-4.0", "CC0-1.0", "MIT", "Apache-2.0", "GPL-2.0-only")}
    few, many = license_rows(table_, 10), license_rows(table_, 1000)
    assert (len(few), len(many)) == (10, 1000)
    assert few.items() <= many.items()


def test_a_made_up_source_bundle_is_allowed(tmp_path: Path, settings: Settings) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    with Engine(settings, now=lambda: datetime(2026, 11, 21, tzinfo=UTC)) as engine:
        answer = engine.check("source", {"path": str(write_bundle(folder, 3)), "digest": None})
    assert answer.decision.outcome is Outcome.ALLOW

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from benchmarks import __main__ as command_line
from benchmarks import (
    bulk,
    environments,
    latency,
    memory,
    opa_killed,
    policy_swap,
    record_check,
    requirement_first,
    sandbox,
    shared_state,
    throughput,
    tool_arguments,
    tool_commands,
    tool_results,
    tool_rules,
)
from benchmarks.bare import post
from benchmarks.licenses import license_rows
from benchmarks.linear import write_bundle
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved, ratios
from benchmarks.opa_killed import first_and_longest
from benchmarks.policy_swap import Swap, judged
from benchmarks.processes import cost, environment
from benchmarks.table import document, table
from benchmarks.targets import Kind, started
from benchmarks.timed_load import Answer as TimedAnswer
from benchmarks.workload import workload
from benchmarks.wrk import Wrk
from engine.binaries import find_binary
from engine.engine import Engine
from engine.model import Outcome
from engine.points.registry import POINTS
from engine.policy_bundle.build import build
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings
from tests.facilities import needs

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


@pytest.fixture
def bench(settings: Settings) -> Iterator[Bench]:
    """One round that counts, and not a word. The paths of sockets have to be short."""
    sources = PolicySources(settings.rego, settings.policy, settings.recipe)
    policy = build(sources, POINTS, find_binary(), settings.cache)
    with TemporaryDirectory(prefix="engine-bench-") as scratch:
        yield Bench(
            ROOT, Path(scratch), settings.cache, find_binary(), policy, 1, lambda _: None, frozenset(), seconds=1.0
        )


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


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((0.7, 0.1, 0.9), "pass"), ((0.63, 0.63, 0.63), "pass"), ((0.62, 0.62, 0.62), "falls short")],
)
def test_a_minimum_is_missed_only_by_a_smaller_median(values: tuple[float, ...], verdict: str) -> None:
    row = Row("P0", "something", 0.7, values, least=True)
    assert row.verdict == verdict
    assert ">= 0.7" in table([row])


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
            "least": False,
            "verdict": "falls short",
            "values": [1.0, 2.0, 3.0],
        }
    ]


def test_a_process_that_fails_is_not_measured(tmp_path: Path) -> None:
    surroundings = environment(tmp_path)
    assert cost([sys.executable, "-c", "pass"], tmp_path, surroundings).cpu > 0
    with pytest.raises(NotMeasuredError, match="ended with 3: why"):
        cost([sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"], tmp_path, surroundings)


def test_an_unmeasurable_row_is_reported_and_the_others_are_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_: Bench) -> Iterator[Row]:
        yield Row("P1", "before", None, (1.0,))
        raise NotMeasuredError("wrk is missing")

    def giving(_: Bench) -> Iterator[Row]:
        yield Row("P7", "after", None, (1.0,))

    monkeypatch.setattr(command_line, "_ROWS", {"P1": refusing, "P2": refusing, "P3": giving, "P7": giving})
    rows, refusals = command_line.measure(replace(bench, asked=frozenset({"P1", "P2", "P7"})))
    assert [row.what for row in rows] == ["before", "after"]
    assert refusals == ["bench: not measured: P1, P2: wrk is missing"]


def test_a_missing_wrk_is_reported_with_its_install_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotMeasuredError, match="sudo apt-get install wrk"):
        Wrk.find(bench)


def test_the_measured_process_sees_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "x")
    monkeypatch.setenv("ENGINE_STATE_DIR", "x")
    surroundings = environment(tmp_path)
    assert "PYTHONPATH" not in surroundings
    assert surroundings["ENGINE_STATE_DIR"] == str(tmp_path / "state")


def test_license_tables_of_different_sizes_share_the_requested_rows() -> None:
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


def _told(sent: float, received: float, **more: Any) -> TimedAnswer:
    told = {"status": 200, "outcome": "allow", "rules": "r", "values": "old", "codes": ()}
    return TimedAnswer(sent, received, **{**told, **more})


SWAP = Swap(begun=10.0, acknowledged=12.0, before=("old", "allow"), after=("new", "deny"))
OLD, NEW = {"values": "old", "outcome": "allow"}, {"values": "new", "outcome": "deny"}


@pytest.mark.parametrize(
    ("sent", "received", "told", "wrong", "failed"),
    [
        (9.0, 9.5, OLD, 0, 0),
        (11.0, 11.5, OLD, 0, 0),
        (11.0, 11.5, NEW, 0, 0),
        (11.9, 12.5, OLD, 0, 0),
        (12.1, 12.5, NEW, 0, 0),
        (12.1, 12.5, OLD, 1, 0),  # after the new one was acknowledged
        (9.0, 9.5, NEW, 1, 0),  # before any caller asked for it
        (11.0, 11.5, {"values": "new", "outcome": "allow"}, 1, 0),  # named, and not the one that decided
        (11.0, 11.5, {"values": "third", "outcome": "allow"}, 1, 0),
        (11.0, 11.5, {"values": None, "outcome": None, "status": 503}, 0, 1),
        (11.0, 11.5, {"values": None, "outcome": None, "status": 0}, 0, 1),
    ],
)
def test_an_answer_is_from_a_policy_served_between_question_and_answer(
    sent: float, received: float, told: dict[str, Any], wrong: int, failed: int
) -> None:
    steady = [_told(at / 100 - 0.02, at / 100) for at in range(700, 1000)]
    steady += [_told(at / 100 - 0.02, at / 100, **NEW) for at in range(1201, 1400)]
    found = judged([*steady, _told(sent, received, **told)], SWAP)
    assert (found.wrong, found.failed) == (wrong, failed)


def test_the_slowest_window_after_the_swap_is_divided_by_an_ordinary_one() -> None:
    steady = [_told(at / 100 - 0.02, at / 100) for at in range(700, 1000)]
    slow = [_told(at / 100 - 0.1, at / 100, **NEW) for at in range(1210, 1400)]
    found = judged([*steady, *slow], SWAP)
    assert found.swapping / found.ordinary == pytest.approx(5, rel=0.05)
    assert found.quiet / found.ordinary == pytest.approx(1, rel=0.05)


def test_a_wait_for_a_deny_counts_from_the_kill_or_from_the_question() -> None:
    closed = {"outcome": "deny", "values": None, "status": 503, "codes": ("policy_unavailable",)}
    answers = [
        _told(0.0, 0.99),  # answered before the kill, however late
        _told(0.5, 1.02, **closed),
        _told(1.5, 1.53, **closed),
        _told(1.6, 9.0),  # asked once OPA was back
    ]
    assert first_and_longest(answers, killed=1.0) == pytest.approx((0.02, 0.03))


@pytest.mark.parametrize(
    "told",
    [
        {"outcome": "deny", "codes": ("license_unknown",)},
        {"outcome": None, "status": 0},
        {"outcome": "confirm", "codes": ("policy_unavailable",)},
    ],
)
def test_anything_but_a_reserved_deny_is_not_measured(told: dict[str, Any]) -> None:
    with pytest.raises(NotMeasuredError, match="are no denies"):
        first_and_longest([_told(1.0, 1.01, **told)], killed=1.0)


def test_a_kill_that_no_caller_noticed_is_not_measured() -> None:
    with pytest.raises(NotMeasuredError, match="no caller was denied"):
        first_and_longest([_told(1.0, 1.01)], killed=1.0)


def test_the_workload_is_allowed_and_of_the_size_that_is_stated(bench: Bench) -> None:
    assert 800 < len(workload(bench).input_body) < 1_100


@pytest.mark.full
def test_the_fastapi_peer_gives_the_decision_of_its_opa(bench: Bench) -> None:
    with started(bench, "peer", workload(bench), {Kind.FASTAPI}) as targets:
        answer = json.loads(post(targets[Kind.FASTAPI].url, targets[Kind.FASTAPI].body.read_bytes()))
    assert answer["outcome"] == "allow"


def _once(parts: Sequence[Callable[[], T]], *_: object) -> list[tuple[T, ...]]:
    """One round, and none before it to be thrown away: nobody reads the figures of a test."""
    return [tuple(part() for part in parts)]


def _names(rows: Iterable[Row]) -> set[str]:
    """The rows that were measured, each with something to show."""
    found = list(rows)
    assert all(row.values and min(row.values) > 0 for row in found if row.unit == "x")
    return {row.name for row in found}


def test_record_check_row(bench: Bench) -> None:
    assert _names(record_check.rows(bench, size=100_000)) == {"P11"}


def test_the_deny_set_by_hand_finds_what_our_rules_find(bench: Bench) -> None:
    assert next(requirement_first.rows(bench)).name == "P9"  # only after the proof


def test_tool_values_of_different_sizes_share_the_rules_in_use() -> None:
    for make in (tool_rules.rule_each, tool_rules.host_each):
        few, many = (make(count)["rulesets"]["bench"]["allow"] for count in (10, 1000))
        assert (len(few), len(many)) == (10, 1000)
        assert few[-1]["tools"] == many[-1]["tools"]
        assert few[-1]["hosts"] == many[-1]["hosts"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("measurement", "asked"),
    [
        (partial(bulk.rows, count=3), {"P7", "P8", "bulk"}),
        (tool_rules.rows, {"P17"}),
        (tool_arguments.rows, {"T1"}),
        (tool_commands.rows, {"T2"}),
        (tool_results.rows, {"T3"}),
        (partial(memory.rows, many=200), {"P18"}),
        (environments.rows, {"E1"}),
        pytest.param(shared_state.rows, {"state"}, marks=needs("postgresql")),
        pytest.param(partial(sandbox.rows, actions=20), {"P12", "P13", "actions"}, marks=needs("bubblewrap")),
        pytest.param(throughput.rows, {"P1", "P2", "P3", "P5", "P6", "P10", "rate"}, marks=needs("wrk")),
        pytest.param(latency.rows, {"P4"}, marks=needs("wrk")),
    ],
)
def test_the_requested_rows_are_measured(
    bench: Bench, measurement: command_line.Measurement, asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (bulk, memory, shared_state, throughput):
        monkeypatch.setattr(module, "interleaved", _once)
    monkeypatch.setattr(environments, "_ROWS", 10)
    for module, name in (
        (tool_rules, "_TIMES"),
        (tool_arguments, "TIMES"),
        (tool_results, "TIMES"),
        (sandbox, "_TIMES"),
    ):
        monkeypatch.setattr(module, name, 3)
    assert _names(measurement(replace(bench, asked=frozenset(asked)))) == asked


def test_without_a_sandbox_its_rows_are_not_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bubblewrap, "available", lambda _: "bubblewrap is missing: install it")
    with pytest.raises(NotMeasuredError, match="bubblewrap is missing"):
        list(sandbox.rows(bench))


@pytest.mark.full
@pytest.mark.parametrize(("measurement", "name"), [(opa_killed.rows, "P15"), (policy_swap.rows, "P16")])
def test_rows_under_load_of_our_own(bench: Bench, measurement: command_line.Measurement, name: str) -> None:
    found = list(measurement(replace(bench, seconds=1.5)))
    assert _names(found) == {name}
    assert not any(max(row.values) for row in found if row.goal == 0), "wrong or failed answers"

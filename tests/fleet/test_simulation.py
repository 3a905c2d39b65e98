"""A fleet of 20 replicas over seven days: nothing is lost, overrun or mixed, and the checks would tell."""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.cli.record.commands import verified
from tests.fleet.checks import decisions, violated
from tests.fleet.simulation import SERVER, WINDOW, Evidence, Fleet, Plan, simulate
from tests.postgres import running

SEEDS = [int(seed) for seed in os.environ.get("ENGINE_FLEET_SEEDS", "1").split(",")]
"""More seeds are tried by hand before a release."""

LONG = [
    Plan(seed, replicas=20, step=3_600, requests=1, crashes=30, database=5, partitions=3, full=4, activations=3)
    for seed in SEEDS
]


def run(plan: Plan, folder: Path, cache: Path) -> Iterator[Fleet]:
    with running(settings=SERVER) as server:
        yield from simulate(plan, folder, cache, server)


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Fleet]:
    """A week of a smaller fleet, with few faults, in long steps."""
    yield from run(Plan(SEEDS[0]), tmp_path_factory.mktemp("fleet"), cache)


def hold(fleet: Fleet) -> None:
    """Everything that must hold, and that the faults really happened."""
    evidence, plan = fleet.evidence, fleet.plan
    for one in fleet.replicas:
        assert all(chain.ok for chain in verified(one.settings.state).values())
    assert violated(evidence) == {}
    happened = evidence.happened
    assert (happened["crash"], happened["activate"]) == (plan.crashes, plan.activations)
    assert len(evidence.limits) == 1 + plan.activations
    for code in ("allow", "confirm", "budget_exhausted", "engine.state_unavailable", "engine.idempotency_stale"):
        assert happened[code] > 0, (code, happened)
    assert evidence.removed > 0
    assert any(line["input"]["approvals"] for _, line in decisions(evidence) if line["outcome"] == "allow")


def test_a_week_of_a_fleet_loses_overruns_and_mixes_nothing(week: Fleet) -> None:
    hold(week)


@pytest.mark.full
@pytest.mark.parametrize("plan", LONG, ids=lambda plan: str(plan.seed))
def test_a_week_in_short_steps_with_many_faults(plan: Plan, tmp_path: Path, cache: Path) -> None:
    for fleet in run(plan, tmp_path, cache):
        hold(fleet)


def forget(evidence: Evidence) -> None:
    told = {one.answer["id"] for one in evidence.told}
    number, line = next(one for one in decisions(evidence) if one[1]["decision_id"] in told)
    del evidence.records[number][line["seq"]]


def allow_one_more(evidence: Evidence) -> None:
    for revision in evidence.limits:
        evidence.limits[revision] -= 2


def count_one_less(evidence: Evidence) -> None:
    windows = Counter(line["input"]["now"] // WINDOW for _, line in decisions(evidence) if line["outcome"] == "allow")
    window, allowed = windows.most_common(1)[0]
    evidence.used[window] = allowed - 1


def never_give_back(evidence: Evidence) -> None:
    evidence.used[max(evidence.used, key=lambda window: evidence.used[window])] += 1 + evidence.lost.total()


def mix(evidence: Evidence) -> None:
    other = next(line["policy"] for _, line in decisions(evidence) if line["policy"])
    line = next(line for _, line in decisions(evidence) if line["policy"] and line["policy"] != other)
    line["policy"] = {"rules": other["rules"], "values": line["policy"]["values"]}


def go_back(evidence: Evidence) -> None:
    first = next(line["policy"] for line in evidence.records[0].values() if line.get("policy"))
    last = [line for number, line in decisions(evidence) if number == 0 and line["policy"]][-1]
    assert last["policy"] != first
    last["policy"] = first


def use_twice(evidence: Evidence) -> None:
    allowed = [line["input"] for _, line in decisions(evidence) if line["outcome"] == "allow"]
    used = next(one for one in allowed if one["approvals"])
    next(one for one in allowed if not one["approvals"])["approvals"] = used["approvals"]


def answer_again(evidence: Evidence) -> None:
    told = next(one for one in evidence.told if one.key and one.answer["outcome"] == "allow")
    other = next(one for one in evidence.told if one.key is None and one.answer["outcome"] == "allow")
    other.key, other.now = told.key, told.now


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (forget, "lost"),
        (forget, "gaps"),
        (allow_one_more, "overrun"),
        (count_one_less, "overrun"),
        (never_give_back, "overrun"),
        (mix, "mixed"),
        (go_back, "mixed"),
        (use_twice, "twice"),
        (answer_again, "twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_planted_fault_is_found(week: Fleet, fault: Callable[[Evidence], None], check: str) -> None:
    evidence = copy.deepcopy(week.evidence)
    fault(evidence)
    assert check in violated(evidence)

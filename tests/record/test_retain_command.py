"""`engine record retain`: the policy decides how long a record is kept, and only the policy that was in force."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest
from typer.testing import CliRunner, Result

from engine.cli.record.commands import app
from engine.engine import Engine
from engine.errors import EngineError
from engine.record.layout import LOCK
from engine.record.reader import Filter, select
from engine.record.shipping import SHIPPING
from engine.record.storage import Storage
from engine.record.verify import verify
from engine.record.verify_chains import verify_chains
from engine.settings import Settings
from tests.api.serving import until

LICENSE: dict[str, Any] = {
    "license": "CC0-1.0",
    "sha256": "a" * 64,
    "purpose": "train",
    "export_license": None,
    "decisions": [],
}


class Later(datetime):
    """The clock, two months from now."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(days=60)


@pytest.fixture
def policy(settings: Settings, tmp_path: Path) -> Path:
    """A folder of values of this test alone."""
    return Path(shutil.copytree(settings.policy, tmp_path / "policy"))


def decided(settings: Settings, policy: Path) -> Path:
    """A state in which decisions were enforced under these values."""
    with Engine(replace(settings, policy=policy)) as engine:
        for _ in range(3):
            assert engine.decide("license", LICENSE).fault is None
    return settings.state


def retain(state: Path, policy: Path, days: int, *more: str) -> Result:
    arguments = ["retain", "--state", str(state), "--policy", str(policy), "--keep-days", str(days), *more]
    return CliRunner().invoke(app, arguments)


def codes(run: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(run.stdout)["decision"]["findings"]]


def floor(policy: Path, days: int) -> None:
    path = policy / "operations.yaml"
    text = path.read_text(encoding="utf-8")
    assert "retention_days_min: 30" in text
    path.write_text(text.replace("retention_days_min: 30", f"retention_days_min: {days}"), encoding="utf-8")


def test_old_segments_are_removed_under_the_policy_in_force(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    nothing = retain(state, policy, 30)
    assert (nothing.exit_code, nothing.stdout) == (
        0,
        "nothing to remove: no whole segment is older than 30 days\n",
    )
    assert verify(state).removed == 0
    monkeypatch.setattr("engine.assembly.datetime", Later)
    (state / SHIPPING).write_text('{"url":"file:///store"}', encoding="utf-8")
    kept = retain(state, policy, 30)
    assert kept.stdout == "nothing to remove: no whole segment is older than 30 days and shipped to file:///store\n"
    (state / SHIPPING).unlink()
    done = retain(state, policy, 30, "--format", "json")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (done.exit_code, told["removed"][0]["first"], told["decision"]["outcome"]) == (0, 1, "allow")
    found = verify(state)
    assert (found.ok, found.removed) == (True, told["removed"][0]["lines"])
    shown = CliRunner().invoke(app, ["show", "--state", str(state)])
    assert "retention: segments 1 to 1 removed" in shown.stdout


@pytest.mark.full
def test_a_period_below_the_retention_floor_removes_nothing(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    monkeypatch.setattr("engine.assembly.datetime", Later)
    refused = retain(state, policy, 29, "--format", "json")
    assert (refused.exit_code, codes(refused)) == (1, ["retention_below_floor"])
    assert (verify(state).ok, verify(state).removed) == (True, 0)
    told = retain(state, policy, 29).stderr
    assert "retention_below_floor: required: " in told
    assert "found: --keep-days 29 is below the floor of 30 days (" in told
    assert "operations.yaml:" in told
    assert "(profiles.standard.retention_days_min))" in told


@pytest.mark.full
def test_a_policy_that_is_not_in_force_is_refused(
    settings: Settings, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    mine = Path(shutil.copytree(policy, tmp_path / "mine"))
    floor(mine, 0)
    monkeypatch.setattr("engine.assembly.datetime", Later)
    for _ in range(2):  # the first try is no decision that puts it in force
        refused = retain(state, mine, 1, "--format", "json")
        assert (refused.exit_code, codes(refused)) == (1, ["policy_not_in_force"])
    assert (verify(state).ok, verify(state).removed) == (True, 0)
    assert retain(state, policy, 30).stdout.startswith("removed ")


@pytest.mark.full
def test_a_changed_policy_counts_once_it_is_enforced(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    floor(policy, 50)
    monkeypatch.setattr("engine.assembly.datetime", Later)
    assert codes(retain(state, policy, 55, "--format", "json")) == ["policy_not_in_force"]
    decided(settings, policy)
    assert codes(retain(state, policy, 49, "--format", "json")) == ["retention_below_floor"]
    assert retain(state, policy, 50).exit_code == 0


@pytest.mark.full
def test_chains_in_use_are_pruned_by_their_engines(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)  # chain 1
    own = replace(settings, policy=policy)
    with Engine(own) as first, Engine(own) as second, Engine(own) as third:
        for engine in (first, second, third):
            assert engine.decide("license", LICENSE).fault is None
    with Engine(own):  # holds chain 1; chain 2 is the command's own, chain 3 is free
        monkeypatch.setattr("engine.assembly.datetime", Later)
        done = retain(state, policy, 30, "--reason", "disk full", "--format", "json")
    told = json.loads(done.stdout)
    assert (done.exit_code, [one["chain"] for one in told["removed"]], told["waiting"]) == (0, [1, 2, 3], [])
    found = verify_chains(state)
    assert [chain.ok for chain in found.values()] == [True, True, True]
    assert [chain.removed for chain in found.values()] == [one["lines"] for one in told["removed"]]
    lines = [entry.body for entry in select(state, Filter(), 99).entries if entry.body.kind == "retention"]
    assert {(line.decision_id, line.reason) for line in lines} == {(told["decision"]["decision_id"], "disk full")}
    assert len(lines) == 3


@pytest.mark.full
def test_an_order_not_carried_out_in_time_waits_for_the_next_engine(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    with monkeypatch.context() as patched, closing(Storage(state)) as other:
        patched.setattr("engine.record.retain_chains._WAIT_SECONDS", 0.2)
        other.lock(LOCK, 0.0)  # an engine that hangs
        patched.setattr("engine.assembly.datetime", Later)
        told = retain(state, policy, 30)
        assert told.stdout == "chain 1 is pending: the engine that writes to it will remove its old segments\n"
    assert verify(state).removed == 0
    with Engine(replace(settings, policy=policy)):
        until(lambda: verify(state).removed > 0)
    assert verify(state).ok


@pytest.mark.full
def test_a_broken_chain_is_reported_and_not_pruned(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    with Engine(replace(settings, policy=policy)), Engine(replace(settings, policy=policy)):
        pass
    (state / "chains/002/checkpoints/decisions.json").unlink()
    monkeypatch.setattr("engine.assembly.datetime", Later)
    failed = retain(state, policy, 30)
    assert isinstance(failed.exception, EngineError)
    assert failed.exception.code == "engine.record_broken"
    assert verify(state).removed > 0  # chain 1 was

"""`engine record retain`: the policy decides how long a record is kept, and only the policy that was in force."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest
from typer.testing import CliRunner, Result

from engine.cli.record import app
from engine.engine import Engine
from engine.record.layout import LOCK
from engine.record.verify import verify
from engine.settings import Settings

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


def test_what_is_old_is_removed_under_the_policy_that_was_in_force(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    nothing = retain(state, policy, 30)
    assert (nothing.exit_code, nothing.stdout) == (
        0,
        "nothing to remove: no whole segment is older than 30 days\n",
    )
    assert verify(state).removed == 0
    monkeypatch.setattr("engine.engine.datetime", Later)
    done = retain(state, policy, 30, "--format", "json")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (done.exit_code, told["removed"]["first"], told["decision"]["outcome"]) == (0, 1, "allow")
    found = verify(state)
    assert (found.ok, found.removed) == (True, told["removed"]["lines"])
    shown = CliRunner().invoke(app, ["show", "--state", str(state)])
    assert "retention: segments 1 to 1 removed" in shown.stdout


def test_below_the_fewest_days_nothing_is_removed(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    monkeypatch.setattr("engine.engine.datetime", Later)
    refused = retain(state, policy, 29, "--format", "json")
    assert (refused.exit_code, codes(refused)) == (1, ["retention_below_floor"])
    assert (verify(state).ok, verify(state).removed) == (True, 0)
    assert "retention_below_floor: required: " in retain(state, policy, 29).stderr


def test_a_folder_of_values_that_was_not_in_force_decides_nothing(
    settings: Settings, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    mine = Path(shutil.copytree(policy, tmp_path / "mine"))
    floor(mine, 0)
    monkeypatch.setattr("engine.engine.datetime", Later)
    for _ in range(2):  # the first try is no decision that puts it in force
        refused = retain(state, mine, 1, "--format", "json")
        assert (refused.exit_code, codes(refused)) == (1, ["policy_not_in_force"])
    assert (verify(state).ok, verify(state).removed) == (True, 0)
    assert retain(state, policy, 30).stdout.startswith("removed ")


def test_a_changed_policy_counts_once_it_is_enforced(
    settings: Settings, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decided(settings, policy)
    floor(policy, 50)
    monkeypatch.setattr("engine.engine.datetime", Later)
    assert codes(retain(state, policy, 55, "--format", "json")) == ["policy_not_in_force"]
    decided(settings, policy)
    assert codes(retain(state, policy, 49, "--format", "json")) == ["retention_below_floor"]
    assert retain(state, policy, 50).exit_code == 0


def test_a_record_in_use_is_left_alone(settings: Settings, policy: Path) -> None:
    state = decided(settings, policy)
    with Engine(replace(settings, policy=policy)):
        refused = CliRunner().invoke(
            app, ["retain", "--state", str(state), "--policy", str(policy), "--keep-days", "30"]
        )
    assert refused.exit_code == 4
    assert "engine.record_locked" in refused.stderr
    assert (state / LOCK).exists()

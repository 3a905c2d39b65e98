"""What a bulk run does not begin: points that need the engine's state, budgets, and anything under a stop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from engine.engine import Engine
from engine.errors import EngineError, GatherError, install_extra
from engine.flow import Context
from engine.model import Caller, Via
from engine.ray.cluster import LOCAL, connected
from engine.ray.columns import POINT
from engine.ray.corpus import demand_stateless
from engine.ray.packages import package
from engine.settings import Settings
from engine.state.rows import StopRow
from tests.state.samples import activate, release

CONTEXT = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"))


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings) as opened:
        yield opened


def test_a_license_decision_needs_no_state(engine: Engine) -> None:
    demand_stateless(engine, POINT, CONTEXT)


def test_a_node_of_ray_that_does_not_start_is_no_fault_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nIt was late.")  # noqa: TRY002  (as Ray does)

    monkeypatch.setattr(package("ray"), "init", init)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(GatherError, match=r"at `local`: The current node timed out during startup\.$") as refused:
        connected(LOCAL, 1, progress=False).__enter__()
    assert "when this machine has processors and memory free" in str(refused.value.remedy)


@pytest.mark.parametrize("point", ["source", "administration", "export"])
def test_a_point_that_reads_files_or_acts_is_refused(engine: Engine, point: str) -> None:
    with pytest.raises(EngineError, match=f"point `{point}` cannot be decided on in bulk"):
        demand_stateless(engine, point, CONTEXT)


def test_a_budget_is_refused(settings: Settings) -> None:
    budget = "budgets.budgets.license.all={limit: 5, window_seconds: 60}"
    with Engine(settings, values=(budget,)) as engine, pytest.raises(EngineError, match="has a budget or quota"):
        demand_stateless(engine, POINT, CONTEXT)


@pytest.mark.parametrize(("scope", "name"), [("all", ""), ("principal", "pipeline")])
def test_a_stop_of_the_caller_ends_a_run(engine: Engine, scope: Literal["all", "principal"], name: str) -> None:
    engine.store().add_stop(StopRow(scope, name, "owner", engine.now(), "5" * 32, None))
    with pytest.raises(EngineError, match=f"the stop `{'5' * 32}` applies to this run"):
        demand_stateless(engine, POINT, CONTEXT)


def test_a_stop_of_another_principal_does_not(engine: Engine) -> None:
    engine.store().add_stop(StopRow("principal", "another", "owner", engine.now(), "5" * 32, None))
    demand_stateless(engine, POINT, CONTEXT)


@pytest.mark.parametrize("try_policy", [True, False])
def test_an_agreement_on_another_policy_ends_a_run(settings: Settings, try_policy: bool) -> None:  # noqa: FBT001
    """Also a run with a policy that was named to be tried: what it admits is written."""
    with Engine(settings, try_policy=try_policy) as engine:
        demand_stateless(engine, POINT, CONTEXT)
        active = activate(engine.store(), release(1))
        with pytest.raises(EngineError, match="agreed on another release than this engine serves") as refused:
            demand_stateless(engine, POINT, CONTEXT)
        assert "--releases DIR --release-key FILE" in refused.value.remedy
        engine.store().leave(active.id, "owner", None, engine.now())
        demand_stateless(engine, POINT, CONTEXT)


def test_a_package_that_is_missing_says_what_to_install() -> None:
    with pytest.raises(EngineError) as refused:
        package("ray_that_nobody_installed.data")
    assert str(refused.value) == "the package `ray_that_nobody_installed` is not installed"
    assert refused.value.remedy == install_extra("ray")


def test_importing_the_engine_for_ray_imports_no_ray(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, engine.ray, engine.cli.check; sys.exit('ray' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0

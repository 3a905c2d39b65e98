"""Bulk decisions are those of one engine: for their own caller, under its stops, and never with an empty state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.errors import EngineError, StateError
from engine.flow import Context
from engine.model import Caller, Mode, Via
from engine.ray.corpus import demand_stateless
from engine.ray.dataset import DatasetWorker
from engine.ray.policy import SentPolicy
from engine.ray.worker import Job, WorkerFault, fault_in
from engine.record.bulk import RunRecord
from engine.settings import Settings
from engine.state.rows import AgentRow, StopRow
from tests.expect import there
from tests.ray.samples import NOW

VISIBLE = {"policy": "confirm_all", "profile": "coding", "tools": ["files_read", "http_get"]}
APPROVED = {"tools": ["http_get"], "constraints": {"max_turns": 3, "max_tokens": 1000}}
AGENT = "0190b5d27c1e7d3a9b6f2f4c5d6e7f80"


def caller(*points: str, principal: str = "alice") -> Context:
    return Context(caller=Caller(via=Via.TOKEN, principal=principal, points=points))


@pytest.fixture(scope="module")
def served(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as engine:
        yield engine


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(served: Engine, tmp_path: Path) -> Iterator[Ask]:
    """Decide one request by a worker whose folder all workers of the test share."""
    RunRecord(tmp_path / "run").prepare()
    policy = SentPolicy.of(served)
    with ExitStack() as stack:

        def by_worker(point: str, request: Any, context: Context, **job: Any) -> dict[str, Any]:
            worker = DatasetWorker(Job(str(tmp_path / "run"), point, None, policy, context, **job))
            stack.callback(worker.close)
            decided: dict[str, Any] = worker(pa.table({"request": [json.dumps(request)]})).to_pylist()[0]
            return decided

        yield by_worker


def test_no_caller_gets_the_decision_of_another(ask: Ask) -> None:
    assert ask("tool_visibility", VISIBLE, caller("tool_visibility"))["outcome"] == "allow"
    for other in (caller("license"), caller("license", principal="mallory")):
        denied = ask("tool_visibility", VISIBLE, other)
        assert (denied["outcome"], denied["codes"]) == ("deny", ["caller_out_of_scope"])


def test_a_decision_is_used_again_on_the_same_day_for_the_same_run_alone(ask: Ask) -> None:
    own = caller("tool_visibility")
    jobs: list[tuple[Context, dict[str, Any]]] = [
        (own, {"day": "2026-11-26"}),
        (own, {"day": "2026-11-27"}),
        (replace(own, run="run-1"), {"day": "2026-11-26"}),
        (own, {"now": NOW}),
    ]
    decided = [ask("tool_visibility", VISIBLE, context, **job)["decision_id"] for context, job in jobs]
    assert len(set(decided)) == len(jobs)
    assert [ask("tool_visibility", VISIBLE, context, **job)["decision_id"] for context, job in jobs] == decided


def test_a_decision_that_depends_on_the_state_ends_a_run(ask: Ask, served: Engine) -> None:
    agent = Context(caller=Caller(via=Via.PROCESS, principal=AGENT))
    served.store().add_agent(AgentRow(AGENT, "buyer", "Actor", json.dumps(APPROVED), None, NOW), 5)
    served.store().end_agent(AGENT, NOW)
    (one,) = served.decide_many("tool_visibility", [VISIBLE], agent, Mode.CHECK)
    assert {finding.code for finding in one.decision.findings} == {"agent_tool_not_approved"}
    for point, request in (("tool_visibility", VISIBLE), ("provisioning", {"specification": "{}"})):
        with pytest.raises(WorkerFault, match="workers do not have") as ended:
            ask(point, request, agent)
        fault = there(fault_in(str(ended.value)))
        assert fault.code == StateError.code


def test_workers_open_no_shared_state(served: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_STATE_DATABASE", "postgresql://engine_app@127.0.0.1:1/nothing")
    assert SentPolicy.of(served).unpack(tmp_path).database is None


@pytest.mark.parametrize(("point", "refused"), [("tool_visibility", True), ("license", False)])
def test_a_run_that_may_be_about_a_stopped_tool_does_not_begin(
    point: str,
    refused: bool,  # noqa: FBT001
    settings: Settings,
) -> None:
    with Engine(settings) as engine:
        demand_stateless(engine, point, caller(point))
        engine.store().add_stop(StopRow("tool", "http_get", "owner", engine.now(), "5" * 32, None))
        if refused:
            with pytest.raises(EngineError, match="applies to this run"):
                demand_stateless(engine, point, caller(point))
        else:
            demand_stateless(engine, point, caller(point))

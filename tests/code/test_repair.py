"""The repair loop: every try is a fresh decision, their number is the policy's, and failed code is not tried again."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from engine import AsyncEngine, Rejection, Settings
from tests.code.conftest import CODE, GOLDEN, PIPELINE, Bench, golden, printing
from tests.command import lines
from tests.facilities import needs

pytestmark = needs("bubblewrap")


def task() -> str:
    return f"task-{uuid.uuid4()}"


def action(code: str) -> dict[str, Any]:
    return {**GOLDEN["action"], "code": code}


# covers: C63.1
def test_rejected_code_is_returned_with_reasons_and_its_repair_decided_anew(bench: Bench) -> None:
    told: list[Rejection] = []

    def repair(rejection: Rejection) -> Any:
        told.append(rejection)
        return action([printing(sample_size=0), CODE][len(told) - 1])

    done = bench.engine.repair_code(golden("import os\n" + CODE), repair, PIPELINE)
    assert done.ok
    assert [one["stop_reason"] for one in done.document["attempts"]] == [
        "policy_block:static_policy_violation:import_not_allowed:os",
        "invalid_code_output:sample_size",
        "success",
    ]
    first, second = (asdict(one) for one in told)
    assert (first["attempt"], first["phase"]) == (1, "policy_check")
    assert {finding["code"] for finding in first["findings"]} >= {"static_policy_violation", "import_not_allowed"}
    assert {one["line"] for one in first["findings"] if one["subject"] == "imports/os"} == {1}
    assert second["findings"][0]["subject"] == "fields/sample_size"
    assert "transactions" not in json.dumps([first, second])
    runs = {one["run_id"] for one in done.document["attempts"]}
    assert len(runs) == 3
    decided = [line["request_id"] for line in lines(bench.state) if line.get("point") == "code_execution"]
    assert all(decided.count(run) == 1 for run in runs)  # each has decisions of its own


# covers: C63.1
def test_a_repair_is_told_which_fields_the_output_lacks(bench: Bench) -> None:
    told: list[Rejection] = []

    def repair(rejection: Rejection) -> Any:
        told.append(rejection)
        return action(CODE)

    assert bench.engine.repair_code(golden('print(\'{"region": "", "sample_size": null}\')'), repair, PIPELINE).ok
    (finding,) = told[0].findings
    assert finding["code"] == "invalid_code_output:missing_required"
    assert "chargeback_alerts, incident_severity" in finding["found"]
    assert "region" not in finding["found"]


# covers: C63.2
def test_the_policy_ends_the_loop(bench: Bench) -> None:
    asked: list[Rejection] = []

    def repair(rejection: Rejection) -> Any:
        asked.append(rejection)
        return action(printing(sample_size=0, eta_minutes=len(asked)))

    done = bench.engine.repair_code(golden(printing(sample_size=0)), repair, PIPELINE)
    reasons = [one["stop_reason"] for one in done.document["attempts"]]
    assert reasons == ["invalid_code_output:sample_size"] * 3 + ["policy_block:attempts_exhausted"]
    assert len(asked) == 3


# covers: C63.2
@pytest.mark.parametrize("code", ["import os", ""])
def test_the_policy_ends_a_loop_of_actions_that_never_run(bench: Bench, code: str) -> None:
    asked: list[Rejection] = []

    def repair(rejection: Rejection) -> Any:
        asked.append(rejection)
        return action(code)

    done = bench.engine.repair_code(golden(code), repair, PIPELINE)
    assert done.document["attempts"][-1]["stop_reason"] == "policy_block:attempts_exhausted"
    assert len(asked) == 3


# covers: C63.3
def test_failed_code_is_not_retried_but_changed_code_is(bench: Bench) -> None:
    name, bad = task(), golden(printing(sample_size=0))
    assert bench.run({**bad, "task": name}).stop_reason == "invalid_code_output:sample_size"
    again = bench.run({**bad, "task": name})
    assert again.stop_reason == "policy_block:code_repeated"
    assert [step["phase"] for step in again.document["trace"]] == ["plan_code", "policy_check"]
    assert bench.run({**golden(), "task": name}).ok
    assert bench.run({**bad, "task": task()}).stop_reason == "invalid_code_output:sample_size"  # another task


# covers: C63
def test_actions_that_break_their_contract_count_too(bench: Bench) -> None:
    name = task()
    for number in range(3):
        reason = bench.run(golden(action={"code": "", "id": f"c{number}"}, task=name)).stop_reason
        assert reason == "invalid_action:code"
    assert bench.run(golden(task=name)).stop_reason == "policy_block:attempts_exhausted"
    rows = bench.engine.store().attempts("pipeline", name, None, 9)
    assert [row.state for row in rows] == ["failed"] * 4


def test_the_loop_ends_without_a_new_action_or_when_none_would_help(bench: Bench) -> None:
    def never(_: Rejection) -> Any:
        return None

    def wrong(_: Rejection) -> Any:
        raise AssertionError("nobody asks for a repair of this")

    assert bench.engine.repair_code(golden("print()"), never, PIPELINE).stop_reason.endswith("empty_stdout")
    assert bench.engine.repair_code(golden(), wrong, PIPELINE).ok
    assert bench.engine.repair_code([], wrong, PIPELINE).stop_reason == "invalid_request:unreadable"
    network = golden(policy_hints={"network_access": "on"})
    assert bench.engine.repair_code(network, wrong, PIPELINE).stop_reason.startswith("invalid_request:")


@pytest.mark.full
def test_the_same_loop_runs_on_an_event_loop(opening: Callable[..., Any], tmp_path: Path, cache: Path) -> None:
    with opening("loop"):
        pass  # a state that knows what the sandbox holds

    async def loop() -> Any:
        async def repair(_: Rejection) -> Any:
            return action(CODE)

        async with AsyncEngine(Settings(state=tmp_path / "loop", cache=cache)) as engine:
            return await engine.repair_code(golden("print()"), repair, PIPELINE)

    done = asyncio.run(loop())
    assert [one["stop_reason"] for one in done.document["attempts"]] == ["invalid_code_output:empty_stdout", "success"]


@pytest.mark.parametrize("principal", [True, False])
def test_attempts_of_other_callers_do_not_count(bench: Bench, principal: bool) -> None:  # noqa: FBT001
    name, bad = task(), golden(printing(sample_size=0))
    bench.engine.run_code({**bad, "task": name})
    again = bench.run({**bad, "task": name}) if principal else bench.engine.run_code({**bad, "task": name})
    assert again.stop_reason == ("invalid_code_output:sample_size" if principal else "policy_block:code_repeated")

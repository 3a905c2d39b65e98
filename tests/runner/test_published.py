"""What a runner publishes about its harnesses is a copy."""

from __future__ import annotations

from admission_adapters.runner.sealed import Opener
from engine.cases.run import Runner
from engine.flow import Context
from engine.runner.asking import Decisions
from engine.runner.run import AgentRunner, RunnerSettings


# covers: D64.2
def test_a_consumer_changes_only_its_copy(runner: Runner) -> None:
    engine = runner.engine({"runners": {"harnesses": {"pi_core": {"models": {"anthropic": ["one"]}}}}})
    agents, asks = (
        AgentRunner(engine.executors.machine().backend, RunnerSettings(Opener(None))),
        Decisions(engine.opened, Context()),
    )
    first = agents.harnesses.published(asks)
    assert first["pi_core"]["models"] == {"anthropic": ["one"]}
    first["pi_core"]["models"]["anthropic"].append("two")
    first["pi_core"]["models"]["other"] = ["three"]
    first["pi_core"]["capabilities"]["toolCalls"] = True
    first["pi_core"]["connection_modes"].append("any")
    del first["claude"]
    again = agents.harnesses.published(asks)
    assert again["pi_core"]["models"] == {"anthropic": ["one"]}
    assert (again["pi_core"]["capabilities"], again["pi_core"]["connection_modes"]) == ({}, [])
    assert again.keys() == {"claude", "pi_core"}
    refused = engine.check(
        "runner_request", {"agent": {"harness": "pi_core", "model": {"model": "two"}}, "messages": []}
    )
    assert [finding.code for finding in refused.decision.findings] == ["model_not_listed"]

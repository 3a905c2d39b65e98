"""`engine stop`: what it refuses, how it is lifted, what it prints; `engine agent`, which it refuses too."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command import Command
from tests.conftest import ROOT

LICENSE = str(ROOT / "docs/examples/license.json")


def test_everything_is_stopped_until_the_stop_is_lifted(command: Command) -> None:
    assert command("decide", "license", "-i", LICENSE).code == 0
    stopped = command("stop", "all", "--reason", "a leak")
    assert (stopped.code, stopped.stdout.partition(": ")[0]) == (0, "stopped")
    (row,) = command("stop", "list", "--format", "json").json["stops"]
    assert (row["scope"], row["name"], row["reason"], row["lifted_at"]) == ("all", "", "a leak", None)
    refused = command("decide", "license", "-i", LICENSE)
    assert (refused.code, [one["code"] for one in json.loads(refused.stdout)["findings"]]) == (1, ["stopped"])
    unreasoned = command("stop", "lift", row["id"])
    assert (unreasoned.code, "reason_missing" in unreasoned.stderr) == (1, True)
    assert command("stop", "lift", row["id"], "--reason", "closed").stdout == f"lifted: everything: {row['id']}\n"
    assert command("decide", "license", "-i", LICENSE).code == 0
    (lifted,) = command("stop", "list", "--format", "json").json["stops"]
    told = command("stop", "list").stdout
    assert " lifted   everything" in told
    assert f"since {lifted['created_at']} until {lifted['lifted_at']}, by {lifted['actor']}: a leak" in told


def test_a_tool_that_is_not_known_is_not_stopped(command: Command) -> None:
    misspelt = command("stop", "tool", "htpt_get")
    assert (misspelt.code, "stop_tool_unknown" in misspelt.stderr) == (1, True)
    assert "did you mean `http_get`?" in misspelt.stderr
    assert command("stop", "tool", "http_get").stdout.startswith("stopped: tool http_get: ")
    assert command("stop", "principal", "bot").stdout.startswith("stopped: principal bot: ")
    for id_, problem in (
        ("0" * 32, "there is no active stop"),
        ("abc", "`abc` is not an id"),
    ):
        lifted = command("stop", "lift", id_, "--reason", "x")
        assert (lifted.code, problem in lifted.stderr) == (2, True)


def test_a_stop_of_a_principal_that_was_never_seen_holds_with_a_warning(command: Command) -> None:
    assert command("tokens", "issue", "--principal", "pipeline", "--point", "license", "--days", "1").code == 0
    assert "pipeline" not in command("stop", "principal", "pipeline").stderr
    misspelt = command("stop", "principal", "pipelin")
    assert (misspelt.code, misspelt.stdout.partition(": ")[0]) == (0, "stopped")
    assert "did you mean `pipeline`?" in misspelt.stderr


def test_an_agent_waits_for_a_person_and_is_ended(command: Command) -> None:
    file = str(ROOT / "fixtures/agents/buyer.json")
    waiting = command("agent", "provision", file, "--principal", "provisioner")
    assert (waiting.code, waiting.stdout.partition(" ")[0]) == (3, "waiting")
    (approval,) = command("approvals", "list", "--format", "json").json["approvals"]
    assert f"engine approvals grant {approval['id']}" in waiting.stdout
    assert command("approvals", "grant", approval["id"]).code == 0
    brought = ("agent", "provision", file, "--principal", "provisioner", "--approval", approval["id"])
    made = command(*brought, "--format", "json")
    agent = json.loads(made.stdout)["agent"]
    assert (made.code, agent) == (0, json.loads(made.stdout)["decision"]["decision_id"])
    assert command(*brought).code == 1  # one yes is for one agent
    (row,) = command("agent", "list", "--format", "json").json["agents"]
    assert (row["id"], row["state"], row["specification"]["tools"]) == (agent, "active", [])
    assert command("agent", "end", agent).stdout == f"agent {agent} (agent_b) is ended\n"
    assert command("agent", "list").stdout.split()[1] == "ended"


def test_malformed_json_exits_with_1_and_names_the_code(command: Command, tmp_path: Path) -> None:
    (tmp_path / "agent.js").write_text("function() {}", encoding="utf-8")
    refused = command("agent", "provision", str(tmp_path / "agent.js"))
    assert (refused.code, "provisioning_not_json" in refused.stderr) == (1, True)

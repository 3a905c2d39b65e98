"""`engine environment`: a built environment used from a shell."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.settings import Settings
from tests.command import Command, Run, decisions, lines
from tests.conftest import ROOT, lowered
from tests.environments.bundles import CONTACTS

PROFILE = ("--tool-policy", "environment", "--profile", "environment")


@pytest.fixture(scope="module")
def built(module_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("built")
    with Engine(module_settings, points=frozenset({"source", "environment"})) as engine:
        assert engine.build(ROOT / "fixtures/material/contacts", into).result is not None
    return into / CONTACTS


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy of the environment for one test."""
    return shutil.copytree(built, tmp_path / CONTACTS)


def called(command: Command, folder: Path, operation: str, *options: str, **arguments: Any) -> Run:
    call = {"name": f"{CONTACTS}_{operation}", "arguments": arguments}
    return command("environment", "call", folder, *PROFILE, *options, stdin=json.dumps(call))


def test_a_delete_is_undone_by_the_command_that_it_prints(command: Command, folder: Path) -> None:
    folder = folder.rename(folder.with_name("our contacts"))
    gone = called(command, folder, "delete", id="1")
    assert (gone.code, gone.json) == (0, {"deleted": "1"})  # the result alone, for a pipe
    assert command(*shlex.split(gone.stderr.partition("undo it: engine ")[2])).code == 0
    trajectory = command("environment", "trajectory", folder, "--format", "json").json["changes"]
    assert [(one["event"], one["rows"]) for one in trajectory] == [("undo_point", 5), ("changed", 4), ("restored", 5)]


def test_a_refused_call_is_explained_once(command: Command, folder: Path) -> None:
    call = {"name": f"{CONTACTS}_get", "arguments": {"id": "1"}}
    refused = command("environment", "call", folder, stdin=json.dumps(call))
    *_, last = refused.stdout.splitlines()
    assert (refused.code, last) == (1, "refused: this call is refused: denied_by_default, tool_not_in_profile")


@pytest.mark.parametrize("subcommand", ["call", "reset", "serve"])
def test_a_tool_that_is_refused_is_explained(subcommand: str, command: Command, folder: Path) -> None:
    source = ("--source", ROOT / "fixtures/material/contacts", "--enable-mcp-adapter")
    other = ("--values", f'tools.tools.{CONTACTS}_get.curated=["sha256:{"ab" * 32}"]')
    done = command("environment", subcommand, folder, *(source if subcommand == "serve" else ()), *other, stdin="{}")
    assert (done.code, done.stdout) == (1, ""), done
    explained = " ".join(done.stderr.split())
    for words in (f"(registration of `{CONTACTS}_get`)", "deny not_curated", "found: digest sha256:"):
        assert words in explained
    assert command("environment", "show", folder).code == 0  # it is not in use any more


def test_a_broken_policy_is_reported_as_that(command: Command, folder: Path, policy: Path) -> None:
    (policy / "tools.yaml").write_text("tools: [", encoding="utf-8")
    done = called(command, folder, "get", "--policy", str(policy), id="1")
    assert (done.code, "tools.yaml:" in done.stderr, "curated" in done.stderr) == (5, True, False), done


def test_a_folder_without_an_environment_is_unreadable_input(command: Command, tmp_path: Path) -> None:
    run = command("environment", "show", tmp_path)
    assert (run.code, run.stdout) == (2, "")
    assert "no environment at this path" in run.stderr


# covers: B28.2
def test_a_truncated_result_is_reported_on_stderr(command: Command, folder: Path, policy: Path) -> None:
    tools = policy / "tools.yaml"
    text = tools.read_text(encoding="utf-8").replace("result_bytes: 200000", "result_bytes: 20")
    tools.write_text(text, encoding="utf-8")
    found = called(command, folder, "get", "--policy", str(policy), id="1")
    assert (found.code, len(found.stdout)) == (0, 21)  # with the line end
    assert "engine: the result is cut after 20 bytes of " in found.stderr


@pytest.mark.full
def test_acts_are_recorded_with_what_they_did(command: Command, tmp_path: Path) -> None:
    assert command("build", ROOT / "fixtures/material/contacts", "--into", tmp_path).code == 0
    folder = tmp_path / CONTACTS
    gone = called(command, folder, "delete", id="1")
    (undo,) = [line.partition("undo it: engine ")[2] for line in gone.stderr.splitlines() if "undo it" in line]
    missing = called(command, folder, "get", "--format", "json", id="1")
    assert (missing.code, missing.json["exit"], missing.json["result"]["code"]) == (1, 1, "contact_missing")
    assert command(*undo.split()).code == 0
    assert called(command, folder, "get", id="1").json["name"] == "Ada Example"
    kept = command("environment", "checkpoint", folder, "--format", "json").json["done"]["name"]
    assert command("environment", "reset", folder).code == 0
    shown = command("environment", "show", folder, "--format", "json").json
    assert [one["name"] for one in shown["checkpoints"]] == [undo.split()[-1], kept]
    assert (shown["rows"], shown["state"], shown["problems"]) == (5, 0, [])
    assert f"{CONTACTS}_delete (write, destructive)" in command("environment", "show", folder).stdout
    trajectory = command("environment", "trajectory", folder, "--format", "json").json["changes"]
    events = ["undo_point", "changed", "restored", "checkpoint", "reset"]
    assert [one["event"] for one in trajectory] == events
    assert command("environment", "trajectory", folder).stdout.count("\n") == 5
    acts = [one for one in decisions(command.state) if one["point"] == "environment_act"]
    assert [one["input"]["act"] for one in acts] == ["restore", "checkpoint", "reset"]
    built = {one["facts"]["sha256"] for one in lines(command.state) if one.get("status") == "built"}
    assert {one["input"]["held"]["built"] for one in acts} == built
    by_decision = {one["decision_id"]: one for one in lines(command.state) if one["kind"] == "result"}
    done = [by_decision[one["decision_id"]] for one in acts]
    assert [(one["status"], one["facts"]["line"]) for one in done] == [("restored", 3), ("checkpoint", 4), ("reset", 5)]
    assert done[0]["facts"]["sha256"] == trajectory[0]["sha256"]


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [
        (("call",), '{"name": "contacts_sqlite_get", "arguments": {"id": "1"}}', 1, "denied_by_default"),
        (("call", *PROFILE), '{"name": "shell", "arguments": {"command": "ls"}}', 1, "tool_not_in_profile"),
        (("call", *PROFILE), "nonsense: [", 2, "engine.input_unreadable"),
        (("restore",), "", 2, "CHECKPOINT"),
        (("restore", "checkpoint-9.sqlite"), "", 1, "state_not_held"),
        (("restore", "../contacts_sqlite/base.sqlite"), "", 1, "state_not_held"),
    ],
)
def test_a_refused_command_changes_nothing(
    arguments: tuple[str, ...], stdin: str, code: int, words: str, command: Command, folder: Path
) -> None:
    done = command("environment", arguments[0], folder, *arguments[1:], stdin=stdin)
    assert (done.code, words in done.stdout + done.stderr) == (code, True), done
    assert command("environment", "trajectory", folder).stdout == "unchanged since it was built\n"


@pytest.mark.full
def test_an_act_that_needs_a_person_waits_for_the_approval(command: Command, folder: Path, policy: Path) -> None:
    """The policy lists no reset, and lowers that refusal to a question."""
    environments = policy / "environments.yaml"
    text = environments.read_text(encoding="utf-8").replace("[checkpoint, restore, reset]", "[checkpoint, restore]")
    environments.write_text(text, encoding="utf-8")
    levels = policy / "levels.yaml"
    row = f"  environment_act: {{act_not_admitted: {lowered('confirm')}}}\n"
    levels.write_text(levels.read_text(encoding="utf-8") + row, encoding="utf-8")
    reset = ("environment", "reset", folder, "--policy", policy, "--principal", "agent")
    waits = command(*reset)
    assert (waits.code, "nothing was changed" in waits.stdout) == (3, True), waits
    approval = waits.stdout.partition("--approval ")[2].strip()
    assert command("approvals", "grant", approval).code == 0
    assert command(*reset, "--approval", approval).code == 0
    assert command(*reset, "--approval", approval).code == 1  # used once


def test_an_environment_changed_by_another_program_is_reported(command: Command, folder: Path) -> None:
    (folder / "base.sqlite").chmod(0o600)
    (folder / "base.sqlite").write_bytes(b"x")
    done = command("environment", "show", folder)
    assert (done.code, "changed by another program" in done.stderr) == (4, True)
    nothing = command("environment", "show", folder / "nothing")
    assert nothing.code == 2

"""`engine policy coverage` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.coverage import Kind
from tests.command import Command, Run


def coverage(command: Command, folder: Path, *arguments: str | Path) -> Run:
    return command("policy", "coverage", "--policy", "policy", *arguments, cwd=folder.parent)


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    tools = [{"name": "files_read", "inputSchema": {}}, {"name": "git_push", "inputSchema": {"type": "object"}}]
    path.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}), encoding="utf-8")
    return path


def test_text_for_people(
    command: Command, folder: Path, recorded: Path, listed: Path, snapshot: SnapshotAssertion
) -> None:
    """Up to what depends on the rules of all points."""
    run = coverage(command, folder, "--state", recorded, "--tools", listed)
    assert (run.code, run.stderr) == (0, "")
    head, _, told = run.stdout.partition("\n\n")
    assert head.endswith("record  4 decisions, 2026-11-21T00:00:00.000000Z to 2026-11-22T00:00:00.000000Z")
    told, brief, rest = told.partition("points at which no recorded decision was taken: ")
    assert told == snapshot
    assert brief
    assert "rego/admission/requirements/common/" in rest
    assert rest.endswith("none of this changes a decision; what no rule permits stays refused\n")


def test_json_has_every_gap_with_its_place(command: Command, folder: Path, recorded: Path, listed: Path) -> None:
    run = coverage(command, folder, "--state", recorded, "--tools", listed, "--format", "json")
    assert run.code == 0
    assert run.json["record"]["decisions"] == 4
    gaps = run.json["gaps"]
    assert {gap["kind"] for gap in gaps} == {*Kind}
    assert {key for gap in gaps for key in gap} == {"kind", "subject", "message", "why", "remedy", "where"}
    places = {gap["subject"]: gap["where"] for gap in gaps if gap["kind"] == "rule_shadowed"}
    lines = (folder / "tools.yaml").read_text(encoding="utf-8").splitlines()
    for subject, where in places.items():
        assert where["file"] == "policy/tools.yaml"
        assert f"id: {subject.partition('/')[2]}," in lines[where["line"] - 1]


def test_the_since_option_limits_the_decisions(command: Command, folder: Path, recorded: Path) -> None:
    run = coverage(command, folder, "--state", recorded, "--since", "2026-11-21T12:00:00Z", "--format", "json")
    assert (run.code, run.json["record"]["decisions"]) == (0, 2)
    unused = [gap["subject"] for gap in run.json["gaps"] if gap["kind"] == "rule_never_used"]
    assert "workspace/own_folder" in unused


def test_a_rule_is_reported_as_one_kind_of_gap_only(command: Command, folder: Path, recorded: Path) -> None:
    """A rule that nothing can reach was of course never used."""
    gaps = coverage(command, folder, "--state", recorded, "--format", "json").json["gaps"]
    of = {kind.value: {gap["subject"] for gap in gaps if gap["kind"] == kind} for kind in Kind}
    assert not of["rule_never_used"] & (of["rule_shadowed"] | of["rule_without_tool"])


def test_without_a_record_the_values_are_still_checked(command: Command, folder: Path) -> None:
    run = coverage(command, folder)
    assert run.code == 0
    assert "record  there is none yet" in run.stdout
    assert "unreachable rules: " in run.stdout
    assert "never" not in run.stdout
    assert not command.state.exists()  # looking makes none


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--state", "nowhere"], 2, "there is no state folder"),
        (["--since", "yesterday"], 2, "--since"),
        (["--tools", "nowhere.json"], 2, "cannot read"),
        (["--tools", "policy/levels.yaml"], 2, "not a list of tools"),
        (["--rego", "nowhere"], 2, "does not exist"),
    ],
    ids=str,
)
def test_an_unreadable_argument_is_refused(
    command: Command, folder: Path, arguments: list[str], code: int, said: str
) -> None:
    coverage(command, folder, *arguments).refused(said, code=code)


def test_an_unreadable_line_is_reported(command: Command, folder: Path, recorded: Path) -> None:
    with (recorded / "records" / "decisions.000001.jsonl").open("ab") as file:
        file.write(b"no record\n")
    run = coverage(command, folder, "--state", recorded)
    assert run.code == 0
    assert "decisions.000001.jsonl:5 is not a valid record; run `engine record verify`" in run.stderr

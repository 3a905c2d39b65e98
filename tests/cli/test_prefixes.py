"""`engine tools prefixes`: command prefixes that are approved, listed, revoked, and nothing else."""

from __future__ import annotations

import os
import pwd
import time
from contextlib import closing

import pytest

from engine.state import open_store
from engine.state.rows import PrefixRow
from tests.command import Command, Run, decisions

ME = f"user:{pwd.getpwuid(os.getuid()).pw_name}"
DAY = 86_400


def approve(command: Command, *words: str, principal: str = "agent-7", cwd: str = "/work", tool: str = "shell") -> Run:
    bound = ("--principal", principal, "--cwd", cwd, "--tool", tool)
    return command("tools", "prefixes", "approve", *bound, "--", *words)


def kept(command: Command) -> tuple[PrefixRow, ...]:
    with closing(open_store(command.state)) as store:
        return store.prefixes(None, None, 100)


# covers: B09 H08.4
def test_a_prefix_is_approved_listed_and_revoked(command: Command) -> None:
    run = approve(command, "git", "status", "--short")
    (row,) = kept(command)
    assert (run.code, run.stdout.splitlines()[0]) == (0, f"approved by {ME}: {row.id}")
    assert (row.principal, row.cwd, row.tool, row.approver) == ("agent-7", "/work", "shell", ME)
    assert row.words == ("git", "status", "--short")
    assert row.expires_at - row.created_at == 7 * DAY
    assert abs(row.created_at - time.time()) < 120

    listed = command("tools", "prefixes", "list")
    assert listed.code == 0
    for word in (row.id, "valid", "git status --short", "agent-7 with shell in /work", f"approved by {ME}"):
        assert word in listed.stdout
    revoked = command("tools", "prefixes", "revoke", row.id)
    assert (revoked.code, revoked.stdout) == (0, "revoked: git status --short of agent-7\n")
    (row,) = kept(command)
    assert row.revoked_at is not None
    (listed,) = command("tools", "prefixes", "list", "--format", "json").json["prefixes"]
    assert listed["state"] == "revoked"


def test_approvals_are_listed_with_their_state_and_principal(command: Command) -> None:
    now = int(time.time())
    with closing(open_store(command.state)) as store:
        for principal, begun in (("late", now - 100), ("early", now)):
            store.approve_prefix(PrefixRow(principal, "/work", "shell", ("ls",), "lee", begun, begun + 50))
        gone = store.approve_prefix(PrefixRow("early", "/srv", "shell", ("ls",), "lee", now, now + 50))
        store.revoke_prefix(gone.id, now)

    def states(*options: str) -> list[tuple[str, str]]:
        rows = command("tools", "prefixes", "list", "--format", "json", *options).json["prefixes"]
        return [(row["principal"], row["state"]) for row in rows]

    assert states() == [("early", "revoked"), ("early", "valid"), ("late", "expired")]
    assert states("--principal", "late") == [("late", "expired")]
    assert states("--cwd", "/srv") == [("early", "revoked")]
    assert states("--limit", "1") == [("early", "revoked")]
    assert "no prefixes" in command("tools", "prefixes", "list", "--cwd", "/other").stdout


# covers: B10
@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "words",
    [
        ["ls; rm"],
        ["ls", ";", "rm"],
        ["ls\nrm", "-rf"],
        ["$(ls)"],
        ["`ls`"],
        ["X=1", "ls"],
        ["/bin/../bin/ls"],
        ["my program"],
        ["ls", ">", "/etc/passwd"],
        [""],
        ["git", ""],
        ["word"] * 17,
    ],
    ids=repr,
)
def test_only_a_plain_command_can_be_approved(command: Command, words: list[str]) -> None:
    approve(command, *words).refused("engine: ")
    assert not command.state.exists()


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cwd": "work"}, "not an absolute path"),
        ({"cwd": "/work/"}, "not an absolute path"),
        ({"cwd": "/work/../etc"}, "not an absolute path"),
        ({"tool": "she ll"}, "not a tool name"),
        ({"tool": ""}, "not a tool name"),
        ({"principal": ""}, "printable characters"),
        ({"principal": "a\nb"}, "printable characters"),
        ({"principal": "x" * 257}, "printable characters"),
    ],
    ids=str,
)
def test_an_invalid_binding_is_refused(command: Command, changes: dict[str, str], said: str) -> None:
    approve(command, "git", "status", **changes).refused(said)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("options", "code"),
    [(["--principal", ME], "prefix_approver_is_runner"), (["--days", "367"], "prefix_too_long")],
    ids=str,
)
def test_a_prefix_that_the_policy_denies_is_not_approved(command: Command, options: list[str], code: str) -> None:
    bound = ("--principal", "agent-7", "--cwd", "/work", "--tool", "shell", *options)
    command("tools", "prefixes", "approve", *bound, "--", "git", "status").refused(f"{code}: required: ", code=1)
    assert kept(command) == ()
    assert [line["outcome"] for line in decisions(command.state)] == ["deny"]


@pytest.mark.parametrize(
    ("tool", "said"), [("shel", "; did you mean `shell`?"), ("browser", "http_get, "), ("http_get", "or `data`\n")]
)
def test_a_prefix_for_a_tool_that_does_not_exist_or_takes_no_commands_is_not_approved(
    command: Command, tool: str, said: str
) -> None:
    run = approve(command, "git", "status", tool=tool)
    run.refused("prefix_tool_unknown: required: The tool of a command prefix is known and takes commands", code=1)
    assert said in run.stderr
    assert kept(command) == ()


@pytest.mark.full
def test_approving_and_revoking_are_recorded_with_principal_and_reason(command: Command) -> None:
    approve(command, "git", "status")
    (row,) = kept(command)
    assert command("tools", "prefixes", "revoke", row.id, "--reason", "no longer needed").code == 0
    asked, ended = decisions(command.state)
    assert (asked["principal"], asked["input"]["act"], asked["input"]["id"]) == (ME, "approve_prefix", row.id)
    assert asked["input"]["prefix"]["words"] == ["git", "status"]
    assert (ended["principal"], ended["input"]["act"], ended["input"]["id"]) == (ME, "revoke_prefix", row.id)
    assert ended["input"]["reason"] == "no longer needed"


@pytest.mark.full
def test_an_approver_is_the_principal_of_a_token_for_approving_calls(command: Command) -> None:
    new = ("tokens", "issue", "--principal", "lee", "--days", "1")
    issued = command(*new, "--point", "tool_call", "--approve", "tool_call").stdout.strip()
    asking = command(*new, "--point", "tool_call", "--approve", "source").stdout.strip()
    bound = ("--principal", "agent-7", "--cwd", "/work", "--tool", "shell", "--days", "1", "--", "git")
    run = command("tools", "prefixes", "approve", *bound, env={"ENGINE_TOKEN": issued})
    assert (run.code, kept(command)[0].approver) == (0, "lee")
    assert kept(command)[0].expires_at - kept(command)[0].created_at == DAY
    for token in (asking, "aet_0"):
        refused = command("tools", "prefixes", "approve", *bound, env={"ENGINE_TOKEN": token})
        assert (refused.code, len(kept(command))) == (1, 1)


@pytest.mark.full(after=1)
@pytest.mark.parametrize("id_", ["0" * 32, "' OR 1=1 --", "\udcff"])
def test_an_unknown_one_cannot_be_revoked(command: Command, id_: str) -> None:
    approve(command, "git", "status")
    command("tools", "prefixes", "revoke", id_).refused("no approved command prefix with this id")
    assert kept(command)[0].revoked_at is None

"""`engine tokens`: issued once, listed without the secret, revoked at once."""

from __future__ import annotations

import os
import pwd
import re
import time
from contextlib import closing
from pathlib import Path

import pytest

from engine.points.registry import POINTS
from engine.state import open_store
from tests.command import Command, Run, decisions, lines
from tests.expect import there

ME = f"user:{pwd.getpwuid(os.getuid()).pw_name}"


def issue(command: Command, *options: str, principal: str = "pipeline-7") -> Run:
    return command("tokens", "issue", "--principal", principal, "--days", "30", *options)


def test_a_token_is_issued_listed_and_revoked(command: Command) -> None:
    issued = issue(command, "--point", "source", "--point", "license")
    text = issued.stdout.strip()
    assert (issued.code, issued.stdout) == (0, f"{text}\n")
    assert re.fullmatch(r"aet_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", text)
    id_, secret = text[4:12], text[13:]
    assert id_ in issued.stderr
    assert secret not in issued.stderr

    now = int(time.time())
    with closing(open_store(command.state)) as store:
        row = there(store.token(text, now))
        assert (row.principal, row.points) == ("pipeline-7", ("license", "source"))
        assert now + 29 * 86_400 < row.expires_at <= now + 30 * 86_400
        listed = command("tokens", "list")
        assert listed.code == 0
        assert all(word in listed.stdout for word in (id_, "valid", "pipeline-7", "license, source"))
        revoked = command("tokens", "revoke", id_)
        assert (revoked.code, revoked.stdout) == (0, f"token {id_} of pipeline-7 is revoked\n")
        assert store.token(text, now) is None  # at once, in the process that has it open
    rows = command("tokens", "list", "--format", "json")
    assert [(row["id"], row["state"]) for row in rows.json["tokens"]] == [(id_, "revoked")]
    for run in (listed, revoked, rows):
        assert secret not in run.stdout + run.stderr
    assert not any(secret.encode() in path.read_bytes() for path in command.state.rglob("*") if path.is_file())


# covers: D31
def test_a_token_may_be_short_for_one_server_and_one_request(command: Command) -> None:
    limited = ("--point", "runner_request", "--minutes", "5", "--audience", "runner-1", "--single-use")
    issued = command("tokens", "issue", "--principal", "pipeline-7", *limited)
    text, now = issued.stdout.strip(), int(time.time())
    assert issued.code == 0
    assert "at runner-1 only, for one request" in issued.stderr
    with closing(open_store(command.state)) as store:
        assert store.token(text, now) is None
        row = there(store.token(text, now, "runner-1"))
        assert now + 290 < row.expires_at <= now + 300
    (listed,) = command("tokens", "list", "--format", "json").json["tokens"]
    assert (listed["state"], listed["audience"], listed["single_use"]) == ("used", "runner-1", True)


@pytest.mark.full
def test_a_token_for_all_points_covers_the_points_that_exist_now(command: Command) -> None:
    assert issue(command, "--all-points").code == 0
    assert command("tokens", "list", "--format", "json").json["tokens"][0]["points"] == sorted(POINTS)


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--point", "sources"],
        ["--point", "*"],
        ["--point", "source", "--all-points"],
        ["--point", "source", "--days", "0"],
        ["--point", "source", "--days", "9999999999"],
        ["--point", "source", "--minutes", "5"],  # and days
        ["--point", "source", "--audience", "runner 1"],
    ],
    ids=str,
)
def test_invalid_options_are_refused_and_issue_no_token(command: Command, options: list[str]) -> None:
    run = issue(command, *options)
    assert (run.code, run.stdout) == (2, "")
    assert not command.state.exists()


@pytest.mark.parametrize("principal", ["", " ", "a\nb", "x" * 257, "\udcff"])
def test_a_blank_unprintable_or_oversized_principal_is_refused(command: Command, principal: str) -> None:
    run = issue(command, "--point", "source", principal=principal)
    assert (run.code, run.stdout) == (2, "")


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--principal", "pipeline-7 "], "principal_ambiguous"),
        (["--principal", "\u043efficer"], "principal_ambiguous"),  # a Cyrillic letter
        (["--days", "367"], "token_too_long"),
    ],
    ids=str,
)
def test_a_token_that_the_policy_denies_is_refused_and_recorded(
    command: Command, options: list[str], code: str
) -> None:
    issue(command, "--point", "source", *options).refused(f"{code}: required: ", code=1)
    (line,) = decisions(command.state)
    assert (line["outcome"], [one["code"] for one in line["findings"]]) == ("deny", [code])
    with closing(open_store(command.state)) as store:
        assert store.tokens() == ()


@pytest.mark.full
def test_issuing_and_revoking_are_recorded_with_principal_and_reason(command: Command) -> None:
    options = ("--point", "license", "--approve", "source", "--reason", "nightly run")
    issued = issue(command, *options)
    assert command("tokens", "revoke", issued.stdout[4:12], "--reason", "the run is over").code == 0
    made, done, ended, gone = lines(command.state)
    asked = made["input"]
    assert made["kind"] == "decision"
    assert (made["point"], made["outcome"], made["principal"]) == ("administration", "allow", ME)
    assert (asked["act"], asked["id"], asked["reason"]) == ("issue_token", issued.stdout[4:12], "nightly run")
    assert asked["scope"] == {
        "principal": "pipeline-7",
        "seconds": 30 * 86_400,
        "points": ["license"],
        "approves": ["source"],
        "single_use": False,
    }
    assert (done["kind"], done["decision_id"], done["facts"]["id"]) == ("result", made["decision_id"], asked["id"])
    assert (ended["input"]["act"], ended["principal"]) == ("revoke_token", ME)
    assert ended["input"]["reason"] == "the run is over"
    assert gone["decision_id"] == ended["decision_id"]
    secret = issued.stdout.strip()[13:].encode()
    assert not any(secret in path.read_bytes() for path in command.state.rglob("*") if path.is_file())
    told = command("record", "show").stdout
    assert all(word in told for word in ("issue_token", "nightly run", "revoke_token", "the run is over", ME))


def test_an_expiry_has_to_be_stated(command: Command) -> None:
    command("tokens", "issue", "--principal", "pipeline", "--point", "source").refused("--days")


@pytest.mark.full
def test_an_unknown_token_cannot_be_revoked(command: Command) -> None:
    issue(command, "--point", "source")
    for id_ in ("00000000", "\udcff", "' OR 1=1 --"):
        command("tokens", "revoke", id_).refused("there is no token with this id")
    assert [row["state"] for row in command("tokens", "list", "--format", "json").json["tokens"]] == ["valid"]


def test_another_state_folder_can_be_named(command: Command, tmp_path: Path) -> None:
    assert issue(command, "--point", "source", "--state", str(tmp_path / "other")).code == 0
    assert len(command("tokens", "list", "--state", tmp_path / "other", "--format", "json").json["tokens"]) == 1
    assert not command.state.exists()


@pytest.mark.full
def test_nothing_is_issued_into_a_state_that_cannot_be_used(command: Command) -> None:
    command.state.mkdir(mode=0o700)
    (command.state / "state.sqlite3").touch(mode=0o600)
    (command.state / "state.sqlite3").write_bytes(b"no database")
    issue(command, "--point", "source").refused("the state cannot be used", code=4)

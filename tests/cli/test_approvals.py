"""`engine approvals`: what waits, what is asked, and who decides on it."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.cli.administration.control import post
from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Decision, Mode, Outcome, Via
from engine.record.log import RecordLog
from engine.record.storage import Storage
from engine.settings import CONTROL, Settings
from engine.state import open_store
from engine.state.rows import ApprovalRow
from engine.state.store import Store
from engine.times import time_text
from tests.command import Command, decisions, lines
from tests.conftest import case
from tests.expect import there
from tests.record.samples import clock, decision

ME = f"user:{pwd.getpwuid(os.getuid()).pw_name}"


@pytest.fixture
def store(command: Command) -> Iterator[Store]:
    """The state as a running server has it open."""
    with closing(open_store(command.state)) as opened:
        yield opened


def ask(store: Store, **changes: Any) -> ApprovalRow:
    now = int(time.time())
    wanted: dict[str, Any] = {
        "point": "source",
        "input_digest": "sha256:" + "c" * 64,
        "rules": "sha256:" + "1" * 64,
        "values": "sha256:" + "2" * 64,
        "requester": "pipeline-7",
        "codes": ("license_review_required",),
        "created_at": now,
        "expires_at": now + 3600,
    }
    return store.request_approval(ApprovalRow(**(wanted | changes)))


def expired(store: Store) -> ApprovalRow:
    now = int(time.time())
    return ask(store, requester="late", created_at=now - 100, expires_at=now - 50)


def test_approvals_are_listed_newest_first(command: Command, store: Store) -> None:
    rows = [ask(store, requester=f"pipeline-{number}") for number in range(3)]
    late = expired(store)
    store.resolve(rows[0].id, "refused", "user:lee", "no", rows[0].created_at)
    every = command("approvals", "list", "--format", "json").json["approvals"]
    assert [row["id"] for row in every] == [late.id, rows[2].id, rows[1].id, rows[0].id]
    assert [row["expired"] for row in every] == [True, False, False, False]
    assert [row["expires_at"] for row in every] == [time_text(row.expires_at) for row in (late, *reversed(rows))]
    waiting = command("approvals", "list", "--only", "requested", "--limit", "2", "--format", "json").json["approvals"]
    assert [row["id"] for row in waiting] == [late.id, rows[2].id]
    text = command("approvals", "list")
    assert text.code == 0
    words = (rows[0].id, "refused", "requested", "expired", "pipeline-2", "license_review_required")
    assert all(word in text.stdout for word in words)
    assert "no approvals" in command("approvals", "list", "--only", "used").stdout


@pytest.mark.full
def test_an_expiry_after_the_year_9999_is_shown_in_words(command: Command, store: Store) -> None:
    row = ask(store, expires_at=2**53 - 1)
    for arguments in (["list"], ["show", row.id]):
        run = command("approvals", *arguments)
        assert run.code == 0
        assert "after the year 9999" in run.stdout


def test_a_shown_approval_names_the_command_that_shows_its_input(command: Command, store: Store) -> None:
    row = ask(store)
    shown = command("approvals", "show", row.id).stdout
    for word in (row.id, "REQUESTED", "source", "pipeline-7", *row.codes, row.input_digest, row.rules, row.values):
        assert word in shown
    assert "engine record show --point source --outcome confirm" in shown
    with RecordLog.open(Storage(command.state), lock_seconds=5, clock=clock) as log:
        for number, outcome in ((1, Outcome.CONFIRM), (2, Outcome.DENY), (3, Outcome.CONFIRM)):
            log.append(decision(number, outcome=outcome, mode=Mode.ENFORCE))
    ids = command("approvals", "show", row.id, "--format", "json").json["requesting_decisions"]
    assert ids == [f"{number:032x}" for number in (3, 1)]
    way = f"engine record show --decision-id {ids[0]}"
    assert way in command("approvals", "show", row.id).stdout
    assert command(*way.split()[1:]).code == 0
    other = ask(store, input_digest="sha256:" + "d" * 64)
    assert command("approvals", "show", other.id, "--format", "json").json["requesting_decisions"] == []


def test_an_approval_is_granted_by_the_user_of_the_system(command: Command, store: Store) -> None:
    row = ask(store)
    lies = {"USER": "mallory", "LOGNAME": "mallory", "SUDO_USER": "mallory"}
    run = command("approvals", "grant", row.id, "--reason", "seen the contract", env=lies)
    assert (run.code, run.stdout) == (0, f"granted by {ME}: {row.id}\n")
    granted = there(store.approval(row.id))
    assert (granted.state, granted.approver, granted.reason) == ("granted", ME, "seen the contract")
    shown = command("approvals", "show", row.id).stdout
    assert all(word in shown for word in ("GRANTED", ME, "seen the contract"))


def test_an_approval_is_refused_with_a_reason(command: Command, store: Store) -> None:
    row = ask(store)
    command("approvals", "refuse", row.id).refused("reason_missing: required", code=1)
    for reason in ("", " ", "x" * 1001, "two\nlines", "\udcff"):  # of the request, and not of the policy
        assert command("approvals", "refuse", row.id, "--reason", reason).code == 2
    assert store.approval(row.id) == row
    assert command("approvals", "refuse", row.id, "--reason", "no contract").code == 0
    refused = there(store.approval(row.id))
    assert (refused.state, refused.approver, refused.reason) == ("refused", ME, "no contract")


def test_the_principal_of_a_token_approves(command: Command, store: Store) -> None:
    now = int(time.time())
    token = store.issue("officer", [], now + 60, now, ["source"])
    row = ask(store)
    run = command("approvals", "grant", row.id, env={"ENGINE_TOKEN": token.text})
    assert run.code == 0
    assert there(store.approval(row.id)).approver == "officer"
    assert token.text not in run.stdout + run.stderr


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("points", "approves"), [(["source", "administration"], []), (["source"], ["license"])], ids=["asks", "elsewhere"]
)
def test_a_token_approves_at_the_points_of_its_scope_only(
    command: Command, store: Store, points: list[str], approves: list[str]
) -> None:
    now = int(time.time())
    token = store.issue("officer", points, now + 60, now, approves)
    row = ask(store)
    for arguments in (["grant", row.id], ["refuse", row.id, "--reason", "no"]):
        run = command("approvals", *arguments, env={"ENGINE_TOKEN": token.text})
        run.refused("act_out_of_scope: required: ", code=1)
    assert store.approval(row.id) == row


@pytest.mark.full(after=1)
@pytest.mark.parametrize("kind", ["empty", "unknown", "revoked", "expired"])
def test_a_token_that_does_not_hold_approves_nothing(command: Command, store: Store, kind: str) -> None:
    now = int(time.time())
    old = store.issue("officer", ["source"], now - 10, now - 20)
    gone = store.issue("officer", ["source"], now + 60, now)
    store.revoke(gone.id, now)
    text = {"empty": "", "unknown": gone.text[:-1] + "~", "revoked": gone.text, "expired": old.text}[kind]
    row = ask(store)
    run = command("approvals", "grant", row.id, env={"ENGINE_TOKEN": text})
    assert (run.code, run.stdout) == (1, "")
    assert "unknown, expired or revoked" in run.stderr
    assert text not in run.stderr or not text
    assert store.approval(row.id) == row
    (line,) = decisions(command.state)  # an attempt of this user
    assert (line["outcome"], line["principal"], line["findings"][0]["code"]) == ("deny", ME, "unauthorized")


@pytest.mark.full
def test_the_requester_is_refused_at_once_and_may_withdraw(command: Command, store: Store) -> None:
    row = ask(store, requester=ME)
    run = command("approvals", "grant", row.id)
    run.refused("approver_is_requester: required: The approver is not the requester", code=1)
    assert store.approval(row.id) == row
    assert command("approvals", "refuse", row.id, "--reason", "not needed").code == 0
    assert command("approvals", "grant", ask(store, requester=f"{ME}2").id).code == 0  # the control: an exact name
    first, second, third = decisions(command.state)
    assert {one["principal"] for one in (first, second, third)} == {ME}
    assert [one["outcome"] for one in (first, second, third)] == ["deny", "allow", "allow"]
    assert [one["code"] for one in first["findings"]] == ["approver_is_requester"]


@pytest.mark.full
def test_a_requester_without_a_name_is_approved_as_the_values_say(command: Command, store: Store) -> None:
    loopback = ask(store, requester=None, requester_via="loopback")
    assert command("approvals", "grant", loopback.id).code == 0
    shared = ask(store, requester=None, requester_via="shared_token", point="license")
    command("approvals", "grant", shared.id).refused("callers without a name need a token", code=1)
    assert command("approvals", "refuse", shared.id, "--reason", "no").code == 0


@pytest.mark.full
def test_a_grant_is_recorded_with_principal_and_reason(command: Command, store: Store) -> None:
    row = ask(store)
    assert command("approvals", "grant", row.id, "--reason", "seen the contract").code == 0
    made, done = lines(command.state)
    assert made["kind"] == "decision"
    assert (made["point"], made["outcome"], made["principal"]) == ("administration", "allow", ME)
    assert {made["input"][name] for name in ("act", "id", "reason")} == {"grant_approval", row.id, "seen the contract"}
    assert made["input"]["approval"]["requester"] == "pipeline-7"
    assert (done["kind"], done["status"], done["decision_id"]) == ("result", "done", made["decision_id"])
    assert f"expires_at {time_text(row.expires_at)}, " in command("record", "show").stdout


@pytest.mark.full
def test_an_embedded_engine_carries_out_acts_of_the_command_line(command: Command, cache: Path) -> None:
    """The record has one writer, so that one decides and records the act."""
    request = case("license", "review_required").case.request
    agent, me = (Caller(via=Via.PROCESS, principal=name) for name in ("agent", ME))
    with Engine(Settings(state=command.state, cache=cache)) as engine:

        def ask_again(caller: Caller, id_: str | None = None) -> Decision:
            return engine.decide("license", request, context=Context(caller=caller, approval=id_)).decision

        asked, own = ask_again(agent).approval, ask_again(me).approval
        assert asked is not None
        assert own is not None
        granted = command("approvals", "grant", asked.id, "--reason", "seen")
        assert (granted.code, granted.stdout) == (0, f"granted by {ME}: {asked.id}\n")
        assert ask_again(agent, asked.id).outcome == "allow"
        refused = command("approvals", "grant", own.id)
        refused.refused("approver_is_requester: required", code=1)
        issue = ("tokens", "issue", "--principal", "lee", "--days", "1", "--approve", "source")
        lee = {"ENGINE_TOKEN": command(*issue).stdout.strip()}
        command("approvals", "grant", own.id, env=lee).refused("act_out_of_scope: required", code=1)
        assert command("approvals", "grant", own.id, env={"ENGINE_TOKEN": "aet_none"}).code == 1
        socket = command.state / CONTROL
        assert (socket.stat().st_mode & 0o777, socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert post(command.state, "/v1/policy/activate").status == 404
        assert post(command.state, "/v1/administration", {"act": "grant_approval"}).status == 422
    assert not socket.exists()
    acts = [line for line in decisions(command.state) if line["point"] == "administration"]
    assert [(one["principal"], one["outcome"]) for one in acts if one["input"] is not None] == [
        *((ME, "allow"), (ME, "deny"), (ME, "allow"), ("lee", "deny")),
    ]


@pytest.mark.full
def test_without_a_record_nothing_is_granted(command: Command, store: Store) -> None:
    row = ask(store)
    (command.state / "records").write_text("no folder", encoding="utf-8")
    run = command("approvals", "grant", row.id)
    assert (run.code, run.stdout) == (4, "")
    assert store.approval(row.id) == row


@pytest.mark.full
def test_a_closed_approval_cannot_be_granted_or_refused(command: Command, store: Store) -> None:
    row, late = ask(store), expired(store)
    assert command("approvals", "grant", row.id).code == 0
    told = {
        row.id: ("approval_resolved: required", f"found: it was granted by {ME}"),
        late.id: ("approval_overdue: required", "found: it expired at "),
    }
    for id_, words in told.items():
        for arguments in (["grant", id_], ["refuse", id_, "--reason", "no"]):
            command("approvals", *arguments).refused(*words, code=1)
    assert store.approval(late.id) == late
    assert command("approvals", "show", late.id).stdout.startswith("EXPIRED")


@pytest.mark.full(after=1)
@pytest.mark.parametrize("id_", ["f" * 32, "\udcff", "", "x" * 5000])
def test_an_unknown_approval_ends_with_2(command: Command, store: Store, id_: str) -> None:
    ask(store)
    for arguments in (["show", id_], ["grant", id_], ["refuse", id_, "--reason", "no"]):
        command("approvals", *arguments).refused("there is no approval")


LOOKING = [
    *("approvals list", f"approvals show {'f' * 32}", f"approvals grant {'f' * 32}"),
    f"approvals refuse {'f' * 32} --reason no",
    *("tokens list", "tokens revoke 00000000"),
    *("tools prefixes list", f"tools prefixes revoke {'0' * 32}"),
]


@pytest.mark.full(after=1)
@pytest.mark.parametrize("line", LOOKING)
def test_a_missing_or_corrupt_state_is_reported(line: str, command: Command) -> None:
    command(*line.split()).refused("has no state", "--state")
    assert not command.state.exists()
    command.state.mkdir(mode=0o700)
    for data in (b"", b"no database"):
        (command.state / "state.sqlite3").write_bytes(data)
        (command.state / "state.sqlite3").chmod(0o600)
        command(*line.split()).refused("the state cannot be used", code=4)


def test_a_folder_whose_engines_share_a_state_is_not_called_empty(command: Command) -> None:
    command.state.mkdir(mode=0o700)
    (command.state / "shared-state").write_text("an identity\n", encoding="ascii")
    command("approvals", "list").refused("share a state in PostgreSQL", "ENGINE_STATE_DATABASE", code=4)

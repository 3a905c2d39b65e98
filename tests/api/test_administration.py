"""Acts of people beside a running server: it decides and records them, by whatever way they arrive."""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.state import open_store
from engine.state.rows import ApprovalRow
from tests.api.serving import ALLOWED, Serving, issue, serving
from tests.command import Command, Run, lines, written
from tests.conftest import ROOT, case
from tests.expect import there
from tests.processes import stop, until

ME = f"user:{pwd.getpwuid(os.getuid()).pw_name}"
REVIEWED = case("license", "review_required").case.request


@pytest.fixture
def own(tmp_path: Path, cache: Path) -> Iterator[Serving]:
    """A server as it starts by default: on loopback, without a token."""
    with serving(tmp_path, cache) as running:
        yield running


def run(command: Command, serving_: Serving, *arguments: str, **how: Any) -> Run:
    """A command on the state folder of the server."""
    return command(*arguments, "--state", serving_.state, **how)


def bearer(state: Path, principal: str, points: tuple[str, ...] = (), approves: tuple[str, ...] = ()) -> dict[str, str]:
    """The header of a new token."""
    return {"Authorization": f"Bearer {issue(state, principal, points, approves=approves)}"}


def waiting(state: Path, **changes: Any) -> str:
    """The id of a new request for approval."""
    now = int(time.time())
    wanted = {"point": "license", "requester": "pipeline", "requester_via": "token", "codes": ("one",)}
    digests = dict.fromkeys(("input_digest", "rules", "values"), "sha256:" + "1" * 64)
    new = ApprovalRow(**{**wanted, **digests, "created_at": now, "expires_at": now + 600, **changes})
    with closing(open_store(state)) as store:
        return store.request_approval(new).id


def state_of(state: Path, id_: str) -> tuple[str, str | None]:
    with closing(open_store(state)) as store:
        row = there(store.approval(id_))
    return row.state, row.approver


def codes(decision: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in decision["findings"]]


def test_the_approval_of_the_default_set_up_works(own: Serving, command: Command) -> None:
    """Asked without a token on loopback, granted by a user of this machine, retried."""
    first = own.decide("license", REVIEWED).json
    assert (first["outcome"], codes(first)) == ("confirm", ["license_review_required"])
    id_ = first["approval"]["id"]
    granted = run(command, own, "approvals", "grant", id_, "--reason", "seen the contract")
    assert (granted.code, granted.stdout) == (0, f"granted by {ME}: {id_}\n")
    retried = own.decide("license", REVIEWED, X_Approval=id_).json
    assert (retried["outcome"], retried["approval"]["state"]) == ("allow", "used")
    again = own.decide("license", REVIEWED, X_Approval=id_).json
    assert (again["outcome"], "approval_used" in codes(again)) == ("deny", True)
    assert own.stop() == 0
    acts = [line for line in own.records() if line["kind"] == "decision" and line["point"] == "administration"]
    assert [(act["principal"], act["outcome"], act["input"]["reason"]) for act in acts] == [
        (ME, "allow", "seen the contract")
    ]
    assert acts[0]["input"]["caller"]["via"] == "control"
    used = next(line for line in own.records() if line.get("decision_id") == retried["decision_id"])
    assert acts[0]["seq"] < used["seq"]


@pytest.mark.full
def test_acts_of_the_command_line_are_recorded_by_the_running_server(own: Serving, command: Command) -> None:
    issued = run(command, own, "tokens", "issue", "--principal", "pipeline", "--days", "1", "--point", "license")
    assert (issued.code, issued.stdout[:4]) == (0, "aet_")
    token = {"Authorization": f"Bearer {issued.stdout.strip()}"}
    assert own.ask("POST", "/v1/decide/license", ALLOWED, token).json["outcome"] == "allow"
    assert run(command, own, "tokens", "revoke", issued.stdout[4:12], "--reason", "leaked").code == 0
    assert own.ask("POST", "/v1/decide/license", ALLOWED, token).status == 401
    refused = run(command, own, "tokens", "issue", "--principal", "pipeline", "--days", "999", "--point", "license")
    assert (refused.code, "token_too_long: required" in refused.stderr) == (1, True)
    wanted = ("--principal", "agent-7", "--cwd", "/work", "--tool", "shell", "--", "git")
    state = ("--state", own.state)
    assert command("tools", "prefixes", "approve", *state, *wanted).code == 0
    wrong = run(command, own, "approvals", "grant", waiting(own.state), env={"ENGINE_TOKEN": "aet_none\n"})
    assert (wrong.code, "unknown, expired or revoked" in wrong.stderr) == (1, True)
    assert own.stop() == 0
    acts = [line for line in lines(own.state) if line.get("point") == "administration"]
    assert [(one["input"]["act"], one["outcome"]) for one in acts if one["input"] is not None] == [
        ("issue_token", "allow"),
        ("revoke_token", "allow"),
        ("issue_token", "deny"),
        ("approve_prefix", "allow"),
    ]
    assert issued.stdout.strip().encode() not in written(own.state)


def test_a_token_approves_over_http_at_the_points_of_its_scope_only(own: Serving) -> None:
    officer = bearer(own.state, "officer", approves=("license",))
    others = {
        "asks": bearer(own.state, "asks", points=("license", "administration")),
        "elsewhere": bearer(own.state, "elsewhere", approves=("source",)),
        "requester": bearer(own.state, "pipeline", approves=("license",)),
    }
    id_ = waiting(own.state)
    for name, headers in others.items():
        for path, body in (
            (f"/v1/approvals/{id_}/grant", {"reason": "seen"}),
            ("/v1/administration", {"act": "grant_approval", "id": id_}),
        ):
            reply = own.ask("POST", path, body, headers)
            wanted = "approver_is_requester" if name == "requester" else "act_out_of_scope"
            assert (reply.status, codes(reply.json["decision"]), reply.json["done"]) == (200, [wanted], None)
    assert own.ask("POST", f"/v1/approvals/{id_}/grant", {}).status == 401  # a token was issued
    assert state_of(own.state, id_) == ("requested", None)

    granted = own.ask("POST", f"/v1/approvals/{id_}/grant", {"reason": "seen"}, officer)
    assert (granted.status, granted.json["decision"]["outcome"]) == (200, "allow")
    assert granted.json["done"].items() >= {"id": id_, "state": "granted", "approver": "officer"}.items()
    assert state_of(own.state, id_) == ("granted", "officer")
    again = own.ask("POST", f"/v1/approvals/{id_}/grant", {"reason": "seen"}, officer).json
    assert (codes(again["decision"]), again["done"]) == (["approval_resolved"], None)
    other = waiting(own.state, requester="another")
    refused = own.ask("POST", f"/v1/approvals/{other}/refuse", {"reason": "no contract"}, officer).json
    assert refused["done"]["state"] == "refused"
    assert own.ask("POST", "/v1/decide/license", ALLOWED, officer).json["outcome"] == "deny"  # it asks about nothing


def test_of_concurrent_grants_one_takes_effect(own: Serving) -> None:
    officer = bearer(own.state, "officer", approves=("license",))
    for number in range(5):
        path = f"/v1/approvals/{waiting(own.state, requester=f'pipeline {number}')}/grant"
        grant = partial(own.ask, "POST", path, {"reason": "seen"}, officer)
        with ThreadPoolExecutor(8) as pool:
            replies = [asked.result() for asked in [pool.submit(grant) for _ in range(8)]]
        assert sum(reply.status == 200 and reply.json["done"] is not None for reply in replies) == 1
        closed = [reply.json["code"] for reply in replies if reply.status != 200]
        assert {reply.status for reply in replies} <= {200, 409}
        assert set(closed) <= {"engine.approval_closed"}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'"seen"', {"reason": 1}, {"reason": ""}, {"reason": "a\nb"}, {"act": "issue_token"}],
    ids=str,
)
def test_a_malformed_grant_is_a_recorded_deny(api: Serving, body: Any) -> None:
    id_ = waiting(api.state)
    reply = api.ask("POST", f"/v1/approvals/{id_}/grant", body)
    assert reply.status in {400, 422}
    assert reply.json["decision"]["outcome"] == "deny"
    assert state_of(api.state, id_) == ("requested", None)


def test_acts_on_loopback_without_a_token_are_refused(api: Serving) -> None:
    id_ = waiting(api.state)
    reply = api.ask("POST", f"/v1/approvals/{id_}/grant", {"reason": "seen"})
    assert (reply.status, reply.json["done"]) == (200, None)
    assert "act_out_of_scope" in codes(reply.json["decision"])
    scope = {"principal": "me", "points": ["license"], "approves": [], "seconds": 60}
    asked = {"act": "issue_token", "id": "0a1b2c3d", "scope": scope}
    assert "act_out_of_scope" in codes(api.ask("POST", "/v1/administration", asked).json["decision"])
    assert api.ask("POST", "/v1/administration", asked, control=True).json["done"]["id"] == "0a1b2c3d"  # the control
    assert state_of(api.state, id_) == ("requested", None)


def test_the_routes_for_decisions_take_no_act(api: Serving) -> None:
    asked = {"act": "revoke_token", "id": "0a1b2c3d", "reason": "leaked"}
    properties = {"request": asked}
    resource = {"type": "token", "id": "1", "properties": properties}
    subject = dict(zip(("type", "id"), ME.split(":"), strict=True))
    evaluation = {"subject": subject, "action": {"name": "administration"}, "resource": resource}
    for path, body in (("/v1/decide/administration", asked), ("/access/v1/evaluation", evaluation)):
        reply = api.ask("POST", path, body, control=True)
        assert (reply.status, reply.json["decision"]["outcome"]) == (422, "deny")
        assert "/v1/administration" in reply.json["remedy"]
    batch = api.ask("POST", "/v1/decide/administration/batch", {"inputs": {"one": asked}}, control=True)
    assert batch.json["responses"]["one"]["code"] == "engine.request_invalid"
    dry = api.ask("POST", "/v1/decide/administration?mode=check", asked, control=True)
    assert (dry.status, dry.json["outcome"]) == (200, "allow")


@pytest.mark.full
def test_a_policy_change_is_recorded_with_principal_and_reason(tmp_path: Path, cache: Path, command: Command) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    for path in (ROOT / "policy").iterdir():
        (policy / path.name).write_bytes(path.read_bytes())
    with serving(tmp_path, cache, "--policy", policy) as own:
        approvals = policy / "approvals.yaml"
        good = approvals.read_text(encoding="utf-8")
        approvals.write_text(good.replace("86400", "3600"), encoding="utf-8")
        changed = run(command, own, "policy", "activate", "--reason", "shorter approvals")
        assert (changed.code, "→" in changed.stdout) == (0, True)
        approvals.write_text("valid_seconds: soon\n", encoding="utf-8")
        assert run(command, own, "policy", "activate").code == 5
        assert own.ask("POST", "/v1/policy/activate", {"reason": 7}, control=True).status == 422
        assert own.stop() == 0
    started, first, second = (line for line in own.records() if line["kind"] == "policy")
    assert (started["outcome"], started["principal"], started["release"]) == ("started", ME, None)
    assert first["previous"] == started["revisions"]
    assert (first["outcome"], first["principal"], first["reason"]) == ("activated", ME, "shorter approvals")
    assert first["previous"]["values"] != first["revisions"]["values"]
    assert (second["outcome"], second["code"], second["revisions"]) == ("refused", "engine.policy_invalid", None)
    assert second["previous"] == first["revisions"]
    told = run(command, own, "record", "show", "--principal", ME).stdout
    assert "policy activated: values sha256:" in told
    assert f"by {ME}: shorter approvals" in told


@pytest.mark.parametrize("beside", [False, True])
def test_everything_is_stopped_although_an_engine_hangs(
    own: Serving, command: Command, tmp_path: Path, cache: Path, *, beside: bool
) -> None:
    """By another engine if there is one. Once it goes on, it refuses too, and takes the act as the same one."""
    with ExitStack() as stack:
        if beside:
            (tmp_path / "beside").mkdir()
            other = stack.enter_context(serving(tmp_path / "beside", cache, "--state", own.state))
        stop(own.process.pid)
        try:
            stopped = run(command, own, "stop", "all", "--reason", "a leak")
        finally:
            os.kill(own.process.pid, signal.SIGCONT)
        assert (stopped.code, "not answered within 5 seconds" in stopped.stderr) == (0, not beside), stopped.stderr
        for engine in (own, other) if beside else (own,):
            assert [one["code"] for one in engine.decide("license", ALLOWED).json["findings"]] == ["stopped"]
        until(lambda: any(line.get("point") == "administration" for line in lines(own.state)))
        stops = run(command, own, "stop", "list", "--format", "json").json["stops"]
        assert [one["id"] for one in stops] == [stopped.stdout.split()[-1]]

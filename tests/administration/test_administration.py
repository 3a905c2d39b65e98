"""Administrative acts in a program that runs the engine itself: what is done is what was decided and recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine.administration.act import Administered
from engine.engine import Engine
from engine.errors import Exit
from engine.flow import Context
from engine.model import Caller, Decision, Via
from engine.settings import Settings
from tests.command import lines
from tests.expect import there

ANA = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))


def issue(id_: str = "0a1b2c3d", **scope: Any) -> dict[str, Any]:
    wanted = {"principal": "bot", "points": ["license"], "approves": [], "seconds": 600, **scope}
    return {"act": "issue_token", "id": id_, "scope": wanted}


def test_an_act_is_carried_out_as_recorded_even_if_the_request_changes(settings: Settings) -> None:
    asked = issue()

    def change(_decision: Decision, _durations: Mapping[str, int]) -> None:
        asked["scope"] |= {"principal": "root", "approves": ["source"]}

    with Engine(settings, observe=change) as engine:
        done = engine.administer(asked, ANA).done
        (row,) = engine.store().tokens()
    assert done is not None
    assert asked["scope"]["principal"] == "root"  # the control: it was changed before the act was done
    recorded = lines(settings.state)[0]["input"]["scope"]
    assert (recorded["principal"], recorded["approves"]) == (row.principal, list(row.approves)) == ("bot", [])


def prefix(id_: str) -> dict[str, Any]:
    wanted = {"principal": "bot", "cwd": "/work", "tool": "shell", "words": ["git"], "seconds": 600}
    return {"act": "approve_prefix", "id": id_, "prefix": wanted}


def codes(administered: Administered) -> list[str]:
    return [finding.code for finding in administered.answer.decision.findings]


def test_every_token_that_is_issued_works(settings: Settings) -> None:
    with Engine(settings) as engine:
        done = there(engine.administer(issue(), ANA).done)
        assert engine.store().token(done["text"], engine.now()) is not None
        longer = engine.administer(issue("a" * 32), ANA)
        assert (codes(longer), longer.done) == (["token_id_invalid"], None)
        unknown = engine.administer(issue("0a1b2c3e", points=["no_such"], approves=["nope"]), ANA)
        assert (codes(unknown), unknown.done) == (["token_point_unknown", "token_point_unknown"], None)


@pytest.mark.parametrize("act", [issue(), prefix("b" * 32)], ids=["token", "prefix"])
def test_an_id_in_use_is_refused_and_its_owner_kept(act: dict[str, Any], settings: Settings) -> None:
    with Engine(settings) as engine:
        assert engine.administer(act, ANA).done is not None
        kept = engine.store().tokens(), engine.store().prefixes(None, None, 9)
        again = engine.administer(act, ANA)
        fault = there(again.answer.fault)
        assert (fault.code, fault.exit, again.done) == ("engine.id_taken", Exit.UNREADABLE, None)
        assert (engine.store().tokens(), engine.store().prefixes(None, None, 9)) == kept
    assert lines(settings.state)[-1]["status"] == "engine.id_taken"


@pytest.mark.parametrize("act", ["grant_approval", "refuse_approval"])
def test_an_unknown_approval_is_named_as_such(act: str, settings: Settings) -> None:
    with Engine(settings) as engine:
        fault = there(engine.administer({"act": act, "id": "c" * 32}, ANA).answer.fault)
    assert (fault.code, fault.exit, "approvals list" in fault.remedy) == (
        "engine.approval_unknown",
        Exit.UNREADABLE,
        True,
    )
    assert [one["code"] for one in lines(settings.state)[-1]["findings"]] == ["engine.approval_unknown"]


@pytest.mark.parametrize(("act", "command"), [("revoke_token", "tokens"), ("revoke_prefix", "tools prefixes")])
def test_an_unknown_id_names_the_command_that_lists_the_ids(act: str, command: str, settings: Settings) -> None:
    with Engine(settings) as engine:
        fault = engine.administer({"act": act, "id": "c" * 32}, ANA).answer.fault
    assert fault is not None
    assert (fault.exit, fault.remedy) == (Exit.UNREADABLE, f"list the ids with `engine {command} list`")


def test_an_act_is_only_decided_in_a_dry_run(settings: Settings) -> None:
    """Otherwise the record would list acts that were never done."""
    with Engine(settings) as engine:
        enforced = engine.decide("administration", issue(), context=ANA)
        (of_many,) = engine.decide_many("administration", [issue()], ANA)
        for got in (enforced, of_many):
            assert (got.decision.outcome, got.exit) == ("deny", Exit.UNREADABLE)
            assert all(name in there(got.fault).remedy for name in ("`administer`", "/v1/administration"))
        assert engine.check("administration", issue(), ANA).decision.outcome == "allow"
        assert engine.store().tokens() == ()
    assert [line["outcome"] for line in lines(settings.state) if line["mode"] == "enforce"] == ["deny", "deny"]

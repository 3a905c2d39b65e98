"""Administrative acts by a program with the engine inside: what is done is what was decided and recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Decision, Via
from engine.settings import Settings
from tests.command import lines

ANA = Context(caller=Caller(via=Via.CONTROL, principal="user:ana"))


def issue(id_: str = "0a1b2c3d", **scope: Any) -> dict[str, Any]:
    wanted = {"principal": "bot", "points": ["license"], "approves": [], "seconds": 600, **scope}
    return {"act": "issue_token", "id": id_, "scope": wanted}


def test_what_is_done_is_what_was_recorded_whatever_becomes_of_the_request(settings: Settings) -> None:
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

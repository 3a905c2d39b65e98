"""The decisions that a replay lists as changed."""

from __future__ import annotations

from engine.model import Outcome
from engine.replay.comparing import Change
from engine.replay.run import Replay, count
from tests.record.samples import decision


def test_a_listed_decision_says_what_its_request_is_about() -> None:
    found = Replay()
    body = decision(1, {"bundle": {"id": "contacts-2026"}}, outcome=Outcome.ALLOW)
    count(found, None, body, Outcome.DENY, (Change.DENIED, ()))
    assert [(one.decision_id, one.about) for one in found.flips] == [(body.decision_id, "contacts-2026")]

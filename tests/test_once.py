"""Idempotency keys: a repeated request gets the first decision and has no second effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from engine.canonical import RawJson
from engine.engine import Engine
from engine.flow import Answer, Context
from engine.model import Caller, Permit, Result, Via
from engine.record.verify import verify
from engine.settings import Settings
from engine.work import Job
from tests.conftest import CASES

ACCEPTED: Any = next(file.case.request for file in CASES if file.path.stem == "accepted")
KEY = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"), idempotency_key="run-1/license-7")


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings) as running:
        yield running


def codes(answer: Answer) -> list[str]:
    return [finding.code for finding in answer.decision.findings]


# covers: C69
def test_a_repeated_request_gets_the_first_decision_and_no_second_effect(engine: Engine) -> None:
    ran: list[str] = []

    def hand(permit: Permit, _: Job) -> Result:
        ran.append(permit.decision_id)
        return Result("done", {})

    first = engine.decide("license", ACCEPTED, hand, KEY)
    again = engine.decide("license", ACCEPTED, hand, KEY)
    text = engine.decide("license", RawJson(json.dumps(ACCEPTED, indent=2).encode()), hand, KEY)
    assert first.decision.outcome == "allow"
    assert first.decision == again.decision == text.decision
    assert ran == [first.decision.decision_id]
    assert engine.decide("license", ACCEPTED, hand).decision != first.decision  # the control: no key, a new decision
    assert len(ran) == 2
    assert verify(engine.settings.state).ok


# covers: C69
def test_the_same_key_with_another_body_is_an_error(engine: Engine) -> None:
    engine.decide("license", ACCEPTED, context=KEY)
    got = engine.decide("license", {**ACCEPTED, "purpose": "eval"}, context=KEY)
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.idempotency_conflict"])


# covers: C69
def test_of_many_at_once_one_has_the_effect(engine: Engine) -> None:
    ran: list[str] = []

    def hand(permit: Permit, _: Job) -> Result:
        ran.append(permit.decision_id)
        return Result("done", {})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: engine.decide("license", ACCEPTED, hand, KEY), range(8)))
    assert len(ran) == 1
    for answer in answers:
        assert answer.decision.decision_id in ran or codes(answer) == ["engine.idempotency_pending"]


def test_keys_of_others_are_others(engine: Engine) -> None:
    first = engine.decide("license", ACCEPTED, context=KEY)
    other = Context(caller=Caller(via=Via.PROCESS, principal="somebody"), idempotency_key=KEY.idempotency_key)
    assert engine.decide("license", ACCEPTED, context=other).decision.decision_id != first.decision.decision_id


# covers: H13
def test_no_earlier_allow_is_given_again_when_the_policy_changed_or_is_down(engine: Engine, settings: Settings) -> None:
    assert engine.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"
    engine.__exit__()
    with Engine(settings, values=("approvals.valid_seconds=60",)) as other:
        assert codes(other.decide("license", ACCEPTED, context=KEY)) == ["engine.idempotency_stale"]
    with Engine(settings, values=("approvals.valid_seconds=nonsense",)) as broken:
        got = broken.decide("license", ACCEPTED, context=KEY)
        assert (got.decision.outcome, codes(got)) == ("deny", ["engine.policy_invalid"])
    engine.__enter__()


def test_a_fault_takes_no_key(engine: Engine, settings: Settings) -> None:
    engine.__exit__()
    with Engine(settings, values=("approvals.valid_seconds=nonsense",)) as broken:
        assert broken.decide("license", ACCEPTED, context=KEY).decision.outcome == "deny"
    with Engine(settings) as mended:
        assert mended.decide("license", ACCEPTED, context=KEY).decision.outcome == "allow"
    engine.__enter__()

"""An approval is valid for one request, under one policy, once, until it expires, and never from the requester."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine.engine import Engine
from engine.errors import RecordError
from engine.flow import Answer, Context
from engine.model import Caller, Permit, Result, Via
from engine.record.standing import StandingLog
from engine.record.verify import verify
from engine.settings import Settings
from engine.state import open_store
from engine.state.rows import ApprovalRow, StopRow
from engine.state.store import Store
from engine.work import Job
from tests.command import decisions
from tests.conftest import case
from tests.expect import codes, there

LOADED = frozenset({"license"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

PIPELINE = Caller(via=Via.PROCESS, principal="pipeline")
REVIEWED = case("license", "review_required").case.request


class Clock:
    """The engine's clock, moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    @property
    def seconds(self) -> int:
        return int(self.now.timestamp())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(settings: Settings, clock: Clock) -> Iterator[Engine]:
    with Engine(settings, now=clock, points=LOADED) as running:
        yield running


@pytest.fixture
def store(settings: Settings, engine: Engine) -> Iterator[Store]:
    """The state as the command `engine approvals` opens it beside a running engine."""
    assert engine.services is not None
    opened = open_store(settings.state)
    yield opened
    opened.close()


def ask(engine: Engine, approval: str | None = None, request: Any = REVIEWED, caller: Caller = PIPELINE) -> Answer:
    return engine.decide("license", request, context=Context(caller=caller, approval=approval))


def approved(engine: Engine, store: Store, clock: Clock, approver: str = "user:ana") -> ApprovalRow:
    """An approval that was asked for and granted."""
    first = ask(engine)
    assert (first.decision.outcome, codes(first)) == ("confirm", ["license_review_required"])
    assert first.decision.approval is not None
    assert (first.decision.approval.state, first.decision.limits) == ("requested", None)
    return store.resolve(first.decision.approval.id, "granted", approver, "seen the contract", clock.seconds)


# covers: H09.3
def test_a_granted_approval_turns_the_confirm_into_an_allow_once(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    ran: list[str] = []

    def executor(permit: Permit, _: Job) -> Result:
        ran.append(permit.decision_id)
        return Result("done", {})

    got = engine.decide("license", REVIEWED, executor, Context(caller=PIPELINE, approval=row.id))
    assert (got.decision.outcome, codes(got)) == ("allow", ["license_review_required"])
    assert got.decision.approval is not None
    assert (got.decision.approval.id, got.decision.approval.state) == (row.id, "used")
    assert ran == [got.decision.decision_id]
    again = engine.decide("license", REVIEWED, executor, Context(caller=PIPELINE, approval=row.id))
    assert (again.decision.outcome, codes(again)) == ("deny", ["approval_used", "license_review_required"])
    assert len(ran) == 1
    recorded = [one for one in decisions(engine.settings.state) if one["approval"] == row.id]
    assert [one["outcome"] for one in recorded] == ["confirm", "allow", "deny"]
    assert recorded[1]["input"]["approvals"][0]["approver"] == "user:ana"
    assert {one["subject"] for one in recorded[2]["findings"] if one["code"] == "approval_used"} == {
        f"approvals/{row.id}"
    }
    assert recorded[2]["redactions"] == []


def test_an_undecided_approval_is_pending(engine: Engine) -> None:
    first = ask(engine)
    got = ask(engine, there(first.decision.approval).id)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_pending", "license_review_required"])


def test_a_refused_approval_denies(engine: Engine, store: Store, clock: Clock) -> None:
    first = ask(engine)
    assert first.decision.approval is not None
    store.resolve(first.decision.approval.id, "refused", "user:ana", "no contract", clock.seconds)
    got = ask(engine, first.decision.approval.id)
    assert got.decision.outcome == "deny"
    assert "approval_refused" in codes(got)


def test_an_unknown_approval_denies(engine: Engine) -> None:
    got = ask(engine, "0" * 32)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_unknown", "license_review_required"])


# covers: H09.1
def test_an_approval_does_not_cover_a_changed_input(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    got = ask(engine, row.id, {**REVIEWED, "purpose": "eval"})
    assert got.decision.outcome == "deny"
    assert "approval_input_changed" in codes(got)
    assert ask(engine, row.id).decision.outcome == "allow"  # the control: it was not used up by that


# covers: H09.1
def test_an_approval_does_not_cover_another_caller(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    got = ask(engine, row.id, caller=Caller(via=Via.PROCESS, principal="another"))
    assert "approval_input_changed" in codes(got)


# covers: H09.4
def test_an_expired_approval_denies(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    clock.now += timedelta(days=1)
    got = ask(engine, row.id)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_expired", "license_review_required"])


def test_an_approval_counts_until_its_expiry(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    clock.now += timedelta(days=1, seconds=-1)
    assert ask(engine, row.id).decision.outcome == "allow"


# covers: H09.2
def test_an_approval_does_not_count_under_another_policy(
    engine: Engine, store: Store, clock: Clock, settings: Settings
) -> None:
    row = approved(engine, store, clock)
    engine.__exit__()
    with Engine(settings, values=("approvals.valid_seconds=3600",), now=clock, points=LOADED) as other:
        got = ask(other, row.id)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_policy_changed", "license_review_required"])


# covers: H09.5
def test_a_rule_that_denies_after_the_approval_still_denies(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    stop = store.add_stop(StopRow("principal", "pipeline", "user:ana", clock.seconds))
    got = ask(engine, row.id)
    assert (got.decision.outcome, codes(got)) == ("deny", ["license_review_required", "stopped"])
    store.lift_stop(stop.id, clock.seconds)
    assert ask(engine, row.id).decision.outcome == "allow"  # the control: the approval was not used up


def test_the_requester_is_not_the_approver(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock, approver="pipeline")
    got = ask(engine, row.id)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_by_requester", "license_review_required"])


def test_a_caller_without_a_name_gets_no_approval(engine: Engine, store: Store, clock: Clock) -> None:
    nobody = Caller(via=Via.PROCESS)
    first = ask(engine, caller=nobody)
    assert first.decision.approval is not None
    store.resolve(first.decision.approval.id, "granted", "user:ana", None, clock.seconds)
    got = ask(engine, first.decision.approval.id, caller=nobody)
    assert (got.decision.outcome, codes(got)) == ("deny", ["approval_by_requester", "license_review_required"])


@pytest.mark.parametrize("ways", ['["loopback"]', "[]"])
def test_four_eyes_for_a_caller_without_a_name_are_a_value(settings: Settings, clock: Clock, ways: str) -> None:
    """A listener without a token knows no name; whether a named user of this machine may then approve is policy."""
    nobody = Caller(via=Via.LOOPBACK)
    with Engine(settings, values=(f"approvals.unnamed_requesters={ways}",), now=clock, points=LOADED) as engine:
        first = ask(engine, caller=nobody)
        assert first.decision.approval is not None
        engine.store().resolve(first.decision.approval.id, "granted", "user:ana", None, clock.seconds)
        got = ask(engine, first.decision.approval.id, caller=nobody)
    refusal = ("deny", ["approval_by_requester", "license_review_required"])
    assert (got.decision.outcome, codes(got)) == (refusal if ways == "[]" else ("allow", ["license_review_required"]))


def test_the_same_request_asks_for_the_same_approval(engine: Engine) -> None:
    ids = {answer.decision.approval and answer.decision.approval.id for answer in (ask(engine), ask(engine))}
    assert len(ids) == 1
    assert None not in ids


# covers: H09.3
def test_of_concurrent_uses_of_an_approval_one_is_allowed(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    together = threading.Barrier(8)

    def race(_: int) -> str:
        together.wait()
        return ask(engine, row.id).decision.outcome

    with ThreadPoolExecutor(8) as pool:
        outcomes = sorted(pool.map(race, range(8)))
    assert outcomes == ["allow", *["deny"] * 7]
    assert verify(engine.settings.state).ok


def test_concurrent_requests_with_other_input_do_not_consume_an_approval(
    engine: Engine, store: Store, clock: Clock
) -> None:
    others = {**REVIEWED, "purpose": "eval"}
    over = threading.Event()
    for _ in range(5):
        row = approved(engine, store, clock)
        over.clear()
        begun = threading.Barrier(7)

        def attack(id_: str = row.id, begun: threading.Barrier = begun) -> set[str]:
            ask(engine, id_, others)
            begun.wait()
            seen: set[str] = set()
            while not over.is_set():
                seen |= set(codes(ask(engine, id_, others)))
            return seen

        with ThreadPoolExecutor(6) as pool:
            attackers = [pool.submit(attack) for _ in range(6)]
            begun.wait()
            try:
                rightful = ask(engine, row.id)
            finally:
                over.set()
            seen: set[str] = set().union(*(one.result() for one in attackers))
        assert (rightful.decision.outcome, codes(rightful)) == ("allow", ["license_review_required"])
        assert seen <= {"approval_input_changed", "approval_used", "license_review_required"}
    assert verify(engine.settings.state).ok


def test_without_the_state_a_confirm_is_a_deny(settings: Settings, clock: Clock) -> None:
    settings.state.mkdir()
    (settings.state / "state.sqlite3").write_text("no database", encoding="utf-8")
    with Engine(settings, now=clock, points=LOADED) as engine:
        got = ask(engine)
        assert (got.decision.outcome, codes(got), got.exit) == ("deny", ["engine.state_unavailable"], 4)
        assert got.decision.approval is None


def test_without_the_values_nothing_can_be_approved(settings: Settings, clock: Clock, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(settings.policy, policy)
    (policy / "approvals.yaml").unlink()
    with Engine(replace(settings, policy=policy), now=clock, points=LOADED) as engine:
        got = ask(engine)
    assert (got.decision.outcome, codes(got)) == ("deny", ["engine.policy_invalid"])


def test_the_policy_accepts_exactly_one_approval(engine: Engine, store: Store, clock: Clock) -> None:
    row = approved(engine, store, clock)
    document = there(ask(engine, row.id).document)
    one = engine.opa.ask("decision", document).result
    two = engine.opa.ask("decision", {**document, "approvals": document["approvals"] * 2}).result
    none = engine.opa.ask("decision", {**document, "approvals": []}).result
    assert [answer["outcome"] for answer in (one, two, none)] == ["allow", "confirm", "confirm"]


LOWERED = (
    'levels.levels.license.budget_exhausted={level: confirm, owner: o@example.org, reason: r, until: "2100-01-01"}',
    "budgets.budgets.license={principal: {limit: 1, window_seconds: 3600}, run: unlimited, all: unlimited}",
)


def test_an_approval_does_not_cover_findings_added_later(settings: Settings, clock: Clock) -> None:
    with Engine(settings, values=LOWERED, now=clock, points=LOADED) as engine:
        store = engine.store()
        row = approved(engine, store, clock)
        assert row.codes == ("license_review_required",)
        accepted = case("license", "accepted").case.request
        assert ask(engine, request=accepted).decision.outcome == "allow"  # which takes the whole budget
        wider = ask(engine, row.id).decision
        assert (wider.outcome, sorted(one.code for one in wider.findings)) == (
            "confirm",
            ["budget_exhausted", "license_review_required"],
        )
        assert wider.approval is not None
        assert (wider.approval.id == row.id, wider.approval.state) == (False, "requested")
        asked = there(store.approval(wider.approval.id))
        assert asked.codes == ("budget_exhausted", "license_review_required")
        store.resolve(asked.id, "granted", "user:ana", None, clock.seconds)
        assert ask(engine, asked.id).decision.outcome == "allow"


def test_a_request_that_cannot_be_recorded_leaves_the_earlier_one_for_the_same(
    settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise RecordError("the disk is full", remedy="")

    with Engine(settings, now=clock, points=LOADED) as engine:
        first = ask(engine).decision.approval
        with monkeypatch.context() as patched:
            patched.setattr(StandingLog, "append", full)
            assert codes(ask(engine)) == ["engine.record_unavailable"]
        assert engine.store().approval(there(first).id) is not None

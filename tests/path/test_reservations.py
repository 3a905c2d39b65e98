"""What a request takes from the state on its path, and gives back: budgets, quotas, facts and approvals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import DecideError, RecordError
from engine.flow import Context
from engine.model import Caller, Mode, Via
from engine.state.rows import ApprovalRow, Counter
from engine.state.store import Store
from engine.times import time_text
from tests.expect import codes, there
from tests.path.bench import ALLOW, APPROVED, CONFIRM, DENY, NOW, REVISIONS, WHO, Bench, Bound, decided

# Budgets, quotas, facts of the state


def used(bench: Bench, name: str = "license.all", key: str = "") -> int:
    return bench.store.used(Counter(name, key, 0), bench.now)


@pytest.mark.parametrize(
    ("said", "mode", "taken"),
    [(ALLOW, Mode.ENFORCE, 1), (DENY, Mode.ENFORCE, 0), (CONFIRM, Mode.ENFORCE, 0), (ALLOW, Mode.CHECK, 0)],
)
def test_only_an_enforced_allow_consumes_a_budget(said: Any, mode: Mode, taken: int, bench: Bench) -> None:
    bench.policy.answer, bench.policy.counted = said, {"all": 0}
    bench.ask(mode=mode)
    assert used(bench) == taken
    assert bench.policy.asked[0]["budgets"] == [{"id": "all", "used": 0, "amount": 1}]
    assert bench.policy.asked[0]["quotas"] == []
    bench.ask(mode=mode)
    assert bench.policy.asked[1]["budgets"] == [{"id": "all", "used": taken, "amount": 1}]


@pytest.mark.parametrize("raised", [DecideError("down", remedy="none"), ZeroDivisionError()])
def test_a_fault_releases_its_reservation(raised: Exception, bench: Bench) -> None:
    bench.policy.counted, bench.policy.answer = {"all": 0}, raised
    bench.ask()
    assert used(bench) == 0


def test_an_unenforceable_allow_releases_its_reservation(bench: Bench) -> None:
    bench.point = replace(bench.point, limits=Bound)
    bench.policy.counted, bench.policy.answer = {"all": 0}, {**ALLOW, "limits": {"backend": None}}
    assert (codes(bench.ask()), used(bench)) == (["engine.limit_unenforceable"], 0)


def test_a_fault_at_the_end_of_judging_releases_its_reservation(bench: Bench) -> None:
    bench.policy.counted, bench.policy.ends_badly = {"all": 0}, True
    got = bench.ask()
    assert (got.decision.outcome, codes(got), used(bench)) == ("deny", ["engine.internal"], 0)


def test_an_unrecordable_allow_releases_its_reservation(bench: Bench) -> None:
    row = granted(bench)
    bench.policy.counted, bench.policy.answer = {"all": 0}, APPROVED
    bench.record.fails = RecordError("full", remedy="none")
    assert codes(bench.ask(context=replace(WHO, approval=row.id))) == ["engine.record_unavailable"]
    assert (used(bench), state(bench, row)) == (0, "granted")


def test_a_confirm_that_cannot_be_recorded_leaves_its_request_to_others(bench: Bench) -> None:
    bench.policy.answer, bench.record.fails = CONFIRM, RecordError("full", remedy="none")
    got = bench.ask()
    assert (codes(got), got.decision.approval) == (["engine.record_unavailable"], None)
    bench.record.fails = None
    row = requested(bench)  # what another request with the same binding is given, before or after
    assert bench.store.approvals(None, 9) == (row,)
    bench.now += 1
    bench.record.fails = RecordError("full", remedy="none")
    assert codes(bench.ask()) == ["engine.record_unavailable"]
    assert state(bench, row) == "requested"


def test_principals_and_runs_count_alone(bench: Bench) -> None:
    bench.policy.counted = {"principal": 0, "run": 0, "all": 0}
    contexts = (WHO, replace(WHO, run="run-2"), replace(WHO, caller=Caller(via=Via.PROCESS, principal="b")), Context())
    for context in contexts:
        bench.ask(context=context)
    counts = [[one["used"] for one in asked["budgets"]] for asked in bench.policy.asked]
    assert counts == [[0, 0, 0], [1, 0, 1], [0, 1, 2], [0, 0, 3]]
    assert (used(bench, "license.principal"), used(bench, "license.run")) == (1, 1)


def test_only_quotas_stated_in_the_policy_are_counted(bench: Bench) -> None:
    bench.policy.windows = {"children": 0}
    bench.gathering(lambda found, _: replace(found, quotas={"children": "parent", "others": "parent"}))
    bench.ask()
    assert bench.policy.asked[0]["quotas"] == [{"id": "children", "used": 0, "amount": 1}]
    assert bench.policy.asked[0]["budgets"] == []
    assert (used(bench, "license/children", "parent"), used(bench, "license/others", "parent")) == (1, 0)


def test_budgets_and_quotas_are_separate_lists(bench: Bench) -> None:
    bench.policy.counted, bench.policy.windows = {"all": 0}, {"children": 0}
    bench.gathering(lambda found, _: replace(found, quotas={"children": "parent"}))
    bench.ask()
    (asked,) = bench.policy.asked
    assert [one["id"] for one in asked["budgets"]] == ["all"]
    assert [one["id"] for one in asked["quotas"]] == ["children"]


def test_only_declared_facts_of_the_state_reach_the_policy(bench: Bench) -> None:
    seen: list[Any] = []

    def ask(store: Store, caller: Caller) -> dict[str, list[dict[str, Any]]]:
        seen.append((store is bench.store, caller.principal))
        return {"children": [{"id": "a"}], "surprise": [{"id": "b"}]}

    bench.gathering(lambda found, _: replace(found, state=ask))
    bench.ask()
    (asked,) = bench.policy.asked
    assert (asked["children"], asked["attempts"], "surprise" in asked) == ([{"id": "a"}], [], False)
    assert seen == [(True, "pipeline")]


def counted(bench: Bench) -> Context:
    bench.policy.counted = {"all": 0}
    return WHO


def with_quotas(bench: Bench) -> Context:
    bench.policy.windows = {"children": 0}
    bench.gathering(lambda found, _: replace(found, quotas={"children": "parent"}))
    return WHO


def with_state(bench: Bench) -> Context:
    bench.gathering(lambda found, _: replace(found, state=lambda *_: {}))
    return WHO


@pytest.mark.parametrize("what", [counted, with_quotas, with_state, lambda _: replace(WHO, approval="a" * 32)])
@pytest.mark.parametrize("mode", list(Mode))
def test_a_request_that_needs_the_state_is_denied_without_it(
    what: Callable[[Bench], Context], mode: Mode, bench: Bench
) -> None:
    context, bench.stateless = what(bench), True
    assert codes(bench.ask(context=context, mode=mode)) == ["engine.state_unavailable"]
    assert bench.policy.asked == []


def test_without_the_state_nothing_is_allowed_because_a_stop_may_be_in_force(bench: Bench) -> None:
    assert bench.ask().decision.outcome == "allow"
    bench.stateless = True
    for mode in Mode:
        got = bench.ask(mode=mode)
        assert (got.decision.outcome, there(got.fault).code) == ("deny", "engine.state_unavailable")


# Approvals


def requested(bench: Bench, context: Context = WHO) -> ApprovalRow:
    bench.policy.answer = CONFIRM
    got = bench.ask(context=context)
    return there(bench.store.approval(there(got.decision.approval).id))


def granted(bench: Bench) -> ApprovalRow:
    return bench.store.resolve(requested(bench).id, "granted", "user:ana", None, bench.now)


def state(bench: Bench, row: ApprovalRow) -> str:
    found = there(bench.store.approval(row.id))
    return found.state


def test_a_confirm_asks_for_an_approval_and_the_record_names_it(bench: Bench) -> None:
    row = requested(bench)
    assert (row.state, row.requester, row.codes, row.expires_at) == ("requested", "pipeline", ("one",), NOW + 60)
    assert (row.rules, row.values, row.input_digest) == (
        REVISIONS.rules,
        REVISIONS.values,
        decided(bench).input_digest,
    )
    assert decided(bench).approval == row.id


@pytest.mark.parametrize("said", [CONFIRM, ALLOW, APPROVED, DENY])
def test_a_dry_run_asks_for_no_approval_and_uses_none(said: Any, bench: Bench) -> None:
    row = granted(bench)
    bench.policy.answer = said
    got = bench.ask(context=replace(WHO, approval=row.id), mode=Mode.CHECK)
    assert (got.decision.outcome, got.decision.approval) == (said["outcome"], None)
    assert state(bench, row) == "granted"
    assert [one.id for one in bench.store.approvals(None, 9)] == [row.id]


def test_a_granted_approval_is_used_by_the_allow_that_needed_it(bench: Bench) -> None:
    row = granted(bench)
    bench.policy.answer = APPROVED
    got = bench.ask(context=replace(WHO, approval=row.id))
    assert got.decision.approval is not None
    assert (got.decision.outcome, got.decision.approval.state, state(bench, row)) == ("allow", "used", "used")
    assert got.decision.approval.expires_at == time_text(row.expires_at)
    (given,) = bench.policy.asked[-1]["approvals"]
    asked = {"input_digest": got.decision.input_digest, **REVISIONS.model_dump()}
    assert (given["state"], given["approver"], given["expected"]) == ("granted", "user:ana", asked)


@pytest.mark.parametrize("said", [ALLOW, DENY, CONFIRM, DecideError("down", remedy="none")])
def test_an_unused_approval_stays_granted(said: Any, bench: Bench) -> None:
    row = granted(bench)
    bench.policy.answer = said
    bench.ask(context=replace(WHO, approval=row.id))
    assert state(bench, row) == "granted"


def test_an_approval_with_unenforceable_limits_stays_granted(bench: Bench) -> None:
    row = granted(bench)
    bench.point = replace(bench.point, limits=Bound)
    bench.policy.answer = {**APPROVED, "limits": {"backend": None}}
    assert codes(bench.ask(context=replace(WHO, approval=row.id))) == ["engine.limit_unenforceable"]
    assert state(bench, row) == "granted"


def test_the_policy_gets_only_the_known_facts_of_an_approval(bench: Bench) -> None:
    row = requested(bench)
    bench.ask(context=replace(WHO, approval=row.id))
    (given,) = bench.policy.asked[-1]["approvals"]
    of_the_requester = {"codes", "requester", "requester_named", "requester_via"}
    assert given.keys() == {
        "id",
        "expected",
        "state",
        "input_digest",
        "rules",
        "values",
        "expires_at",
        *of_the_requester,
    }
    assert (given["requester"], given["requester_named"]) == ("pipeline", True)
    nameless = requested(bench, Context())
    bench.ask(context=Context(approval=nameless.id))
    (given,) = bench.policy.asked[-1]["approvals"]
    assert ("requester" in given, given["requester_named"]) == (False, False)
    bench.ask(context=replace(WHO, approval="f" * 32))
    (unknown,) = bench.policy.asked[-1]["approvals"]
    assert unknown.keys() == {"id", "expected"}


def test_an_ungranted_approval_is_refused_even_if_the_policy_accepts_it(bench: Bench) -> None:
    row = requested(bench)
    bench.policy.answer = APPROVED
    for context in (WHO, replace(WHO, approval=row.id), replace(WHO, approval="f" * 32)):
        got = bench.ask(context=context)
        assert (got.decision.outcome, codes(got), got.decision.approval) == ("deny", ["engine.internal"], None)
        assert "no verdict was reached" in got.decision.findings[0].requirement
    assert state(bench, row) == "requested"


def test_a_confirm_without_an_expiry_is_a_deny(bench: Bench) -> None:
    bench.policy.answer = {**CONFIRM, "approval_seconds": None}
    assert codes(bench.ask()) == ["engine.limit_unenforceable"]
    assert bench.store.approvals(None, 9) == ()


def test_without_revisions_nothing_can_be_approved(bench: Bench) -> None:
    row = granted(bench)
    bench.policy.revisions, bench.policy.answer = None, CONFIRM
    got = bench.ask(context=replace(WHO, approval=row.id))
    assert (got.decision.outcome, codes(got), got.decision.approval) == ("deny", ["engine.internal"], None)
    assert (state(bench, row), [one.id for one in bench.store.approvals(None, 9)]) == ("granted", [row.id])
    assert bench.policy.asked[-1]["approvals"][0]["expected"] == {"input_digest": got.decision.input_digest}

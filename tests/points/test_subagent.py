"""Subagents: whose child it is comes from the state, ids are looked at before anything is read, starts are counted."""

from __future__ import annotations

import json
import uuid
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.engine import Engine
from engine.flow import Answer, Context
from engine.model import Caller, Outcome, Via
from engine.points import GatherContext
from engine.points.subagent import SubagentInput, SubagentRequest, gather
from engine.settings import Settings
from engine.state.rows import ChildRow
from engine.state.store import Store
from tests.command import decisions
from tests.expect import of, there

LOADED = frozenset({"subagent"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CHILD = "0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80"
SPAWN = {
    "operation": "spawn",
    "conversation": "chat-7",
    "user": "lee",
    "account": "acme",
    "policy": "orchestrator",
    "profile": "coding",
}
POLL = {**SPAWN, "operation": "poll", "child_conversation_id": CHILD}


def codes(answer: Answer) -> list[str]:
    return sorted({finding.code for finding in answer.decision.findings})


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, now=lambda: NOW, points=LOADED) as engine:
        yield engine


class Counting:
    """A real store, and how often it was asked for anything."""

    def __init__(self, engine: Engine) -> None:
        assert engine.services is not None
        self._real, self.asked = engine.services.store, Tally[str]()
        engine.services = replace(engine.services, store=lambda: self)  # type: ignore[arg-type, return-value]

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._real(), name)


# covers: B23.2
@pytest.mark.full(after=1)
@pytest.mark.parametrize("operation", ["poll", "cancel", "kill", "spawn", "run"])
def test_an_invalid_child_id_is_refused_before_any_state_is_read(engine: Engine, operation: str) -> None:
    store = Counting(engine)
    conversation = str(uuid.UUID(int=7))
    for text in ("", "child", CHILD[:-1], f"{{{CHILD}}}", f"{CHILD}\n", "%", CHILD.replace("0", "\u0660")):
        got = engine.decide(
            "subagent", {**POLL, "conversation": conversation, "operation": operation, "child_conversation_id": text}
        )
        assert codes(got) == ["invalid_child_id"], text
    assert store.asked == {}


# covers: B22 B23.3
def test_a_valid_uuid_reaches_the_ownership_check(engine: Engine) -> None:
    store = Counting(engine)
    assert codes(engine.decide("subagent", POLL)) == ["not_parent"]
    assert store.asked["child"] == 1
    store.add_child(ChildRow(CHILD, "chat-7", 0))
    assert codes(engine.decide("subagent", POLL)) == []
    assert codes(engine.decide("subagent", {**POLL, "child_conversation_id": CHILD.upper()})) == []


# covers: B21.1 B22
@pytest.mark.parametrize("operation", ["poll", "cancel", "kill"])
def test_only_the_conversation_that_started_it_reaches_a_subagent(engine: Engine, operation: str) -> None:
    engine.store().add_child(ChildRow(CHILD, "chat-7", 0))
    for conversation in ("chat-8", "Chat-7", "chat-7 ".strip() + ".", CHILD):
        request = {**POLL, "operation": operation, "conversation": conversation}
        assert codes(engine.decide("subagent", request)) == ["not_parent"]
    assert codes(engine.decide("subagent", {**POLL, "operation": operation})) == []  # the control


# covers: B18.1
@pytest.mark.parametrize("operation", ["spawn", "run"])
def test_no_spelling_of_its_id_lets_a_subagent_start_another_one(engine: Engine, operation: str) -> None:
    spellings: tuple[Callable[[str], str], ...] = (
        lambda id_: id_,
        str.upper,
        lambda id_: f"{{{id_}}}",
        lambda id_: id_.replace("-", ""),
        lambda id_: f"urn:uuid:{id_}",
    )
    for number, spelling in enumerate(spellings):
        child = f"{CHILD[:-1]}{number}"
        request = {**SPAWN, "operation": operation, "conversation": spelling(child)}
        assert codes(engine.decide("subagent", request)) == [], number  # the control: nobody's child yet
        engine.store().add_child(ChildRow(child, "chat-7", 0))
        assert codes(engine.decide("subagent", request)) == ["nested_spawn"], number


# covers: B19.1 B20
def test_a_requested_turn_limit_only_lowers_the_policy_limit(engine: Engine) -> None:
    engine.store().add_child(ChildRow(CHILD, "chat-7", 0))
    found = {}
    for turns in (None, 1, 49, 50, 51, 2**53 - 1):
        limits = there(engine.decide("subagent", {**POLL, "limit_turns": turns}).decision.limits)
        found[turns] = (limits.turns, limits.line_bytes, limits.timeout_seconds)  # type: ignore[attr-defined]
    assert found == {
        None: (50, 2000, 5),
        1: (1, 2000, 5),
        49: (49, 2000, 5),
        50: (50, 2000, 5),
        51: (50, 2000, 5),
        2**53 - 1: (50, 2000, 5),
    }
    for turns in (0, -1, -(2**53) + 1):
        assert codes(engine.decide("subagent", {**POLL, "limit_turns": turns})) == ["limit_turns_invalid"]
    for odd in ("5", 1.5, True, 2**60, [5]):
        assert codes(engine.decide("subagent", {**POLL, "limit_turns": odd})) == ["engine.request_invalid"]


# covers: B25.5
@pytest.mark.full(after=1)
@pytest.mark.parametrize("operation", ["spawn", "run", "poll", "cancel", "kill"])
def test_every_operation_has_a_timeout_that_a_request_only_makes_shorter(engine: Engine, operation: str) -> None:
    engine.store().add_child(ChildRow(CHILD, "chat-7", 0))
    request = {**(SPAWN if operation in {"spawn", "run"} else POLL), "operation": operation}
    limits = there(engine.decide("subagent", request).decision.limits)
    most = limits.timeout_seconds  # type: ignore[attr-defined]
    assert 0 < most < limits.lifetime_seconds  # type: ignore[attr-defined]
    for asked, wanted in ((1, 1), (most, most)):
        got = there(engine.decide("subagent", {**request, "timeout_seconds": asked}).decision.limits)
        assert got.timeout_seconds == wanted  # type: ignore[attr-defined]
    for asked in (0, -1, most + 1):
        assert codes(engine.decide("subagent", {**request, "timeout_seconds": asked})) == ["timeout_invalid"]


# covers: B24
@pytest.mark.full(after=1)
@pytest.mark.parametrize("scope", ["conversation", "user", "account"])
@pytest.mark.parametrize("operation", ["spawn", "run"])
def test_each_quota_counts_separately_and_only_admitted_spawns(settings: Settings, scope: str, operation: str) -> None:
    values = (f"budgets.quotas.subagent.{scope}={json.dumps({'limit': 2, 'window_seconds': 3600})}",)
    moment = [NOW]
    with Engine(settings, values=values, now=lambda: moment[0], points=LOADED) as engine:

        def ask(**changes: Any) -> list[str]:
            others = {name: uuid.uuid4().hex for name in ("conversation", "user", "account") if name != scope}
            return codes(engine.decide("subagent", {**SPAWN, "operation": operation, **others, **changes}))

        assert ask(policy="deny_all") == ["denied_by_default"]
        assert [ask() for _ in range(4)] == [[], [], [f"spawn_quota:{scope}"], [f"spawn_quota:{scope}"]]
        assert ask(**{scope: "another"}) == []
        assert codes(engine.check("subagent", SPAWN)) == [f"spawn_quota:{scope}"]
        moment[0] += timedelta(hours=1)
        assert [ask() for _ in range(3)] == [[], [], [f"spawn_quota:{scope}"]]


# covers: B24.4
@pytest.mark.full(after=1)
@pytest.mark.parametrize("scope", ["conversation", "user", "account"])
def test_a_recorded_refusal_replays_to_the_same_reason(settings: Settings, scope: str) -> None:
    values = (f"budgets.quotas.subagent.{scope}.limit=1",)
    with Engine(settings, values=values, now=lambda: NOW, points=LOADED) as engine:
        assert [codes(engine.decide("subagent", SPAWN)) for _ in range(2)] == [[], [f"spawn_quota:{scope}"]]
        allowed, refused = decisions(settings.state)
        again = [engine.opa.ask("decision", record["input"]).result for record in (allowed, refused)]
    assert [one["outcome"] for one in again] == ["allow", "deny"]
    assert [finding["code"] for finding in again[1]["findings"]] == [f"spawn_quota:{scope}"]
    assert [finding["code"] for finding in refused["findings"]] == [f"spawn_quota:{scope}"]
    assert {"id": scope, "used": 1, "amount": 1} in refused["input"]["quotas"]


# covers: B24
def test_of_many_concurrent_spawns_for_the_last_quota_unit_one_starts(settings: Settings) -> None:
    values = ("budgets.quotas.subagent.user.limit=1",)
    requests = [{**SPAWN, "conversation": f"chat-{number}"} for number in range(16)]
    with Engine(settings, values=values, now=lambda: NOW, points=LOADED) as engine, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda request: engine.decide("subagent", request), requests))
    assert Tally(tuple(codes(answer)) for answer in answers) == {(): 1, ("spawn_quota:user",): 15}


def test_a_spawn_with_a_missing_quota_is_refused(settings: Settings) -> None:
    for scope in ("conversation", "user", "account"):
        own = replace(settings, state=settings.state / scope)
        (own.state).mkdir(parents=True)
        with Engine(own, now=lambda: NOW, points=LOADED) as engine:
            document = there(engine.check("subagent", SPAWN).document)
            document["quotas"] = [one for one in document["quotas"] if one["id"] != scope]
            found = engine.opa.ask("decision", document).result
        assert [finding["code"] for finding in found["findings"]] == [f"spawn_quota:{scope}"]


def test_nothing_of_the_task_gets_into_the_record(settings: Settings, engine: Engine) -> None:
    got = engine.decide("subagent", {**SPAWN, "task": "ask Ana about the merger"})
    assert got.decision.outcome is Outcome.ALLOW
    (record,) = decisions(settings.state)
    assert "merger" not in json.dumps(record)
    assert record["input"]["task"]["bytes"] == 24
    other = engine.decide("subagent", {**SPAWN, "task": "ask Ben about the merger"})
    assert other.decision.input_digest != got.decision.input_digest  # an approval is for one task


# covers: B14
def test_an_approval_is_for_one_operation(engine: Engine) -> None:
    lee = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"))
    request = {**SPAWN, "policy": "confirm_all", "task": "count the contacts"}
    first = engine.decide("subagent", request, context=lee).decision
    assert (first.outcome, first.approval is not None) == (Outcome.CONFIRM, True)
    assert first.approval is not None
    engine.store().resolve(first.approval.id, "granted", "user:ana", None, int(NOW.timestamp()))
    with_it = replace(lee, approval=first.approval.id)
    changed = engine.decide("subagent", {**request, "task": "delete the contacts"}, context=with_it)
    assert "approval_input_changed" in codes(changed)
    assert engine.decide("subagent", request, context=with_it).decision.outcome is Outcome.ALLOW


def _gathered(**changes: Any) -> SubagentInput:
    request = SubagentRequest.model_validate({**SPAWN, **changes})
    return of(SubagentInput, gather(request, GatherContext(clock=lambda: 0, boundaries=lambda: ())).input)


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (CHILD, CHILD),
        (CHILD.upper(), CHILD),
        ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
        (f" {CHILD}", None),
        (f"urn:uuid:{CHILD}", None),
        (CHILD.replace("-", ""), None),
        (CHILD.replace("-", "_"), None),
        (CHILD.replace("f", "g"), None),
        ("\U0001f600", None),
    ],
)
def test_only_a_canonical_uuid_identifies_a_child(text: str, id_: str | None) -> None:
    child = _gathered(operation="poll", child_conversation_id=text).child
    assert (child.stated, child.id_valid, child.id) == (True, id_ is not None, id_)


def test_the_policy_sees_the_child_state_from_the_store(engine: Engine) -> None:
    store: Store = engine.store()
    store.add_child(ChildRow(CHILD, "chat-7", 5))
    store.end_child(CHILD, "killed", 6)
    document = there(engine.check("subagent", {**POLL, "conversation": CHILD}).document)
    wanted = {"id": CHILD, "parent": "chat-7", "state": "killed", "user": "", "asking": ""}
    assert document["children"] == [{**wanted, "role": "self"}, {**wanted, "role": "child"}]
    assert store.child(CHILD) == ChildRow(CHILD, "chat-7", 5, "killed", 6)

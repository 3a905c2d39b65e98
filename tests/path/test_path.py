"""The path of one request by itself: a policy, a record and a machine that do what a test says, on a real state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from engine.documents.canonical import RawJson
from engine.drive import Append, Call, Work, run
from engine.errors import DecideError, EngineError, Exit, GatherError, Location, RecordError, StateError
from engine.flow import Answer, Context, Services, answer
from engine.gather import HEAVY_BYTES
from engine.model import Boundary, Caller, Limits, Mode, Pace, Permit, Result, Revisions, SandboxFacts, Via
from engine.points import GatherContext, Gathered, Point
from engine.points.registry import POINTS
from engine.policy_bundle.catalogue import Catalogue, Entries, Words
from engine.policy_bundle.lookups import Lookups
from engine.record.model import DecisionRecord, ResultRecord
from engine.running import Running
from engine.settings import ReadLimits
from engine.state import open_store
from engine.state.rows import ApprovalRow, Counter
from engine.state.store import Store
from engine.times import time_text
from engine.work import Job
from tests.conftest import case
from tests.expect import codes, there
from tests.state.samples import activate, release

ACCEPTED: Any = case("license", "accepted").case.request
NOW = int(datetime(2026, 11, 21, tzinfo=UTC).timestamp())
LIMITS = {"purpose": "train", "export": {"allowed": True}}
ALLOW: dict[str, Any] = {"outcome": "allow", "findings": [], "limits": LIMITS}
ONE = {"code": "one", "level": "confirm", "subject": None}
DENY: dict[str, Any] = {"outcome": "deny", "findings": [{**ONE, "level": "deny"}]}
CONFIRM: dict[str, Any] = {"outcome": "confirm", "findings": [ONE], "approval_seconds": 60}
APPROVED: dict[str, Any] = {**ALLOW, "findings": [ONE], "approved": True}
REVISIONS = Revisions(rules="sha256:" + "1" * 64, values="sha256:" + "2" * 64)
CATALOGUE = Catalogue(
    points={"license": Entries(requirements={}, generated={"one": Words(code="one", title="one", remedy="mend")})}
)
WHO = Context(caller=Caller(via=Via.PROCESS, principal="pipeline"), run="run-1")


@dataclass(frozen=True, slots=True)
class Answered:
    result: Any
    defined: bool = True
    source: None = None


@dataclass
class Policy:
    """What is served: gives `answer` to whatever it is asked, and keeps the questions."""

    answer: Any = field(default_factory=lambda: ALLOW)
    revisions: Revisions | None = REVISIONS
    catalogue: Catalogue | None = CATALOGUE
    counted: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    asked: list[dict[str, Any]] = field(default_factory=list)
    released: int = 0
    ends_badly: bool = False
    shared: None = None
    digest: str | None = None

    @property
    def opa(self) -> Any:
        return self

    def ask(self, rule: str, document: dict[str, Any]) -> Answered:
        assert rule == "decision"
        self.asked.append(document)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return Answered(self.answer)

    @property
    def lookups(self) -> Lookups:
        return Lookups(budgets={"license": self.counted}, quotas={"license": self.windows}, probe_seconds=7)

    def backend_of(self, *_: str | None) -> None:
        return None

    def looks_up(self, _point: str, host: str) -> bool:
        return host in self.known

    def authored(self, served: Location) -> Location:
        return Location("author.rego", served.line)

    def release(self) -> None:
        self.released += 1
        if self.ends_badly:
            raise OSError("canary")


@dataclass
class Record:
    """The record: keeps lines, and raises `fails` for those from number `from_line` on."""

    fails: Exception | None = None
    from_line: int = 0
    bodies: list[Any] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def append(self, body: Any, events: tuple[Any, ...] = ()) -> None:
        if self.fails is not None and len(self.bodies) >= self.from_line:
            raise self.fails
        self.bodies.append(body)
        self.events.append(events)


@dataclass
class Opened:
    closed: int = 0

    def close(self) -> None:
        self.closed += 1


@dataclass
class Bench:
    """A request on its way through parts of which each can be changed."""

    store: Store
    policy: Policy = field(default_factory=Policy)
    record: Record = field(default_factory=Record)
    point: Point = POINTS["license"]
    world: dict[str, Any] = field(default_factory=dict)
    now: int = NOW
    stateless: bool = False
    observed: list[Mapping[str, int]] = field(default_factory=list)
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def parts(self) -> Services:
        world = GatherContext(clock=lambda: self.now, boundaries=lambda: (), **self.world)
        ids = iter(range(100, 200))
        return Services(
            serving=lambda: cast("Any", self.policy),
            log=cast("Any", self.record),
            store=self._store,
            running=Running(lambda: None if self.stateless else self.store, self._store),
            gather_context=world,
            clock=lambda: datetime.fromtimestamp(self.now, UTC),
            new_id=lambda: f"{len(self.record.bodies)}-{next(ids)}",
            versions={"engine": "1", "opa": "1"},
            observe=lambda _, durations: self.observed.append(durations),
            on_event=lambda name, fields: self.events.append((name, fields)),
        )

    def _store(self) -> Store:
        if self.stateless:
            raise StateError("no state", remedy="none")
        return self.store

    def gathering(self, change: Callable[[Gathered, GatherContext], Gathered]) -> None:
        own = self.point.gather
        self.point = replace(self.point, gather=lambda request, world: change(own(request, world), world))

    def ask(
        self, request: Any = ACCEPTED, context: Context = WHO, mode: Mode = Mode.ENFORCE, executor: Any = None
    ) -> Answer:
        return run(answer(self.point, request, mode, self.parts(), context, executor))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = open_store(tmp_path / "state")
    yield Bench(store)
    store.close()


def done(_permit: Permit, _job: Job) -> Result:
    return Result("done", {"files": 1})


def decided(bench: Bench) -> DecisionRecord:
    body = bench.record.bodies[0]
    assert isinstance(body, DecisionRecord)
    return body


def test_an_allow_is_recorded_then_worked_on_then_recorded_again(bench: Bench) -> None:
    lines: list[int] = []

    def executor(permit: Permit, job: Job) -> Result:
        permit.demand("license", job.input_digest, POINTS["license"].limits)
        lines.append(len(bench.record.bodies))
        return done(permit, job)

    got = bench.ask(executor=executor)
    assert (got.decision.outcome, got.fault, got.result, lines) == ("allow", None, Result("done", {"files": 1}), [1])
    assert [type(body) for body in bench.record.bodies] == [DecisionRecord, ResultRecord]
    assert (got.exit, bench.policy.released) == (Exit.ALLOW, 1)
    assert [set(one) for one in bench.observed] == [{"gather", "decide"}]
    assert (decided(bench).principal, decided(bench).run, decided(bench).approval) == ("pipeline", "run-1", None)
    assert got.decision.policy == REVISIONS


@pytest.mark.parametrize(
    ("said", "mode", "code"),
    [
        (DENY, Mode.ENFORCE, Exit.DENY),
        (CONFIRM, Mode.ENFORCE, Exit.CONFIRM),
        (ALLOW, Mode.CHECK, Exit.ALLOW),
    ],
)
def test_a_deny_a_confirm_and_a_dry_run_execute_nothing(said: Any, mode: Mode, code: Exit, bench: Bench) -> None:
    bench.policy.answer = said
    got = bench.ask(mode=mode, executor=lambda *_: pytest.fail("it ran"))
    assert (got.exit, got.result, len(bench.record.bodies)) == (code, None, 1)


def test_only_a_release_that_the_engines_agreed_on_decides(bench: Bench) -> None:
    """The agreement counts that is in force after OPA's answer; what was taken is given back."""
    bench.policy.counted = {"all": 0}
    assert bench.ask().exit is Exit.ALLOW  # nothing was agreed on
    one, two = release(1), release(2)
    activate(bench.store, one)
    refused = bench.ask()
    assert (codes(refused), refused.exit, refused.decision.policy) == (["policy_stale"], Exit.FAILED_CLOSED, REVISIONS)
    assert bench.store.used(Counter("license.all", "", 0), NOW) == 1
    bench.policy.digest = one.digest
    assert bench.ask().exit is Exit.ALLOW
    bench.store.propose(two, lambda _: None)
    assert bench.ask().exit is Exit.ALLOW
    switching = bench.store.move(two, "switching", NOW)
    for bench.policy.digest in (one.digest, two.digest):
        assert bench.ask().exit is Exit.ALLOW  # each ends what it has begun
    assert switching is not None
    bench.store.move(switching, "active", NOW)
    assert bench.ask().exit is Exit.ALLOW
    bench.policy.digest = one.digest
    assert codes(bench.ask()) == ["policy_stale"]


def test_without_an_executor_an_allow_is_only_recorded(bench: Bench) -> None:
    got = bench.ask()
    assert (got.exit, got.result, len(bench.record.bodies)) == (Exit.ALLOW, None, 1)


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (GatherError("cut", remedy="none", code="engine.own"), "engine.own", "cut"),
        ({**ACCEPTED, "purpose": 1}, "engine.request_invalid", "`purpose`"),
        (RawJson(b"5"), "engine.request_invalid", "`request`"),
        (RawJson(b"{" + b":" * (ReadLimits().request_keys + 1)), "engine.request_invalid", "plain JSON"),
        ({**ACCEPTED, "purpose": float("nan")}, "engine.request_invalid", "plain JSON"),
        ({**ACCEPTED, "purpose": object()}, "engine.request_invalid", "plain JSON"),
    ],
)
def test_an_ungatherable_request_is_a_recorded_deny(request_: Any, code: str, words: str, bench: Bench) -> None:
    got = bench.ask(request_)
    assert (got.decision.outcome, codes(got), got.exit) == ("deny", [code], Exit.UNREADABLE)
    assert words in got.decision.findings[0].requirement
    assert (bench.policy.asked, len(bench.record.bodies), bench.policy.released) == ([], 1, 1)
    assert set(bench.observed[0]) == {"gather"}


def test_text_and_value_are_the_same_request(bench: Bench) -> None:
    digests = {bench.ask(one).decision.input_digest for one in (ACCEPTED, RawJson(json.dumps(ACCEPTED).encode()))}
    assert len(digests) == 1


def test_the_digest_covers_the_request_and_the_caller_and_no_clock_or_count(bench: Bench) -> None:
    bench.policy.counted = {"all": 0}
    first = bench.ask().decision.input_digest
    bench.now += 5
    assert bench.ask().decision.input_digest == first
    assert bench.ask({**ACCEPTED, "purpose": "eval"}).decision.input_digest != first
    assert bench.ask(context=Context()).decision.input_digest != first


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (DecideError("down", remedy="none"), "policy_unavailable", "down"),
        (ZeroDivisionError("canary"), "engine.internal", "a fault inside the engine stopped the request"),
    ],
)
def test_a_fault_while_deciding_is_a_recorded_deny(raised: Exception, code: str, words: str, bench: Bench) -> None:
    bench.policy.answer, opened = raised, Opened()
    bench.gathering(lambda found, _: replace(found, close=opened.close))
    got = bench.ask(executor=lambda *_: pytest.fail("it ran"))
    assert (codes(got), got.exit, opened.closed, bench.policy.released) == ([code], Exit.FAILED_CLOSED, 1, 1)
    assert words in got.decision.findings[0].requirement
    finding = got.decision.findings[0]
    assert not re.search(r"canary|ZeroDivision|\.py", finding.requirement + finding.remedy)
    assert (decided(bench).outcome, got.decision.limits) == ("deny", None)
    crashes = [(fields["decision_id"], fields["stack"]) for name, fields in bench.events if name == "crash"]
    assert len(crashes) == (code == "engine.internal")
    for decision_id, stack in crashes:  # the log alone has the type and the place, and not even it the message
        assert decision_id == got.decision.decision_id
        assert stack.startswith("ZeroDivisionError\n")
        assert ("test_path.py" in stack, "canary" in stack.replace('ZeroDivisionError("canary")', "")) == (True, False)


@pytest.mark.parametrize(
    ("raised", "words"),
    [(RuntimeError("can't start new thread"), "no thread can be started"), (MemoryError(), "no memory is left")],
)
def test_exhausted_memory_or_threads_are_named_in_the_deny(raised: Exception, words: str, bench: Bench) -> None:
    bench.policy.answer = raised
    got = bench.ask()
    assert (codes(got), got.exit) == (["engine.internal"], Exit.FAILED_CLOSED)
    assert words in got.decision.findings[0].requirement


def test_an_opened_resource_is_closed_once(bench: Bench) -> None:
    opened = Opened()
    bench.gathering(lambda found, _: replace(found, close=opened.close))
    bench.ask(executor=lambda *_: Result("open" if not opened.closed else "closed", {}))
    assert opened.closed == 1
    assert bench.record.bodies[1].status == "open"


def test_an_opened_resource_is_closed_when_the_facts_cannot_be_serialized(bench: Bench) -> None:
    opened = Opened()

    def broken(found: Gathered, _: GatherContext) -> Gathered:
        return replace(found, close=opened.close, input=cast("Any", None))

    bench.gathering(broken)
    assert (codes(bench.ask()), opened.closed) == (["engine.internal"], 1)


def test_an_interrupt_is_recorded_as_a_deny_and_raised_again(bench: Bench) -> None:
    bench.policy.answer = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench.ask()
    assert (decided(bench).outcome, decided(bench).findings[0].code) == ("deny", "engine.internal")


@pytest.mark.parametrize("wanted", [Call, Append, Work])
def test_an_abandoned_path_ends_without_a_further_record(wanted: type, bench: Bench) -> None:
    bench.policy.counted = {"all": 0}
    steps = answer(bench.point, ACCEPTED, Mode.ENFORCE, bench.parts(), WHO, done)
    step = next(steps)
    while not isinstance(step, wanted):
        step = steps.send(_performed(step))
    before = len(bench.record.bodies)
    steps.close()
    assert len(bench.record.bodies) == before


def _performed(step: Any) -> Any:
    if isinstance(step, Append):
        return step.log.append(step.body, step.events)
    return step.run() if isinstance(step, Call | Work) else step.opa.ask("decision", step.document)


@pytest.mark.parametrize("pace", [*Pace, None])
def test_a_point_with_a_pace_is_gathered_in_another_thread(pace: Pace | None, bench: Bench) -> None:
    bench.point = replace(bench.point, pace=pace)
    steps = answer(bench.point, ACCEPTED, Mode.CHECK, bench.parts(), WHO)
    first = next(steps)
    assert isinstance(first, Call) == (pace is not None)
    assert (first.pace if isinstance(first, Call) else None) is pace
    steps.close()


@pytest.mark.parametrize(("size", "heavy"), [(HEAVY_BYTES, False), (HEAVY_BYTES + 1, True)])
def test_a_large_request_is_read_elsewhere_too(size: int, heavy: bool, bench: Bench) -> None:  # noqa: FBT001
    steps = answer(bench.point, RawJson(b"{}".rjust(size)), Mode.CHECK, bench.parts(), WHO)
    first = next(steps)
    assert (isinstance(first, Call) and first.pace is Pace.HEAVY) == heavy
    steps.close()


def test_a_failed_rule_is_reported_at_its_place_in_the_source(bench: Bench) -> None:
    bench.policy.answer = DecideError(
        "a rule failed", remedy="mend", where=Location("served.rego", 7), code="engine.own"
    )
    got = bench.ask()
    assert [(one.code, one.subject) for one in got.decision.findings] == [("engine.own", "author.rego:7")]
    bench.policy.answer = DecideError("down", remedy="none")
    assert [one.subject for one in bench.ask().decision.findings] == [None]
    refused = GatherError("no", remedy="none", where=Location("request.json", 1))
    assert [one.subject for one in bench.ask(refused).decision.findings] == [None]


# Boundaries


class Bound(Limits):
    backend: str | None

    def boundaries(self) -> frozenset[str]:
        return frozenset({"files"})

    def on_backend(self) -> str | None:
        return self.backend


HELD = Boundary(backend="jail", boundary="files", kind="kernel", enforced=True, evidence="sha256:" + "0" * 64)


@pytest.mark.parametrize("backend", [None, "jail"])
@pytest.mark.parametrize("shown", [True, False])
def test_a_limit_is_enforceable_only_with_evidence_from_the_backend(
    backend: str | None,
    shown: bool,  # noqa: FBT001
    bench: Bench,
) -> None:
    bench.point = replace(bench.point, limits=Bound)
    bench.policy.answer = {**ALLOW, "limits": {"backend": backend}}
    asked: list[tuple[str, int | None]] = []

    def facts(name: str, seconds: int | None) -> SandboxFacts:
        asked.append((name, seconds))
        return SandboxFacts((HELD,) if shown else ())

    bench.world = {"sandbox_facts": facts} if backend else {}
    parts = bench.parts()
    if backend is None and shown:
        parts = replace(parts, gather_context=replace(parts.gather_context, boundaries=lambda: (HELD,)))
    got = run(answer(bench.point, ACCEPTED, Mode.ENFORCE, parts, WHO))
    assert codes(got) == ([] if shown else ["engine.limit_unenforceable"])
    assert asked == ([] if backend is None else [("jail", 7)])


def test_only_hosts_named_in_the_policy_are_resolved(bench: Bench) -> None:
    told: list[str] = []
    found: list[Any] = []

    def addresses(host: str) -> tuple[str, ...]:
        told.append(host)
        return ("192.0.2.1",)

    def look_up(gathered: Gathered, context: GatherContext) -> Gathered:
        found.extend(map(context.addresses, ("a", "b")))
        return gathered

    bench.world, bench.policy.known = {"addresses": addresses}, frozenset({"a"})
    bench.gathering(look_up)
    bench.ask()
    assert (found, told) == ([("192.0.2.1",), None], ["a"])


OTHER = Revisions(rules="sha256:" + "3" * 64, values=REVISIONS.values)


@pytest.mark.parametrize(("last", "expected"), [(None, True), (REVISIONS, True), (OTHER, False)])
def test_the_policy_in_force_is_the_one_that_was_served_last(
    last: Revisions | None,
    expected: bool,  # noqa: FBT001
    bench: Bench,
) -> None:
    found: list[bool] = []

    def look(gathered: Gathered, context: GatherContext) -> Gathered:
        found.append(context.policy_in_force())
        return gathered

    bench.world = {"last_policy": lambda: last}
    bench.gathering(look)
    bench.ask()
    assert found == [expected]


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


# The record


@pytest.mark.parametrize(
    ("fails", "code"),
    [(RecordError("full", remedy="none"), "engine.record_unavailable"), (OSError("canary"), "engine.internal")],
)
@pytest.mark.parametrize("said", [ALLOW, CONFIRM])
def test_a_decision_that_cannot_be_recorded_is_denied_and_not_executed(
    fails: Exception, code: str, said: Any, bench: Bench
) -> None:
    bench.record.fails, bench.policy.answer = fails, said
    got = bench.ask(executor=lambda *_: pytest.fail("it ran"))
    assert (got.decision.outcome, codes(got), got.decision.approval, got.decision.limits) == (
        "deny",
        [code],
        None,
        None,
    )
    assert (got.fault and got.fault.code, got.result, got.exit) == (code, None, Exit.FAILED_CLOSED)
    assert len(bench.observed) == 1


def failing(raised: BaseException) -> Any:
    def executor(_permit: Permit, _job: Job) -> Result:
        raise raised

    return executor


OWN = EngineError("own", remedy="none", code="engine.own")


@pytest.mark.parametrize(("raised", "code"), [(OWN, "engine.own"), (ZeroDivisionError("canary"), "engine.work_failed")])
def test_work_that_fails_is_a_fault_whose_code_is_recorded(raised: Exception, code: str, bench: Bench) -> None:
    got = bench.ask(executor=failing(raised))
    assert (got.fault and got.fault.code, got.result, bench.record.bodies[1].status) == (code, Result(code, {}), code)
    assert (got.decision.outcome, got.exit) == ("allow", Exit.FAILED_CLOSED)


@pytest.mark.parametrize(
    ("fails", "executor", "code"),
    [
        (RecordError("full", remedy="none"), done, "engine.record_unavailable"),
        (OSError("canary"), done, "engine.internal"),
        (RecordError("full", remedy="none"), failing(OWN), "engine.own"),
    ],
    ids=["error of the record", "error of the system", "after work that failed"],
)
def test_a_result_that_cannot_be_recorded_is_a_fault(
    fails: Exception | None, executor: Any, code: str, bench: Bench
) -> None:
    bench.record.fails, bench.record.from_line = fails, 1
    got = bench.ask(executor=executor)
    assert (got.fault and got.fault.code, len(bench.record.bodies)) == (code, 1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("fails", [None, RecordError("full", remedy="none")])
def test_work_that_is_interrupted_is_recorded_as_such_and_the_interrupt_goes_on(
    fails: Exception | None, stop: type[BaseException], bench: Bench
) -> None:
    bench.record.fails, bench.record.from_line = fails, 1
    with pytest.raises(stop):
        bench.ask(executor=failing(stop()))
    assert [body.status for body in bench.record.bodies[1:]] == ([] if fails else ["interrupted"])


# Source events


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda _: None, ("event",)),
        (lambda bench: setattr(bench.policy, "catalogue", None), ()),
        (lambda bench: setattr(bench, "point", replace(bench.point, events=None)), ()),
    ],
    ids=["all there", "no catalogue", "no events"],
)
def test_events_stand_beside_the_decision_where_a_point_has_them(
    change: Callable[[Bench], None], expected: tuple[str, ...], bench: Bench
) -> None:
    bench.policy.answer = {"outcome": "allow", "findings": [], "limits": LIMITS}
    bench.point = replace(bench.point, events=cast("Any", lambda *_: ("event",)))
    change(bench)
    with suppress(AttributeError):
        bench.ask()
    assert bench.record.events == [expected]


def test_a_request_that_was_not_gathered_has_no_events(bench: Bench) -> None:
    bench.point = replace(bench.point, events=cast("Any", lambda *_: ("event",)))
    bench.ask({})
    assert bench.record.events == [()]

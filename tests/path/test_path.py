"""The path of one request by itself, on a bench."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from engine.documents.canonical import RawJson
from engine.drive import Append, Call, Work, run
from engine.errors import DecideError, EngineError, Exit, GatherError, Location, RecordError
from engine.flow import Context, answer
from engine.gather import HEAVY_BYTES
from engine.model import Boundary, Mode, Pace, Permit, Result, Revisions, SandboxFacts
from engine.points import GatherContext, Gathered
from engine.points.registry import POINTS
from engine.record.model import DecisionRecord, ResultRecord
from engine.settings import ReadLimits
from engine.state.rows import Counter
from engine.work import Job
from tests.expect import codes
from tests.path.bench import (
    ACCEPTED,
    ALLOW,
    CONFIRM,
    DENY,
    LIMITS,
    NOW,
    REVISIONS,
    WHO,
    Bench,
    Bound,
    Opened,
    decided,
    done,
)
from tests.state.samples import activate, release


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
        (RawJson(b"5"), "engine.request_invalid", "it must be an object"),
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
        assert ("bench.py" in stack, "canary" in stack.replace('ZeroDivisionError("canary")', "")) == (True, False)


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

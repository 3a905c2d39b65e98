"""The path of one request, five verbs long. Read this file first.

    gather ─> decide ─> enforce ─> work ─> record
    facts     verdict   permit     result  opens before the answer and before work, closes after it

Whatever goes wrong on the way is a deny with a reserved code, and is recorded too. The path is a
generator of steps, so that one text serves callers that block and callers on an event loop; see
engine/drive.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.decide import Verdict, authored, denial, read
from engine.drive import Append, Ask, Call, Steps, Work
from engine.enforce import enforceable, permit
from engine.errors import (
    RAISE_LIMIT,
    DecideError,
    EnforceError,
    EngineError,
    Exit,
    GatherError,
    StateError,
    fault_inside,
    lack_of,
    stack_of,
)
from engine.gather import Facts, gathering
from engine.model import (
    Approval,
    Boundary,
    Caller,
    Decision,
    Mode,
    Outcome,
    Result,
    Revisions,
    StopSignal,
    Via,
)
from engine.opa.reply import Reply
from engine.points import STATE_FACTS, GatherContext, Gathered, Point
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.lookups import Lookups
from engine.record.model import DecisionRecord, ResultRecord
from engine.running import Running
from engine.state.rows import ApprovalRow, Binding, Counter, StopRow
from engine.times import time_text, timestamp
from engine.work import Executor, Job, work

if TYPE_CHECKING:
    from engine.policy_bundle.serving import Serving
    from engine.record.standing import Log
    from engine.state.store import Store

_EXITS = {Outcome.ALLOW: Exit.ALLOW, Outcome.CONFIRM: Exit.CONFIRM, Outcome.DENY: Exit.DENY}
_REPORT = "report the decision id; the log of `engine serve` shows where it failed (`crash`)"


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a request: the caller, the run, and how to trace it.

    `approval` is the id of an approval to use, `trace` the trace id of W3C traceparent (32 hex digits).
    """

    caller: Caller = Caller(via=Via.PROCESS)  # noqa: RUF009  (frozen)
    run: str | None = None
    approval: str | None = None
    idempotency_key: str | None = None
    request_id: str | None = None
    trace: str | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not isinstance(value, Caller if name == "caller" else str | None):
                what = "a `Caller`" if name == "caller" else "text or None"
                raise mistyped(f"`{name}` of a context", value, f"pass {what}")


def checked(context: Context) -> Context:
    """The context, if it is one. Raises GatherError."""
    if not isinstance(context, Context):
        raise mistyped("the context", context, 'pass a `Context`, such as `Context(run="run-1")`')
    return context


def mistyped(what: str, value: object, remedy: str) -> GatherError:
    """The error for an argument of another type."""
    message = f"{what} is of type `{type(value).__name__}`"
    return GatherError(message, remedy=remedy, code="engine.request_invalid")


@dataclass(frozen=True, slots=True)
class Services:
    """The services of the path: the served policy, the record, the state, the environment, clock and ids."""

    serving: Callable[[], Serving]
    log: Log
    store: Callable[[], Store]
    running: Running
    gather_context: GatherContext
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    versions: Mapping[str, str]
    observe: Callable[[Decision, Mapping[str, int]], None] = lambda *_: None
    """Called with every decision once it is durable, and microseconds per verb; for metrics."""
    recorded: Callable[[DecisionRecord, dict[str, Any] | None], None] = lambda *_: None
    """Called with the line of every decision once it is durable, and the input as OPA saw it; for shadow decisions."""
    on_event: Callable[[str, Mapping[str, Any]], None] = lambda *_: None
    """Called with the place of an unexpected exception (`crash`); for the operational log."""
    contexts: dict[str, tuple[object, GatherContext, GatherContext]] = field(default_factory=dict)
    """By point: an OPA, what gather may ask, and the same under the policy of that OPA."""

    @contextmanager
    def policy(self) -> Iterator[Serving]:
        """The served policy, leased for the block: a replaced policy ends with its last request."""
        serving = self.serving()
        try:
            yield serving
        finally:
            serving.release()

    def gather_under(self, serving: Serving, point: str) -> GatherContext:
        """What gather may ask at this point under the policy being served; made once for each OPA."""
        known, context = self.contexts.get(point), self.gather_context
        if known is None or known[0] is not serving.opa or known[1] is not context:
            self.contexts.clear()
            known = self.contexts[point] = serving.opa, context, _under_policy(context, serving, point)
        return known[2]

    @property
    def lookups(self) -> Lookups:
        """What the engine looks up in the values being served."""
        with self.policy() as serving:
            return serving.lookups

    @property
    def revisions(self) -> Revisions | None:
        """The revisions of the policy being served; None if none is."""
        with self.policy() as serving:
            return serving.revisions


def _under_policy(context: GatherContext, serving: Serving, point: str) -> GatherContext:
    def addresses(host: str) -> tuple[str, ...] | None:
        return context.addresses(host) if serving.looks_up(point, host) else None

    return replace(
        context,
        lookups=serving.lookups,
        backend_of=serving.backend_of,
        addresses=addresses,
        policy_in_force=lambda: context.last_policy() in (None, serving.revisions),
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller gets: the decision, what it was taken on, and the result of permitted work."""

    decision: Decision
    gathered: Gathered | None
    fault: EngineError | None
    result: Result | None = None
    document: dict[str, Any] | None = None
    """The input as OPA saw it; None if OPA was not asked."""

    @property
    def exit(self) -> Exit:
        """The exit code of this one request."""
        return _EXITS[self.decision.outcome] if self.fault is None else self.fault.exit


@dataclass(slots=True)
class _Case:
    """One request on its way."""

    point: Point
    mode: Mode
    context: Context
    decision_id: str
    revisions: Revisions | None = None
    catalogue: Catalogue | None = None
    facts: Facts | None = None
    verdict: Verdict | None = None
    approval: Approval | None = None
    shared_from: str | None = None
    claimed: bool = False
    taken: Store | None = None
    fault: EngineError | None = None
    durations: dict[str, int] = field(default_factory=dict)


def answer(
    point: Point,
    request: Any,
    mode: Mode,
    services: Services,
    context: Context = Context(),
    executor: Executor | None = None,
) -> Steps[Answer]:
    """Take one request through the five verbs; never raises an EngineError, never allows by accident.

    `request` is plain JSON, checked JSON text, or the error from reading it.
    `executor` is the adapter that does the work of this point; it runs only in mode `enforce`, on an
    allow, after the decision is durable.
    """
    case, stop = _Case(point, mode, context, services.new_id()), None
    try:
        yield from _judge(case, request, services)
    except GeneratorExit:
        raise  # the steps were abandoned
    except BaseException as error:  # noqa: BLE001  (Ctrl-C too: raised again once the request is recorded)
        case.fault, stop = _fault_of(error, case, services), None if isinstance(error, Exception) else error
    yield from _give_back(case)
    with nullcontext() if case.facts is None else closing(case.facts.gathered):
        answered = yield from _record_and_work(case, services, executor)
    if stop is not None:
        raise stop
    return answered


def _judge(case: _Case, request: Any, services: Services) -> Steps[None]:
    started = time.perf_counter_ns()
    serving = services.serving()
    try:
        case.revisions, case.catalogue = serving.revisions, serving.catalogue
        context = services.gather_under(serving, case.point.name)
        case.facts = facts = yield from gathering(case.point, request, case.context.caller, context)
        started = _lap(case, "gather", started)
        yield from _reserve(case, facts, serving, services)
        services.gather_context.progress("deciding", 0, 0)
        stops = services.running.last.stops
        while True:
            facts.document["stops"] = stop_facts(stops, facts.gathered.tool, case.context)
            verdict = read(case.point, (yield from _ask(case, facts, serving)), serving.catalogue)
            judged, stops = stops, (yield from services.running.stops(serving.digest, case.mode))
            if stops == judged:  # those in force now, after OPA's answer
                break
        if verdict.limits is not None and verdict.limits.boundaries():
            proven = _boundaries(context, verdict.limits.on_backend())
            enforceable(verdict.limits, proven)
        yield from _approve(case, facts, verdict, services)
        case.verdict = verdict
    finally:
        serving.release()
        _lap(case, "decide" if "gather" in case.durations else "gather", started)


def stop_facts(stops: Sequence[StopRow], tool: str, context: Context) -> list[dict[str, Any]]:
    """The stops in force, and what of a request they may apply to; the tool is empty if it is about none."""
    about = {"principal": context.caller.principal or "", "tool": tool}
    return [{"id": stop.id, "scope": stop.scope, "name": stop.name, **about} for stop in stops]


def _ask(case: _Case, facts: Facts, serving: Serving) -> Steps[Reply]:
    """OPA's answer; where a rule failed, the error has the file and line of its author. Raises DecideError."""
    try:
        reply: Reply = yield Ask(serving.opa, facts.document, case.decision_id)
    except DecideError as error:
        raise authored(error, serving) from error.__cause__
    case.shared_from = reply.source
    return reply


def _boundaries(context: GatherContext, backend: str | None) -> tuple[Boundary, ...]:
    """The boundaries proven on this machine; those of one backend where work is bound to it."""
    if backend is None:
        return context.boundaries()
    return context.sandbox_facts(backend, context.lookups.probe_seconds).boundaries


def _reserve(case: _Case, facts: Facts, serving: Serving, services: Services) -> Steps[None]:
    """Take one from each budget and quota, what the run touches, and the approval that was brought; a dry run looks."""
    budgets, approval_id = serving.lookups.budgets.get(case.point.name, {}), case.context.approval
    gathered, document = facts.gathered, facts.document
    windows = serving.lookups.quotas.get(case.point.name, {})
    quotas = {name: key for name, key in gathered.quotas.items() if name in windows}
    touches = gathered.touches if case.context.run else ()
    asks_state = gathered.state is not None and gathered.asks_state(case.context.caller)
    if not (budgets or quotas or approval_id or touches or asks_state):
        return
    store: Store = yield Call(services.store)
    enforced, now, own = case.mode is Mode.ENFORCE, document["now"], case.decision_id
    taking = partial(_taking, case, store) if enforced else _looking
    document.update((yield from state_facts(gathered, store, case.context)))
    if touches and (run := case.context.run):
        touched = yield from taking(lambda: store.touch(run, touches, own, now) if enforced else store.touched(run))
        document["flows"] = [{"id": run, "touched": list(touched)}]
    if budgets or quotas:
        keys = {"principal": case.context.caller.principal or "", "run": case.context.run or "", "all": ""}
        counters = [Counter(f"{case.point.name}.{scope}", keys[scope], window) for scope, window in budgets.items()]
        counters += [
            Counter(f"{case.point.name}/{name}", key, windows[name], gathered.amounts.get(name, 1))
            for name, key in quotas.items()
        ]
        used = yield from taking(
            lambda: store.reserve(own, counters, now) if enforced else [store.used(one, now) for one in counters]
        )
        counted = [
            {"id": name, "used": count, "amount": counter.amount}
            for name, counter, count in zip([*budgets, *quotas], counters, used, strict=True)
        ]
        document["budgets"], document["quotas"] = counted[: len(budgets)], counted[len(budgets) :]
    if approval_id:
        binding = _binding(case, facts)
        if enforced and binding is not None:
            row, case.claimed = yield from taking(lambda: store.claim(approval_id, own, binding, now))
        else:
            row = yield Call(lambda: store.approval(approval_id))
        revisions = {} if case.revisions is None else case.revisions.model_dump(mode="json")
        expected = {"input_digest": facts.input_digest, **revisions}
        document["approvals"] = [{"id": approval_id, "expected": expected, **_approval_facts(row)}]


def _looking(look: Callable[[], Any]) -> Steps[Any]:
    return (yield Call(look))


def _taking(case: _Case, store: Store, take: Callable[[], Any]) -> Steps[Any]:
    """What `take` returns, which is given back unless the request is allowed, also where its commit is unknown."""
    before, case.taken = case.taken, store
    try:
        return (yield Call(take))
    except StateError as error:
        case.taken = before if error.undone else store
        raise


def state_facts(gathered: Gathered, store: Store, context: Context) -> Steps[dict[str, Any]]:
    """What the state knows of what this request is about. Raises StateError."""
    if (ask := gathered.state) is None or not gathered.asks_state(context.caller):
        return {}
    known = yield Call(lambda: ask(store, context.caller))
    return {name: known[name] for name in STATE_FACTS if name in known}


def _binding(case: _Case, facts: Facts) -> Binding | None:
    """The request that an approval requested here applies to; None without a policy."""
    if case.revisions is None:
        return None
    rules, values, requester = case.revisions.rules, case.revisions.values, case.context.caller.principal
    return Binding(case.point.name, facts.input_digest, rules, values, requester)


def _approval_facts(row: ApprovalRow | None) -> dict[str, Any]:
    """The facts of an approval as the state has them; none for one that was never requested."""
    if row is None:
        return {}
    same = ("state", "input_digest", "rules", "values", "expires_at", "requester", "requester_via", "approver")
    facts = {name: getattr(row, name) for name in same}
    facts |= {"requester_named": row.requester is not None, "codes": list(row.codes)}
    return {name: value for name, value in facts.items() if value is not None}


def _approve(case: _Case, facts: Facts, verdict: Verdict, services: Services) -> Steps[None]:
    """The approval of the outcome: an allow may use one up, a confirm requests one."""
    if case.mode is not Mode.ENFORCE or not (verdict.approved or verdict.outcome is Outcome.CONFIRM):
        return
    document, binding = facts.document, _binding(case, facts)
    if binding is None:
        raise _without_verdict()
    if verdict.outcome is Outcome.ALLOW:
        if not case.claimed:
            raise _without_verdict()
        claimed = document["approvals"][0]
        case.approval = Approval(id=claimed["id"], state="used", expires_at=time_text(claimed["expires_at"]))
    if verdict.outcome is Outcome.CONFIRM:
        if verdict.approval_seconds is None:
            raise EnforceError(
                "a person must approve, but the policy sets no expiry",
                remedy="state `valid_seconds` in policy/approvals.yaml",
            )
        new = ApprovalRow(
            **asdict(binding),
            codes=tuple(sorted({finding.code for finding in verdict.findings})),
            created_at=document["now"],
            expires_at=document["now"] + verdict.approval_seconds,
            requester_via=case.context.caller.via.value,
        )
        store: Store = yield Call(services.store)
        row = yield Call(lambda: store.request_approval(new))
        case.approval = Approval(id=row.id, state="requested", expires_at=time_text(row.expires_at))


def _give_back(case: _Case) -> Steps[None]:
    """Release what a request that is not allowed has reserved, and keep what one that is allowed touches.

    What cannot be released stays reserved. A request for approval stays too: others with the same binding may have
    been given its id, and this one gets it when it is sent again.
    """
    store, own, approval_id = case.taken, case.decision_id, case.context.approval
    if store is None:
        return
    allowed = case.fault is None and case.verdict is not None and case.verdict.outcome is Outcome.ALLOW
    returned = [] if allowed else [lambda: store.release(own)]
    if case.facts is not None and case.facts.gathered.touches:
        returned.append(lambda: store.keep_touches(own) if allowed else store.give_back_touches(own))
    if approval_id and not (allowed and case.approval is not None):
        returned.append(lambda: store.unclaim(approval_id, own))
    for one in returned:
        with suppress(Exception):
            yield Call(one)


def _record_and_work(case: _Case, services: Services, executor: Executor | None) -> Steps[Answer]:
    decision = _decision(case)
    context, facts = case.context, case.facts
    document = None if facts is None else facts.document
    services.gather_context.progress("recording", 0, 0)
    try:
        body = DecisionRecord.of(
            decision,
            time=timestamp(services.clock()),
            document=document,
            versions=services.versions,
            durations=case.durations,
            principal=context.caller.principal,
            run=context.run,
            request_id=context.request_id,
            trace=context.trace,
            approval=context.approval if decision.approval is None else decision.approval.id,
            shared_from=case.shared_from,
        )
        yield Append(services.log, body, _events(case, decision))
        services.recorded(body, document)
    except Exception as error:  # noqa: BLE001  (without its record, nothing is allowed)
        case.fault, case.approval = _fault_of(error, case, services), None
        decision = _decision(case)
        yield from _give_back(case)
    services.observe(decision, case.durations)
    sealed = None if executor is None else permit(decision)
    if sealed is None or executor is None or facts is None:
        return _answer(case, decision)
    job = Job(facts.input_digest, facts.gathered.opened)
    seen = [stop["id"] for stop in facts.document["stops"]]
    with services.running.watching(job.stop, seen, partial(_still_allowed, case, facts, services)):
        return (yield from _work(case, decision, services, job.stop, lambda: work(sealed, executor, job)))


def _still_allowed(case: _Case, facts: Facts, services: Services, stops: Sequence[StopRow], seconds: float) -> bool:
    """Whether what is in progress would be allowed under these stops. Blocks. Raises EngineError."""
    document = {**facts.document, "stops": stop_facts(stops, facts.gathered.tool, case.context)}
    with services.policy() as serving:
        verdict = read(case.point, serving.opa.ask("decision", document, seconds), serving.catalogue)
    return verdict.outcome is Outcome.ALLOW


def _work(
    case: _Case, decision: Decision, services: Services, stopping: StopSignal, do: Callable[[], Result]
) -> Steps[Answer]:
    started, stop = time.perf_counter_ns(), None
    try:
        result: Result = yield Work(do)
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001  (Ctrl-C too: raised again once it is recorded that work was begun)
        case.fault, stop = _fault_of(error, case, services), None if isinstance(error, Exception) else error
        result = Result(status=case.fault.code if stop is None else "interrupted", facts={})
    duration = (time.perf_counter_ns() - started) // 1000
    if stopping.is_set():
        result = Result(result.status, {**result.facts, "stopped": True})
    try:
        body = ResultRecord(
            time=timestamp(services.clock()),
            decision_id=decision.decision_id,
            request_id=case.context.request_id,
            trace=case.context.trace,
            status=result.status,
            facts=result.facts,
            duration=duration,
        )
        yield Append(services.log, body)
    except Exception as error:  # noqa: BLE001  (facts that have no JSON form, a record that cannot be written)
        case.fault = case.fault or _fault_of(error, case, services)
    if stop is not None:
        raise stop
    return _answer(case, decision, result)


def _answer(case: _Case, decision: Decision, result: Result | None = None) -> Answer:
    if case.facts is None:
        return Answer(decision, None, case.fault)
    return Answer(decision, case.facts.gathered, case.fault, result, case.facts.document)


def _decision(case: _Case) -> Decision:
    verdict = case.verdict
    if case.fault is not None or verdict is None:
        verdict = denial(case.fault or _without_verdict())
    return Decision(
        decision_id=case.decision_id,
        point=case.point.name,
        mode=case.mode,
        outcome=verdict.outcome,
        findings=verdict.findings,
        limits=verdict.limits,
        policy=case.revisions,
        input_digest=None if case.facts is None else case.facts.input_digest,
        approval=case.approval,
    )


def _events(case: _Case, decision: Decision) -> tuple[Any, ...]:
    if case.facts is None or case.point.events is None or case.catalogue is None:
        return ()
    return case.point.events(case.facts.gathered, decision, case.catalogue)


def _lap(case: _Case, name: str, started: int) -> int:
    """Add the microseconds since `started` to a verb; returns the current time."""
    now = time.perf_counter_ns()
    case.durations[name] = (now - started) // 1000
    return now


def _fault_of(error: BaseException, case: _Case, services: Services) -> EngineError:
    """The error itself if it is one of the engine's. For any other, `on_event` alone gets its place."""
    if isinstance(error, EngineError):
        return error
    if not isinstance(error, Exception):
        return EngineError("the request was interrupted", remedy="send it again")
    services.on_event("crash", {"decision_id": case.decision_id, "stack": stack_of(error)})
    lack = lack_of(error)
    return fault_inside("request", _REPORT) if lack is None else EngineError(lack, remedy=RAISE_LIMIT)


def _without_verdict() -> EngineError:
    return EngineError("no verdict was reached", remedy=_REPORT)

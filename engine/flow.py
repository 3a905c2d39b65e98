"""The path of one request, five verbs long. Read this file first.

    gather ─> decide ─> enforce ─> work ─> record
    facts     verdict   permit     result  opens before the answer and before work, closes after it

Whatever goes wrong on the way is a deny with a reserved code, and is recorded too. The path is a
generator of steps, so that one text serves callers that block and callers on an event loop; see
engine/drive.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from engine.canonical import RawJson, canonical, digest
from engine.decide import Verdict, read
from engine.drive import Append, Ask, Call, Log, Opa, Reply, Steps, Work
from engine.enforce import enforceable, permit
from engine.errors import DecideError, EnforceError, EngineError, Exit, GatherError, Location
from engine.model import (
    Approval,
    Boundary,
    Caller,
    Decision,
    Finding,
    Level,
    Mode,
    Outcome,
    Pace,
    Result,
    Revisions,
    Via,
)
from engine.parsing import validate
from engine.points import STATE_FACTS, Gathered, Point, World
from engine.policy_bundle.catalogue import Catalogue
from engine.record.model import DecisionRecord, ResultRecord, timestamp
from engine.secret_forms import SecretForms
from engine.state.store import ApprovalRow, Binding, Claim, Counter, NewApproval, Store
from engine.work import Hand, Job, work

_EXITS = {Outcome.ALLOW: Exit.ALLOW, Outcome.CONFIRM: Exit.CONFIRM, Outcome.DENY: Exit.DENY}
FROM_STATE = ("approvals", "budgets", "quotas", *STATE_FACTS)
"""Lists of every input that the engine's state fills; a point without such facts has them empty."""

HEAVY_BYTES = 64 << 10
"""JSON text from which on reading it takes so long that an event loop must not do it: about two milliseconds."""

_VOLATILE = frozenset({"now", "elapsed_ms", "probes", *FROM_STATE})
"""What stands in the input but not under its digest: a retry, or one with an approval, is the same request."""


@dataclass(frozen=True, slots=True)
class Context:
    """What belongs to a request besides its text: who asks, for which run, and how to follow it.

    `approval` is the id of an approval to use, `trace` the trace id of W3C traceparent (32 hex digits).
    """

    caller: Caller = Caller(via=Via.PROCESS)  # noqa: RUF009  (frozen)
    run: str | None = None
    approval: str | None = None
    idempotency_key: str | None = None
    request_id: str | None = None
    trace: str | None = None


class Serving(Protocol):
    """The policy that is served at one moment: one OPA, its words, its revisions, its budgets."""

    @property
    def opa(self) -> Opa:
        """The OPA that answers from exactly these revisions."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """The words of its findings."""
        ...

    @property
    def revisions(self) -> Revisions | None:
        """None where no policy bundle could be built."""
        ...

    def budgets(self, point: str) -> Mapping[str, int]:
        """The counted budgets of a point: what counts alone (`principal`, `run`, `all`), and its window in seconds."""
        ...

    def quotas(self, point: str) -> Mapping[str, int]:
        """What else a point counts: the name of a quota, and its window in seconds."""
        ...

    def argument_types(self, tool: str) -> Mapping[str, str]:
        """How the arguments of a tool are to be read."""
        ...

    def output_fields(self, contract: str) -> tuple[str, ...]:
        """The fields of an output contract, in their order."""
        ...

    def carried_fields(self, contract: str) -> tuple[str, ...]:
        """The fields of a request that answers under a contract repeat, in their order."""
        ...

    def contract(self, role: str) -> str:
        """The output contract of a program in this role; empty where the policy names none."""
        ...

    def backend_of(self, profile: str | None, language: str | None) -> str | None:
        """The sandbox of a profile, else of the profile for a language."""
        ...

    def probe_seconds(self) -> int:
        """How old the result of a probe may be."""
        ...

    def kind_without_origin(self) -> str | None:
        """The kind of a source record that states no origin."""
        ...

    def secret_forms(self) -> SecretForms:
        """The forms in which vendors issue secrets."""
        ...

    def looks_up(self, host: str) -> bool:
        """Whether a value names this host; the name of any other one is not told to a resolver."""
        ...

    def authored(self, served: Location) -> Location:
        """Where the author of a served rule finds the line."""
        ...

    def release(self) -> None:
        """Let go: a policy that was replaced ends when nobody holds it."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the path stands on: the policy being served, the record, the state, the world, clock and ids."""

    serving: Callable[[], Serving]
    log: Log
    store: Callable[[], Store]
    world: World
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    versions: Mapping[str, str]
    observe: Callable[[Decision, Mapping[str, int]], None] = lambda *_: None
    """Told every decision once it is durable, with microseconds a verb; for metrics."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller gets: the decision, what it was taken on, and the result of permitted work."""

    decision: Decision
    gathered: Gathered | None
    fault: EngineError | None
    result: Result | None = None
    document: dict[str, Any] | None = None
    """The input as OPA saw it; None where it was not asked."""

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
    gathered: Gathered | None = None
    document: dict[str, Any] | None = None
    input_digest: str | None = None
    verdict: Verdict | None = None
    approval: Approval | None = None
    claimed: bool = False
    taken: Store | None = None
    asked: str | None = None
    fault: EngineError | None = None
    durations: dict[str, int] = field(default_factory=dict)


def answer(
    point: Point,
    request: Any,
    mode: Mode,
    parts: Parts,
    context: Context = Context(),
    hand: Hand | None = None,
) -> Steps[Answer]:
    """Take one request through the five verbs; never raises an EngineError, never allows by accident.

    `request` is plain JSON, checked JSON text, or the error that kept the caller from reading it.
    `hand` is the adapter that does the work of this point; it runs only in mode `enforce`, on an
    allow, after the decision is durable.
    """
    case, stop = _Case(point, mode, context, parts.new_id()), None
    try:
        yield from _judge(case, request, parts)
    except EngineError as error:
        case.fault = error
    except Exception as error:  # noqa: BLE001  (a fault of ours is a deny like any other)
        case.fault = _internal(error)
    except GeneratorExit:
        raise  # nobody takes steps any more
    except BaseException as error:  # noqa: BLE001  (Ctrl-C: raised again once the request is recorded)
        case.fault, stop = _internal(error), error
    yield from _give_back(case)
    opened = None if case.gathered is None else case.gathered.opened
    with nullcontext() if opened is None else closing(opened):
        answered = yield from _record_and_work(case, parts, hand)
    if stop is not None:
        raise stop
    return answered


def _judge(case: _Case, request: Any, parts: Parts) -> Steps[None]:
    started = time.perf_counter_ns()
    serving = parts.serving()
    try:
        case.revisions, case.catalogue = serving.revisions, serving.catalogue
        facts = yield from gathering(case.point, request, parts, case.context, serving)
        case.gathered, case.document, case.input_digest = facts.gathered, facts.document, facts.input_digest
        started = _lap(case, "gather", started)
        yield from _take(case, serving, parts)
        parts.world.progress("deciding", 0, 0)
        verdict = read(case.point, (yield from _ask(case, serving)), serving.catalogue)
        if verdict.limits is not None:
            enforceable(verdict.limits, _shown(_world(parts.world, serving), verdict.limits.on_backend()))
        yield from _approve(case, verdict, parts)
        case.verdict = verdict
    finally:
        serving.release()
        _lap(case, "decide" if "gather" in case.durations else "gather", started)


def _ask(case: _Case, serving: Serving) -> Steps[Reply]:
    """OPA's answer; where a rule failed, the error has the file and line of its author. Raises DecideError."""
    try:
        reply: Reply = yield Ask(serving.opa, case.document or {})
    except DecideError as error:
        if error.where is None:
            raise
        where = serving.authored(error.where)
        raise DecideError(error.message, remedy=error.remedy, where=where, code=error.code) from error
    return reply


@dataclass(frozen=True, slots=True)
class Facts:
    """What a request is decided on, and its digest; what the state knows is not in the document yet."""

    gathered: Gathered
    document: dict[str, Any]
    input_digest: str


def gathering(point: Point, request: Any, parts: Parts, context: Context, serving: Serving) -> Steps[Facts]:
    """`gather`, in a thread where it reads files or the request is large. Raises GatherError."""
    text = as_json(request)
    heavy = len(text.data) > HEAVY_BYTES
    pace = point.pace or (Pace.HEAVY if heavy else None)
    if pace is None:
        return gather(point, text, parts, context, serving)
    found: Facts = yield Call(lambda: gather(point, text, parts, context, serving), pace)
    return found


def as_json(request: Any) -> RawJson:
    """A request as JSON text. Raises GatherError, or the error that kept the caller from reading it."""
    if isinstance(request, EngineError):
        raise request
    try:
        return request if isinstance(request, RawJson) else RawJson(canonical(request))
    except (ValueError, TypeError, RecursionError) as error:
        raise _not_json() from error


def gather(point: Point, request: Any, parts: Parts, context: Context, serving: Serving) -> Facts:
    """Turn a request into the input of its point. Raises GatherError."""
    text = as_json(request).data
    try:
        parsed = validate(
            point.request,
            text,
            f"point `{point.name}`",
            f"`engine decide {point.name} --schema` prints the schema of its requests",
            parts.world.read,
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise _not_json() from error
    gathered = point.gather(parsed, _world(parts.world, serving))
    with ExitStack() as stack:
        if gathered.opened is not None:
            stack.enter_context(closing(gathered.opened))
        facts = gathered.input.model_dump(mode="json", exclude_none=True)
        caller = context.caller.model_dump(mode="json", exclude_none=True)
        covered = {key: value for key, value in {**facts, "caller": caller}.items() if key not in _VOLATILE}
        unknown: dict[str, Any] = {name: [] for name in FROM_STATE}
        found = Facts(gathered, {**facts, "caller": caller, **unknown}, digest(canonical(covered)))
        stack.pop_all()  # whoever gets the facts closes what was opened
    return found


def _world(world: World, serving: Serving) -> World:
    """The world as far as the policy being served lets a request look into it."""

    def addresses(host: str) -> tuple[str, ...] | None:
        return world.addresses(host) if serving.looks_up(host) else None

    return replace(
        world,
        argument_types=serving.argument_types,
        output_fields=serving.output_fields,
        carried_fields=serving.carried_fields,
        backend_of=serving.backend_of,
        probe_seconds=serving.probe_seconds(),
        kind_without_origin=serving.kind_without_origin(),
        addresses=addresses,
        forms=serving.secret_forms(),
        policy_in_force=lambda: world.last_policy() in (None, serving.revisions),
    )


def _shown(world: World, backend: str | None) -> tuple[Boundary, ...]:
    """The boundaries that were shown to hold here, of one backend where work is bound to it."""
    return world.boundaries() if backend is None else world.sandbox_facts(backend, world.probe_seconds).boundaries


def _take(case: _Case, serving: Serving, parts: Parts) -> Steps[None]:
    """Take one from each budget and quota, and the approval that was brought; a dry run only looks."""
    budgets, wanted, document = serving.budgets(case.point.name), case.context.approval, case.document
    gathered = case.gathered
    if document is None or gathered is None:
        return
    windows = serving.quotas(case.point.name)
    quotas = {name: key for name, key in gathered.quotas.items() if name in windows}
    if not (budgets or quotas or wanted or gathered.state):
        return
    store: Store = yield Call(parts.store)
    enforced, now, own = case.mode is Mode.ENFORCE, document["now"], case.decision_id
    case.taken = store if enforced else None
    document.update((yield from state_facts(gathered, store, case.context, now)))
    if budgets or quotas:
        keys = {"principal": case.context.caller.principal or "", "run": case.context.run or "", "all": ""}
        counters = [Counter(f"{case.point.name}.{scope}", keys[scope], window) for scope, window in budgets.items()]
        counters += [Counter(f"{case.point.name}/{name}", key, windows[name]) for name, key in quotas.items()]
        used = yield Call(
            lambda: store.reserve(own, counters, now) if enforced else [store.used(one, now) for one in counters]
        )
        counted = [
            {"id": name, "used": count, "amount": 1} for name, count in zip([*budgets, *quotas], used, strict=True)
        ]
        document["budgets"], document["quotas"] = counted[: len(budgets)], counted[len(budgets) :]
    if wanted:
        binding = _binding(case)
        if enforced and binding is not None:
            claim: Claim = yield Call(lambda: store.claim(wanted, own, binding, now))
            row, case.claimed = claim.row, claim.taken
        else:
            row = yield Call(lambda: store.approval(wanted))
        asked = {} if case.revisions is None else case.revisions.model_dump(mode="json")
        document["approvals"] = [{"id": wanted, "asked": {"input_digest": case.input_digest, **asked}, **_given(row)}]


def state_facts(gathered: Gathered, store: Store, context: Context, now: int) -> Steps[dict[str, Any]]:
    """What the state knows of what this request is about. Raises StateError."""
    if (ask := gathered.state) is None:
        return {}
    known = yield Call(lambda: ask(store, context.caller, now))
    return {name: known[name] for name in STATE_FACTS if name in known}


def _binding(case: _Case) -> Binding | None:
    """The one request that an approval asked for here is for; None where nothing can be approved."""
    if case.input_digest is None or case.revisions is None:
        return None
    revisions, requester = case.revisions, case.context.caller.principal
    return Binding(case.point.name, case.input_digest, revisions.rules, revisions.values, requester)


def _given(row: ApprovalRow | None) -> dict[str, Any]:
    """The facts of an approval as the state has them; none of one that nobody asked for."""
    if row is None:
        return {}
    facts = {
        "state": row.state,
        "input_digest": row.input_digest,
        "rules": row.rules,
        "values": row.values,
        "expires_at": row.expires_at,
        "requester": row.requester,
        "requester_named": row.requester is not None,
        "requester_via": row.requester_via,
        "approver": row.approver,
        "codes": list(row.codes),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _approve(case: _Case, verdict: Verdict, parts: Parts) -> Steps[None]:
    """What a person has to do with the outcome: an allow may use an approval up, a confirm asks for one."""
    document, binding = case.document, _binding(case)
    if case.mode is not Mode.ENFORCE or document is None or binding is None:
        return
    if verdict.outcome is Outcome.ALLOW and verdict.approved:
        if not case.claimed:
            raise _internal(None)
        given = document["approvals"][0]
        case.approval = Approval(id=given["id"], state="used", expires_at=given["expires_at"])
    if verdict.outcome is Outcome.CONFIRM:
        if verdict.approval_seconds is None:
            raise EnforceError(
                "a person must approve, and the policy does not say until when",
                remedy="state `valid_seconds` in policy/approvals.yaml",
            )
        new = NewApproval(
            **asdict(binding),
            codes=tuple(sorted({finding.code for finding in verdict.findings})),
            created_at=document["now"],
            expires_at=document["now"] + verdict.approval_seconds,
            requester_via=case.context.caller.via.value,
        )
        store: Store = yield Call(parts.store)
        row = yield Call(lambda: store.request_approval(new))
        if row.id == new.id:
            case.taken, case.asked = store, row.id
        case.approval = Approval(id=row.id, state="requested", expires_at=row.expires_at)


def _give_back(case: _Case) -> Steps[None]:
    """Return what a request that is not allowed has taken; what cannot be returned stays taken.

    A fault takes back the request for approval too: its id is in no answer and in no record.
    """
    store, own, wanted, asked = case.taken, case.decision_id, case.context.approval, case.asked
    if store is None:
        return
    allowed = case.fault is None and case.verdict is not None and case.verdict.outcome is Outcome.ALLOW
    returned = [] if allowed else [lambda: store.release(own)]
    if wanted and not (allowed and case.approval is not None):
        returned.append(lambda: store.unclaim(wanted, own))
    if asked and case.fault is not None:
        returned.append(lambda: store.withdraw_approval(asked))
    for one in returned:
        with suppress(Exception):
            yield Call(one)


def _record_and_work(case: _Case, parts: Parts, hand: Hand | None) -> Steps[Answer]:
    decision = _decision(case)
    context = case.context
    parts.world.progress("recording", 0, 0)
    try:
        body = DecisionRecord.of(
            decision,
            time=timestamp(parts.clock()),
            document=case.document,
            versions=parts.versions,
            durations=case.durations,
            principal=context.caller.principal,
            run=context.run,
            request_id=context.request_id,
            trace=context.trace,
            approval=context.approval if decision.approval is None else decision.approval.id,
        )
        yield Append(parts.log, body, _events(case, decision))
    except Exception as error:  # noqa: BLE001  (without its record nothing is allowed, whatever the reason)
        case.fault = error if isinstance(error, EngineError) else _internal(error)
        case.approval = None
        decision = _decision(case)
        yield from _give_back(case)
    parts.observe(decision, case.durations)
    sealed = permit(decision)
    if sealed is None or hand is None or case.gathered is None or case.input_digest is None:
        return Answer(decision, case.gathered, case.fault, None, case.document)
    job = Job(case.input_digest, case.gathered.opened)
    return (yield from _work(case, decision, parts, lambda: work(sealed, hand, job)))


def _work(case: _Case, decision: Decision, parts: Parts, do: Callable[[], Result]) -> Steps[Answer]:
    started, stop = time.perf_counter_ns(), None
    try:
        result: Result = yield Work(do)
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001  (Ctrl-C too: raised again once it is recorded that work was begun)
        case.fault = error if isinstance(error, EngineError) else _internal(error)
        stop = None if isinstance(error, Exception) else error
        result = Result(status=case.fault.code if stop is None else "interrupted", facts={})
    duration = (time.perf_counter_ns() - started) // 1000
    try:
        body = ResultRecord(
            time=timestamp(parts.clock()),
            decision_id=decision.decision_id,
            request_id=case.context.request_id,
            trace=case.context.trace,
            status=result.status,
            facts=result.facts,
            duration=duration,
        )
        yield Append(parts.log, body)
    except Exception as error:  # noqa: BLE001  (facts that have no JSON form, a record that cannot be written)
        case.fault = case.fault or (error if isinstance(error, EngineError) else _internal(error))
    if stop is not None:
        raise stop
    return Answer(decision, case.gathered, case.fault, result, case.document)


def _decision(case: _Case) -> Decision:
    verdict = case.verdict
    if case.fault is not None or verdict is None:
        fault = case.fault or _internal(None)
        rule = str(fault.where) if isinstance(fault, DecideError) and fault.where is not None else None
        finding = Finding(
            code=fault.code, level=Level.DENY, message=fault.one_line(), subject=rule, remedy=fault.remedy
        )
        verdict = Verdict(Outcome.DENY, (finding,), None)
    return Decision(
        decision_id=case.decision_id,
        point=case.point.name,
        mode=case.mode,
        outcome=verdict.outcome,
        findings=verdict.findings,
        limits=verdict.limits,
        policy=case.revisions,
        input_digest=case.input_digest,
        approval=case.approval,
    )


def _events(case: _Case, decision: Decision) -> tuple[Any, ...]:
    if case.gathered is None or case.point.events is None or case.catalogue is None:
        return ()
    return case.point.events(case.gathered, decision, case.catalogue)


def _lap(case: _Case, name: str, started: int) -> int:
    """Add the microseconds since `started` to a verb; gives the time now."""
    now = time.perf_counter_ns()
    case.durations[name] = (now - started) // 1000
    return now


def _not_json() -> GatherError:
    return GatherError(
        "the request is not plain JSON",
        remedy="send finite numbers and whole characters",
        code="engine.request_invalid",
    )


def _internal(error: BaseException | None) -> EngineError:
    what = "no verdict was reached" if error is None else f"an unexpected {type(error).__name__} stopped the request"
    return EngineError(what, remedy="this is a fault of the engine: report it with the decision id")

"""The path of one request, five verbs long. Read this file first.

    gather ─> decide ─> enforce ─> work ─> record
    facts     verdict   permit     result  opens before the answer and before work, closes after it

Whatever goes wrong on the way is a deny with a reserved `engine.*` code, and is recorded too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pydantic import ValidationError

from engine.canonical import canonical, digest
from engine.decide import Opa, Verdict, decide
from engine.enforce import enforceable, permit
from engine.errors import EngineError, Exit, GatherError
from engine.files import shown
from engine.model import Decision, Finding, Level, Mode, Outcome, Result, Revisions
from engine.points import Gathered, Point, World
from engine.policy_bundle.catalogue import Catalogue
from engine.record.model import DecisionRecord, ResultRecord, timestamp
from engine.work import Hand, Job, work

_EXITS = {Outcome.ALLOW: Exit.ALLOW, Outcome.CONFIRM: Exit.CONFIRM, Outcome.DENY: Exit.DENY}
_VOLATILE = "now"
"""The clock stands in the input but not under its digest: a retry is the same request."""


class Log(Protocol):
    """The record: `append` returns when the line is durable, and raises RecordError otherwise."""

    def append(self, body: Any, events: tuple[Any, ...] = ()) -> object:
        """Write one line and the source events it covers. Raises RecordError."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the path stands on: the policy decision point, the record, the world, clock and ids."""

    opa: Opa
    catalogue: Catalogue
    revisions: Revisions | None
    log: Log
    world: World
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller gets: the decision, what it was taken on, and the result of permitted work."""

    decision: Decision
    gathered: Gathered | None
    fault: EngineError | None
    result: Result | None = None

    @property
    def exit(self) -> Exit:
        """The exit code of this one request."""
        return _EXITS[self.decision.outcome] if self.fault is None else self.fault.exit


@dataclass(slots=True)
class _Case:
    """One request on its way."""

    point: Point
    mode: Mode
    decision_id: str
    gathered: Gathered | None = None
    document: dict[str, Any] | None = None
    input_digest: str | None = None
    verdict: Verdict | None = None
    fault: EngineError | None = None
    durations: dict[str, int] = field(default_factory=dict)


def answer(point: Point, request: Any, mode: Mode, parts: Parts, hand: Hand | None = None) -> Answer:
    """Take one request through the five verbs; never raises an EngineError, never allows by accident.

    `request` is plain JSON, or the error that kept the caller from reading it. `hand` is the adapter
    that does the work of this point; it runs only in mode `enforce`, on an allow, after the decision
    is durable.
    """
    case = _Case(point, mode, parts.new_id())
    try:
        _timed(case, "gather", lambda: _gather(case, request, parts))
        _timed(case, "decide", lambda: _decide(case, parts))
    except EngineError as error:
        case.fault = error
    except Exception as error:  # noqa: BLE001  (a fault of ours is a deny like any other)
        case.fault = _internal(error)
    opened = None if case.gathered is None else case.gathered.opened
    with nullcontext() if opened is None else closing(opened):
        return _record_and_work(case, parts, hand)


def _gather(case: _Case, request: Any, parts: Parts) -> None:
    if isinstance(request, EngineError):
        raise request
    try:
        parsed = case.point.request.model_validate_json(canonical(request))
    except ValidationError as error:
        raise GatherError(
            f"the request does not fit point `{case.point.name}`: {_fields(error)}",
            remedy=f"`engine decide {case.point.name} --schema` prints the schema of its requests",
            code="engine.request_invalid",
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise GatherError(
            "the request is not plain JSON",
            remedy="send finite numbers and whole characters",
            code="engine.request_invalid",
        ) from error
    case.gathered = case.point.gather(parsed, parts.world)
    case.document = case.gathered.input.model_dump(mode="json", exclude_none=True)
    case.input_digest = digest(canonical({key: case.document[key] for key in case.document if key != _VOLATILE}))


def _decide(case: _Case, parts: Parts) -> None:
    document = case.document or {}
    parts.world.progress("deciding", 0, 0)
    verdict = decide(case.point, document, parts.opa, parts.catalogue)
    if verdict.limits is not None:
        enforceable(verdict.limits, parts.world.boundaries())
    case.verdict = verdict


def _record_and_work(case: _Case, parts: Parts, hand: Hand | None) -> Answer:
    decision = _decision(case, parts)
    parts.world.progress("recording", 0, 0)
    try:
        body = DecisionRecord.of(
            decision,
            time=timestamp(parts.clock()),
            document=case.document,
            versions=parts.versions,
            durations=case.durations,
        )
        parts.log.append(body, _events(case, decision, parts))
    except Exception as error:  # noqa: BLE001  (without its record nothing is allowed, whatever the reason)
        case.fault = error if isinstance(error, EngineError) else _internal(error)
        return Answer(_decision(case, parts), case.gathered, case.fault)
    sealed = permit(decision)
    if sealed is None or hand is None or case.gathered is None or case.input_digest is None:
        return Answer(decision, case.gathered, case.fault)
    job = Job(case.input_digest, case.gathered.opened)
    return _work(case, decision, parts, lambda: work(sealed, hand, job))


def _work(case: _Case, decision: Decision, parts: Parts, run: Callable[[], Result]) -> Answer:
    started = time.perf_counter_ns()
    try:
        result = run()
    except EngineError as error:
        case.fault, result = error, Result(status=error.code, facts={})
    duration = (time.perf_counter_ns() - started) // 1000
    try:
        moment = timestamp(parts.clock())
        parts.log.append(
            ResultRecord(
                time=moment,
                decision_id=decision.decision_id,
                status=result.status,
                facts=result.facts,
                duration=duration,
            )
        )
    except Exception as error:  # noqa: BLE001  (facts that have no JSON form, a record that cannot be written)
        case.fault = case.fault or (error if isinstance(error, EngineError) else _internal(error))
    return Answer(decision, case.gathered, case.fault, result)


def _decision(case: _Case, parts: Parts) -> Decision:
    verdict = case.verdict
    if case.fault is not None or verdict is None:
        fault = case.fault or _internal(None)
        finding = Finding(
            code=fault.code, level=Level.DENY, message=fault.one_line(), subject=None, remedy=fault.remedy
        )
        verdict = Verdict(Outcome.DENY, (finding,), None)
    return Decision(
        decision_id=case.decision_id,
        point=case.point.name,
        mode=case.mode,
        outcome=verdict.outcome,
        findings=verdict.findings,
        limits=verdict.limits,
        policy=parts.revisions,
        input_digest=case.input_digest,
    )


def _events(case: _Case, decision: Decision, parts: Parts) -> tuple[Any, ...]:
    if case.gathered is None or case.point.events is None:
        return ()
    return case.point.events(case.gathered, decision, parts.catalogue)


def _timed(case: _Case, name: str, verb: Callable[[], None]) -> None:
    started = time.perf_counter_ns()
    try:
        verb()
    finally:
        case.durations[name] = (time.perf_counter_ns() - started) // 1000


def _fields(error: ValidationError) -> str:
    return ", ".join(
        f"`{shown('.'.join(map(str, problem['loc'])), 80) or 'request'}` {problem['type'].replace('_', ' ')}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)[:5]
    )


def _internal(error: Exception | None) -> EngineError:
    what = "no verdict was reached" if error is None else f"an unexpected {type(error).__name__} stopped the request"
    return EngineError(what, remedy="this is a fault of the engine: report it with the decision id")

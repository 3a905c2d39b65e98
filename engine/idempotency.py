"""Idempotency keys: a repeated request gets the first decision, and nothing happens a second time (C69).

A repetition must have the same body, caller, scopes, run and approval. It is gathered and decided
again, with the budgets, approvals and attempts of the first one; the first decision is returned only if the facts and
the policy are unchanged and still agree: no earlier allow outlives them (H13), or a stop (C68).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from engine.decide import parsed, read
from engine.documents.canonical import RawJson, canonical, digest
from engine.drive import Append, Ask, Call, Steps
from engine.errors import DecideError, EngineError, GatherError
from engine.flow import Answer, Context, Services, answer, state_facts, stop_facts
from engine.gather import HEAVY_BYTES, as_json, gathering
from engine.model import Mode, Outcome, Pace, Revisions
from engine.points import Point
from engine.points.registry import find
from engine.record.model import ReplayRecord
from engine.state.rows import Begun
from engine.times import timestamp
from engine.work import Executor

if TYPE_CHECKING:
    from engine.state.store import Store

T = TypeVar("T")

TAKEN = ("approvals", "attempts", "budgets", "children", "flows", "quotas")
"""Facts that the first request changed itself: a repetition uses the old ones. All others are gathered again."""

NEW_KEY = "use a new idempotency key for a new request"


def answer_once(
    point: Point,
    request: Any,
    mode: Mode,
    services: Services,
    context: Context,
    executor: Executor | None = None,
    body: Callable[[], str] | None = None,
) -> Steps[Answer]:
    """`answer`, once for each idempotency key of a caller and point; a dry run has no effect to guard.

    `body` returns the digest of a request that only states where its content is.
    """
    key = context.idempotency_key
    if key is None or mode is not Mode.ENFORCE or isinstance(request, EngineError):
        return (yield from answer(point, request, mode, services, context, executor))
    try:
        if body is None:
            request = as_json(request)  # the key applies to this text, even if `request` changes later
            heavy = len(request.data) > HEAVY_BYTES
            body_digest = (yield Call(lambda: _body_digest(request), Pace.HEAVY)) if heavy else _body_digest(request)
        else:
            body_digest = yield Call(body, Pace.BUNDLE)
    except (GatherError, ValueError, TypeError, RecursionError):
        return (
            yield from answer(point, request, mode, services, context, executor)
        )  # not JSON: the decision reports it
    caller = context.caller.model_dump(mode="json")
    same = digest(canonical([body_digest, caller, context.run, context.approval]))
    try:
        taken = yield from take(point.name, key, same, services, context)
        if taken.begun.kind == "done":
            return (yield from _again(point, request, taken, services, context))
    except EngineError as error:
        return (yield from answer(point, error, mode, services, context))
    first = yield from answer(point, request, mode, services, context, executor)
    try:
        yield Call(lambda: _keep(taken, first))
    except EngineError as error:  # the key stays taken: nothing may happen twice
        return replace(first, fault=first.fault or error)
    return first


def _body_digest(request: RawJson) -> str:
    return digest(canonical(json.loads(request.data)))


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """An idempotency key that this request has begun, or whose first answer is known."""

    begun: Begun
    store: Store
    scope: str
    key: str

    def keep(self, answer: str | None, revisions: Revisions | None) -> None:
        """Store the answer for a repetition; without one, or without a policy, the key is free again."""
        if answer is None or revisions is None:
            self.store.abandon(self.scope, self.key)
        else:
            self.store.finish(self.scope, self.key, answer, revisions.rules, revisions.values)


def take(name: str, key: str, same: str, services: Services, context: Context) -> Steps[ClaimedKey]:
    """Reserve a key of this caller at a point; `same` is the digest of everything that must be equal in a repetition.

    Raises StateError, or GatherError for a key that cannot be stored, or that is reserved without an answer.
    """
    scope = f"{name}/{context.caller.via}/{context.caller.principal or ''}"
    store: Store = yield Call(services.store)
    try:
        begun: Begun = yield Call(lambda: store.begin(scope, key, same, int(services.clock().timestamp())))
    except ValueError as error:
        raise GatherError(
            "this idempotency key cannot be stored",
            remedy="use a key of 1 to 255 characters, such as a UUID",
            code="engine.request_invalid",
        ) from error
    if begun.kind not in {"new", "done"}:
        raise _refusal(begun)
    return ClaimedKey(begun, store, scope, key)


@dataclass(frozen=True, slots=True)
class Whole(Generic[T]):
    """A run of several decisions that one idempotency key covers.

    `stated` is everything that must be equal in a repetition, as JSON. `keep` returns the last answer and the JSON of
    a result that is kept, or None after a fault: then nothing was made, and the key is free again. `again` restores
    a result and names the decision that is replayed, `unkept` adds the error from keeping it.
    """

    name: str
    stated: Any
    run: Callable[[], Steps[T]]
    keep: Callable[[T], tuple[Answer, Any] | None]
    again: Callable[[Any], tuple[T, str]]
    unkept: Callable[[T, EngineError], T]


def whole_once(whole: Whole[T], services: Services, context: Context) -> Steps[T]:
    """A whole run, once for each idempotency key of a caller; a repetition returns the first result (C69).

    Raises what the run does, and EngineError for a key that cannot be used.
    """
    key = context.idempotency_key
    if key is None:
        return (yield from whole.run())
    stated = [whole.stated, context.caller.model_dump(mode="json"), context.run, context.approval]
    same = digest(json.dumps(stated, sort_keys=True).encode("utf-8"))
    taken = yield from take(whole.name, key, same, services, context)
    if taken.begun.kind == "done":
        kept = json.loads(taken.begun.answer or "{}")
        found, decision_id = whole.again(kept["result"])
        yield from still_allowed(taken.begun, kept["asked"], services, context)
        yield replayed(services, context, decision_id)
        return found
    try:
        first = yield from whole.run()
    except EngineError:  # before anything was decided
        yield Call(lambda: taken.keep(None, None))
        raise
    try:
        yield Call(lambda: _finish(taken, whole.keep(first)))
    except EngineError as error:  # the key stays taken: nothing may happen twice
        return whole.unkept(first, error)
    return first


def _finish(taken: ClaimedKey, kept: tuple[Answer, Any] | None) -> None:
    if kept is None:
        taken.keep(None, None)
    else:
        text = canonical({"result": kept[1], "asked": facts_to_ask(kept[0])}).decode("utf-8")
        taken.keep(text, kept[0].decision.policy)


def facts_to_ask(last: Answer | None) -> dict[str, Any] | None:
    """What a repetition of a whole run is asked again: the facts of its last answer; None unless that is an allow."""
    return None if last is None or last.decision.outcome is not Outcome.ALLOW else last.document


def still_allowed(begun: Begun, facts: dict[str, Any] | None, services: Services, context: Context) -> Steps[None]:
    """Raise DecideError if the policy has changed, or a stop applies to what was allowed on these facts."""
    with services.policy() as policy:
        same_policy(begun, policy.revisions)
        if facts is None:
            return
        point = find(facts["point"])
        stops = stop_facts((yield from services.running.stops(policy.digest)), "", context)
        verdict = read(point, (yield Ask(policy.opa, {**facts, "stops": stops})), policy.catalogue)
    if verdict.outcome is not Outcome.ALLOW:
        raise _stale("what was allowed has been stopped")


def _keep(taken: ClaimedKey, first: Answer) -> None:
    decision, document, text = first.decision, first.document, None
    if (first.fault is None or first.result is not None) and document is not None:
        known = {name: document[name] for name in TAKEN}
        text = canonical({"decision": decision.model_dump(mode="json"), "known": known}).decode("utf-8")
    taken.keep(text, decision.policy)


def _again(point: Point, request: Any, taken: ClaimedKey, services: Services, context: Context) -> Steps[Answer]:
    """The first decision again, if it would be taken again."""
    first: dict[str, Any] = json.loads(taken.begun.answer or "{}")
    with services.policy() as policy:
        facts = yield from gathering(point, request, context.caller, services.gather_under(policy, point.name))
        with closing(facts.gathered):
            known = yield from state_facts(facts.gathered, taken.store, context)
            stops = stop_facts((yield from services.running.stops(policy.digest)), facts.gathered.tool, context)
            document = {**facts.document, **known, **first["known"], "stops": stops}
            verdict = read(point, (yield Ask(policy.opa, document, first["decision"]["decision_id"])), policy.catalogue)
            now = policy.revisions
    fields: dict[str, Any] = first["decision"]
    same_policy(taken.begun, now)
    was = parsed(point, fields)
    if (facts.input_digest, verdict.outcome, verdict.limits) != (was.input_digest, was.outcome, was.limits):
        raise _stale("the facts, the outcome or the limits of this request have changed")
    yield replayed(services, context, was.decision_id)
    return Answer(was, None, None)


def same_policy(begun: Begun, now: Revisions | None) -> None:
    """Raise DecideError if the first answer was given under another policy than the current one."""
    if now is None or (now.rules, now.values) != (begun.rules, begun.values):
        raise _stale("the policy has changed")


def replayed(services: Services, context: Context, decision_id: str) -> Append:
    """The step that records a replayed answer."""
    line = ReplayRecord(
        time=timestamp(services.clock()),
        decision_id=decision_id,
        principal=context.caller.principal,
        request_id=context.request_id,
        trace=context.trace,
    )
    return Append(services.log, line)


def _stale(what: str) -> DecideError:
    return DecideError(f"{what} since this idempotency key was used", remedy=NEW_KEY, code="engine.idempotency_stale")


def _refusal(begun: Begun) -> GatherError:
    """Why a reserved key has no answer."""
    if begun.kind == "pending":
        return GatherError(
            "the first request with this idempotency key is still in progress",
            remedy="retry later; if its engine died, the key stays reserved until it expires",
            code="engine.idempotency_pending",
        )
    return conflict()


def conflict() -> GatherError:
    """The refusal of a key that stands for another request."""
    return GatherError(
        "this idempotency key was used for another request", remedy=NEW_KEY, code="engine.idempotency_conflict"
    )

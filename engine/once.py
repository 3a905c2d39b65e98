"""Idempotency keys: a repeated request gets the first decision, and nothing happens a second time (C69).

The first decision is given again only while OPA answers from the very policy that took it, so that no
earlier allow outlives its policy (H13). The same key with another body is an error.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from engine.canonical import RawJson, canonical, digest
from engine.drive import Append, Ask, Call, Steps
from engine.errors import DecideError, EngineError, GatherError
from engine.flow import Answer, Context, Parts, answer
from engine.model import Decision, Mode
from engine.points import Point
from engine.record.model import ReplayRecord, timestamp
from engine.state.store import Begun, Store
from engine.work import Hand

_NEW_KEY = "use a new idempotency key for a new request"


def answer_once(
    point: Point, request: Any, mode: Mode, parts: Parts, context: Context, hand: Hand | None = None
) -> Steps[Answer]:
    """`answer`, once for each idempotency key of a principal and point; a dry run has no effect to guard."""
    key = context.idempotency_key
    if key is None or mode is not Mode.ENFORCE or isinstance(request, EngineError):
        return (yield from answer(point, request, mode, parts, context, hand))
    scope = f"{point.name}/{context.caller.via}/{context.caller.principal or ''}"
    try:
        body = digest(canonical([_value(request), context.approval]))
        store: Store = yield Call(parts.store)
        begun: Begun = yield Call(lambda: store.begin(scope, key, body, int(parts.clock().timestamp())))
        if begun.kind == "done":
            return (yield from _again(point, begun, parts, context))
        if begun.kind != "new":
            raise _refusal(begun)
    except EngineError as error:
        return (yield from answer(point, error, mode, parts, context))
    except (ValueError, TypeError, RecursionError):
        return (yield from answer(point, request, mode, parts, context, hand))  # no JSON: it will say so
    first = yield from answer(point, request, mode, parts, context, hand)
    try:
        yield Call(lambda: _keep(store, scope, key, first))
    except EngineError as error:  # the key stays taken: nothing may happen twice
        return replace(first, fault=first.fault or error)
    return first


def _keep(store: Store, scope: str, key: str, first: Answer) -> None:
    revisions = first.decision.policy
    if (first.fault is not None and first.result is None) or revisions is None:
        store.abandon(scope, key)
    else:
        store.finish(scope, key, first.decision.model_dump_json(), revisions.rules, revisions.values)


def _again(point: Point, begun: Begun, parts: Parts, context: Context) -> Steps[Answer]:
    """The first decision again, if OPA still answers from the policy that took it."""
    serving = parts.serving()
    try:
        yield Ask(serving.opa, {"point": ""})  # raises unless OPA answers from its revisions
        now = serving.revisions
    finally:
        serving.release()
    if now is None or (now.rules, now.values) != (begun.rules, begun.values):
        raise DecideError(
            "the policy has changed since this idempotency key was used",
            remedy=_NEW_KEY,
            code="engine.idempotency_stale",
        )
    fields: dict[str, Any] = json.loads(begun.answer or "{}")
    if (limits := fields.pop("limits")) is not None:
        limits = point.limits.model_validate_json(canonical(limits))
    decision = Decision.model_validate_json(canonical({**fields, "limits": None})).model_copy(update={"limits": limits})
    body = ReplayRecord(
        time=timestamp(parts.clock()),
        decision_id=decision.decision_id,
        principal=context.caller.principal,
        request_id=context.request_id,
        trace=context.trace,
    )
    yield Append(parts.log, body)
    return Answer(decision, None, None)


def _refusal(begun: Begun) -> GatherError:
    if begun.kind == "pending":
        return GatherError(
            "the first request with this idempotency key has not ended",
            remedy="ask again later; when its engine died, the key stays taken until it expires",
            code="engine.idempotency_pending",
        )
    return GatherError(
        "this idempotency key was used for another request", remedy=_NEW_KEY, code="engine.idempotency_conflict"
    )


def _value(request: Any) -> Any:
    return json.loads(request.data) if isinstance(request, RawJson) else request

"""Idempotency keys: a repeated request gets the first decision, and nothing happens a second time (C69).

A repetition is the same only with the same body, caller, scopes, run and approval. It is gathered and put to
the policy again, with what the first one took or began; its decision is given only where the facts and the policy
are what they were and still say so: no earlier allow outlives them (H13).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from engine.canonical import RawJson, canonical, digest
from engine.decide import read
from engine.drive import Append, Ask, Call, Steps
from engine.errors import DecideError, EngineError, GatherError
from engine.flow import HEAVY_BYTES, Answer, Context, Parts, answer, as_json, gathering, state_facts
from engine.model import Decision, Mode, Pace
from engine.points import Point
from engine.record.model import ReplayRecord, timestamp
from engine.state.store import Begun, Store
from engine.work import Hand

TAKEN = ("approvals", "attempts", "budgets", "children", "quotas")
"""Facts that the first request changed itself: a repetition has them as they were. All others are asked again."""

NEW_KEY = "use a new idempotency key for a new request"


def answer_once(
    point: Point,
    request: Any,
    mode: Mode,
    parts: Parts,
    context: Context,
    hand: Hand | None = None,
    body: Callable[[], str] | None = None,
) -> Steps[Answer]:
    """`answer`, once for each idempotency key of a caller and point; a dry run has no effect to guard.

    `body` gives the digest of the request where the request itself only says where it is kept.
    """
    key = context.idempotency_key
    if key is None or mode is not Mode.ENFORCE or isinstance(request, EngineError):
        return (yield from answer(point, request, mode, parts, context, hand))
    try:
        if body is None:
            request = as_json(request)  # the key is for what is decided, whatever becomes of `request`
            heavy = len(request.data) > HEAVY_BYTES
            said = (yield Call(lambda: _said(request), Pace.HEAVY)) if heavy else _said(request)
        else:
            said = yield Call(body, Pace.BUNDLE)
    except (GatherError, ValueError, TypeError, RecursionError):
        return (yield from answer(point, request, mode, parts, context, hand))  # no JSON: it will say so
    caller = context.caller.model_dump(mode="json")
    same = digest(canonical([said, caller, context.run, context.approval]))
    scope = f"{point.name}/{context.caller.via}/{context.caller.principal or ''}"
    try:
        store: Store = yield Call(parts.store)
        begun: Begun = yield Call(lambda: begin(store, scope, key, same, int(parts.clock().timestamp())))
        if begun.kind == "done":
            return (yield from _again(point, request, begun, store, parts, context))
        if begun.kind != "new":
            raise refusal(begun)
    except EngineError as error:
        return (yield from answer(point, error, mode, parts, context))
    first = yield from answer(point, request, mode, parts, context, hand)
    try:
        yield Call(lambda: _keep(store, scope, key, first))
    except EngineError as error:  # the key stays taken: nothing may happen twice
        return replace(first, fault=first.fault or error)
    return first


def _said(request: RawJson) -> str:
    return digest(canonical(json.loads(request.data)))


def begin(store: Store, scope: str, key: str, same: str, now: int) -> Begun:
    """Take a key for a body with this digest. Raises GatherError for a key that cannot be kept."""
    try:
        return store.begin(scope, key, same, now)
    except ValueError as error:
        raise GatherError(
            "this idempotency key cannot be kept",
            remedy="use a key of 1 to 255 characters, such as a UUID",
            code="engine.request_invalid",
        ) from error


def _keep(store: Store, scope: str, key: str, first: Answer) -> None:
    revisions, document = first.decision.policy, first.document
    if (first.fault is not None and first.result is None) or revisions is None or document is None:
        store.abandon(scope, key)
        return
    kept = {
        "decision": first.decision.model_dump(mode="json"),
        "known": {name: document[name] for name in TAKEN},
    }
    store.finish(scope, key, canonical(kept).decode("utf-8"), revisions.rules, revisions.values)


def _again(point: Point, request: Any, begun: Begun, store: Store, parts: Parts, context: Context) -> Steps[Answer]:
    """The first decision again, if it would be taken again."""
    first: dict[str, Any] = json.loads(begun.answer or "{}")
    serving = parts.serving()
    try:
        facts = yield from gathering(point, request, parts, context, serving)
        opened = facts.gathered.opened
        with nullcontext() if opened is None else closing(opened):
            known = yield from state_facts(facts.gathered, store, context, facts.document["now"])
            document = {**facts.document, **known, **first["known"]}
            verdict = read(point, (yield Ask(serving.opa, document)), serving.catalogue)
            now = serving.revisions
    finally:
        serving.release()
    fields: dict[str, Any] = first["decision"]
    if now is None or (now.rules, now.values) != (begun.rules, begun.values):
        raise _stale("the policy has changed")
    if (facts.input_digest, verdict.outcome) != (fields["input_digest"], fields["outcome"]):
        raise _stale("what this request is about, or the time for it, has changed")
    if (limits := fields.pop("limits")) is not None:
        limits = point.limits.model_validate_json(canonical(limits))
    decision = Decision.model_validate_json(canonical({**fields, "limits": None})).model_copy(update={"limits": limits})
    line = ReplayRecord(
        time=timestamp(parts.clock()),
        decision_id=decision.decision_id,
        principal=context.caller.principal,
        request_id=context.request_id,
        trace=context.trace,
    )
    yield Append(parts.log, line)
    return Answer(decision, None, None)


def _stale(what: str) -> DecideError:
    return DecideError(f"{what} since this idempotency key was used", remedy=NEW_KEY, code="engine.idempotency_stale")


def refusal(begun: Begun) -> GatherError:
    """Why a key that is taken gives no answer."""
    if begun.kind == "pending":
        return GatherError(
            "the first request with this idempotency key has not ended",
            remedy="ask again later; when its engine died, the key stays taken until it expires",
            code="engine.idempotency_pending",
        )
    return GatherError(
        "this idempotency key was used for another request", remedy=NEW_KEY, code="engine.idempotency_conflict"
    )

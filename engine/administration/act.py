"""Administrative acts: each is decided and recorded, then performed under its permit.

The decision is durable before the state changes, so no act takes effect without a record; the
result line records that it took effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.documents.canonical import RawJson
from engine.drive import Append, Call, Steps
from engine.errors import EngineError, GatherError, RecordError, StateError, WorkError
from engine.flow import Answer, Context, Services, answer
from engine.gather import as_json
from engine.model import Mode, Permit, Result, Via
from engine.points.administration import AdministrationLimits, AdministrationRequest
from engine.points.registry import find
from engine.record.model import ResultRecord
from engine.state.rows import PrefixRow, StopRow
from engine.state.store import Store
from engine.times import row_document, time_text, timestamp
from engine.work import Job

POINT = "administration"


@dataclass(frozen=True, slots=True)
class Administered:
    """The decision on an act, and what it created or changed as JSON; None if it had no effect.

    `done` has the text of a new token under `text`; only the caller gets it.
    """

    answer: Answer
    done: dict[str, Any] | None


def administer(document: Any, services: Services, context: Context) -> Steps[Administered]:
    """Decide and perform one act; `document` is an AdministrationRequest as JSON, or the error from reading it."""
    done: list[dict[str, Any]] = []
    stated: RawJson | EngineError
    try:
        stated = as_json(document)  # this text is decided, recorded and performed, even if `document` changes later
    except EngineError as error:
        stated = error

    def executor(permit: Permit, job: Job) -> Result:
        limits = permit.demand(POINT, job.input_digest, AdministrationLimits)
        request = AdministrationRequest.model_validate_json(as_json(stated).data)
        done.append(
            _act(services.store(), limits, request, context.caller.principal or "", services.gather_context.clock())
        )
        return Result("done", {"act": limits.act, "id": limits.id})

    answered = yield from answer(find(POINT), stated, Mode.ENFORCE, services, context, executor)
    policy_failed = answered.fault is not None and not isinstance(answered.fault, _NOT_THE_POLICY)
    if policy_failed and isinstance(stated, RawJson) and context.caller.via in _OWNERS:
        return (yield from _stop_without_policy(stated, answered, services, context))
    return Administered(answered, done[0] if done else None)


_NOT_THE_POLICY = (GatherError, RecordError, StateError, WorkError)
_OWNERS = (Via.PROCESS, Via.CONTROL)
"""Callers that own the state folder: this process, and users who may open its control socket."""


def _stop_without_policy(asked: RawJson, answered: Answer, services: Services, context: Context) -> Steps[Administered]:
    """Stop although the policy does not answer: no request is allowed then, but work that is in progress goes on.

    The recorded deny is followed by a result line. Any other act stays refused.
    """
    request = AdministrationRequest.model_validate_json(asked.data)
    if request.act != "stop" or request.stop is None or (request.stop.name == "") != (request.stop.scope == "all"):
        return Administered(answered, None)
    actor, now = context.caller.principal or "", services.gather_context.clock()
    limits = AdministrationLimits(act=request.act, id=request.id, seconds=0)
    try:
        store = yield Call(services.store)
        done = yield Call(lambda: _act(store, limits, request, actor, now))
        yield Append(
            services.log,
            ResultRecord(
                time=timestamp(services.clock()),
                decision_id=answered.decision.decision_id,
                status="stopped_without_policy",
                facts={"act": request.act, "id": request.id},
                duration=0,
            ),
        )
    except (EngineError, ValueError):  # then the first fault is the answer
        return Administered(answered, None)
    return Administered(replace(answered, fault=None), done)


def _act(
    store: Store, limits: AdministrationLimits, request: AdministrationRequest, actor: str, now: int
) -> dict[str, Any]:
    """Change the state by what the limits permit. Raises StateError, GatherError."""
    act, id_ = limits.act, limits.id
    if act in {"grant_approval", "refuse_approval"}:
        resolved: Literal["granted", "refused"] = "granted" if act == "grant_approval" else "refused"
        return row_document(store.resolve(id_, resolved, actor, request.reason, now))
    if act == "issue_token" and (scope := request.scope) is not None:
        issued = store.issue(
            *(scope.principal, scope.points, now + limits.seconds, now, scope.approves, id_, scope.audience),
            single_use=scope.single_use,
        )
        return {"id": issued.id, "text": issued.text, "expires_at": time_text(now + limits.seconds)}
    if act == "approve_prefix" and (prefix := request.prefix) is not None:
        expires = now + limits.seconds
        new = PrefixRow(prefix.principal, prefix.cwd, prefix.tool, prefix.words, actor, now, expires, id_)
        return row_document(store.approve_prefix(new))
    if act == "stop" and (stop := request.stop) is not None:
        return row_document(store.add_stop(StopRow(stop.scope, stop.name, actor, now, id_, request.reason)))
    if act == "approve_release" and (release := request.release) is not None:
        return {"release": release.digest, "approver": actor, "approved_at": time_text(now)}
    if act == "leave_agreement":
        kind, command, row = "engine", "policy status", store.leave(id_, actor, request.reason, now)
    else:
        kind, command, take_away = _TAKING_AWAY[act]
        row = take_away(store, id_, now)
    if row is None:
        raise GatherError(f"there is no active {kind} `{id_}`", remedy=f"list the ids with `engine {command}`")
    return row_document(row)


_TAKING_AWAY: Mapping[str, tuple[str, str, Callable[[Store, str, int], Any]]] = {
    "revoke_token": ("token", "tokens list", lambda store, id_, now: store.revoke(id_, now)),
    "revoke_prefix": ("command prefix", "tools prefixes list", lambda store, id_, now: store.revoke_prefix(id_, now)),
    "lift_stop": ("stop", "stop list", lambda store, id_, now: store.lift_stop(id_, now)),
    "end_agent": ("agent", "agent list", lambda store, id_, now: store.end_agent(id_, now)),
}
"""The acts on something that exists: the command that lists it, and the change of the state."""

"""Acts of people on what the engine keeps: decided and recorded as a decision, then done under its permit.

The line of the decision is durable before the state changes, so no act takes effect without a record; the
line of the result says that it took effect.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from engine.canonical import RawJson
from engine.drive import Steps
from engine.errors import EngineError, GatherError
from engine.flow import Answer, Context, Parts, answer, as_json
from engine.model import Mode, Permit, Result
from engine.points.administration import AdministrationLimits, AdministrationRequest
from engine.points.registry import find
from engine.state.store import NewPrefix, Store
from engine.work import Job

POINT = "administration"


@dataclass(frozen=True, slots=True)
class Administered:
    """The decision on an act, and what it made or changed as JSON; None where it took no effect.

    `done` holds the text of a new token under `text`: it goes to the caller and nowhere else.
    """

    answer: Answer
    done: dict[str, Any] | None


def administer(asked: Any, parts: Parts, context: Context) -> Steps[Administered]:
    """Take one act; `asked` is an AdministrationRequest as JSON, or the error that kept it from being read."""
    done: list[dict[str, Any]] = []
    stated: RawJson | EngineError
    try:
        stated = as_json(asked)  # decided, recorded and done is this text, whatever becomes of `asked`
    except EngineError as error:
        stated = error

    def hand(permit: Permit, job: Job) -> Result:
        limits = permit.demand(POINT, job.input_digest, AdministrationLimits)
        request = AdministrationRequest.model_validate_json(as_json(stated).data)
        done.append(_act(parts.store(), limits, request, context.caller.principal or "", parts.world.clock()))
        return Result("done", {"act": limits.act, "id": limits.id})

    answered = yield from answer(find(POINT), stated, Mode.ENFORCE, parts, context, hand)
    return Administered(answered, done[0] if done else None)


def _act(
    store: Store, limits: AdministrationLimits, request: AdministrationRequest, actor: str, now: int
) -> dict[str, Any]:
    """Change the state by what the limits permit. Raises StateError, GatherError."""
    act, id_ = limits.act, limits.id
    if act in {"grant_approval", "refuse_approval"}:
        resolved: Literal["granted", "refused"] = "granted" if act == "grant_approval" else "refused"
        return asdict(store.resolve(id_, resolved, actor, request.reason, now))
    if act == "issue_token" and (scope := request.scope) is not None:
        issued = store.issue(scope.principal, scope.points, now + limits.seconds, now, scope.approves, id_)
        return {"id": issued.id, "text": issued.text, "expires_at": now + limits.seconds}
    if act == "approve_prefix" and (wanted := request.prefix) is not None:
        new = NewPrefix(wanted.principal, wanted.cwd, wanted.tool, wanted.words, actor, now, now + limits.seconds)
        return asdict(store.approve_prefix(new, id_))
    row = store.revoke(id_, now) if act == "revoke_token" else store.revoke_prefix(id_, now)
    if row is None:
        command = "tokens" if act == "revoke_token" else "tools prefixes"
        raise GatherError("there is nothing of this id to revoke", remedy=f"see `engine {command} list` for the ids")
    return asdict(row)

"""Administrative acts: each is decided and recorded, then performed under its permit.

The decision is durable before the state changes, so no act takes effect without a record; the
result line records that it took effect.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from engine.documents.canonical import RawJson
from engine.drive import Steps
from engine.errors import EngineError, GatherError
from engine.flow import Answer, Context, Services, answer, as_json
from engine.model import Mode, Permit, Result
from engine.points.administration import AdministrationLimits, AdministrationRequest
from engine.points.registry import find
from engine.state.rows import PrefixRow
from engine.work import Job

if TYPE_CHECKING:
    from engine.state.store import Store

POINT = "administration"


@dataclass(frozen=True, slots=True)
class Administered:
    """The decision on an act, and what it created or changed as JSON; None if it had no effect.

    `done` has the text of a new token under `text`; only the caller gets it.
    """

    answer: Answer
    done: dict[str, Any] | None


def administer(asked: Any, services: Services, context: Context) -> Steps[Administered]:
    """Decide and perform one act; `asked` is an AdministrationRequest as JSON, or the error from reading it."""
    done: list[dict[str, Any]] = []
    stated: RawJson | EngineError
    try:
        stated = as_json(asked)  # this text is decided, recorded and performed, even if `asked` changes later
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
        issued = store.issue(
            *(scope.principal, scope.points, now + limits.seconds, now, scope.approves, id_, scope.audience),
            single_use=scope.single_use,
        )
        return {"id": issued.id, "text": issued.text, "expires_at": now + limits.seconds}
    if act == "approve_prefix" and (wanted := request.prefix) is not None:
        expires = now + limits.seconds
        new = PrefixRow(wanted.principal, wanted.cwd, wanted.tool, wanted.words, actor, now, expires, id_)
        return asdict(store.approve_prefix(new))
    row = store.revoke(id_, now) if act == "revoke_token" else store.revoke_prefix(id_, now)
    if row is None:
        command = "tokens" if act == "revoke_token" else "tools prefixes"
        raise GatherError("nothing with this id can be revoked", remedy=f"list the ids with `engine {command} list`")
    return asdict(row)

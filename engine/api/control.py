"""Activates a changed policy, by the control socket only, and logs what is in force."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from engine.administration.users import user_of
from engine.api.administration import no_reason
from engine.api.answers import ActivatedPolicy, PolicyProblem
from engine.api.bodies import Reason
from engine.api.messages import Exchange, Response
from engine.api.oplog import Level, OperationalLog
from engine.api.problems import problem
from engine.documents.files import printable
from engine.errors import EngineError, PolicyError
from engine.flow import Context
from engine.model import Caller, Via
from engine.secrets.redaction import redact_text

if TYPE_CHECKING:
    from engine.api.app import App
    from engine.assembly import Activated
    from engine.engine import AsyncEngine


async def activate(api: App, exchange: Exchange) -> Response:
    """Activate the policy as it is in its folders now; 409 with every problem if it is refused."""
    try:
        activated = await _activate(api, exchange.context, lambda: _reason(exchange.body))
    except PolicyError as error:
        problems = tuple(
            PolicyProblem(where=str(one.where), message=redact_text(one.message), remedy=one.remedy)
            for one in error.problems
        )
        return problem(error, exchange, problems=problems)
    revisions, previous = activated.revisions, activated.previous
    document = ActivatedPolicy(
        rules=revisions.rules, values=revisions.values, previous=previous, removed_codes=activated.removed_codes
    )
    return Response.of(document)


def _reason(body: bytes) -> str | None:
    """The reason in the body `{"reason": "…"}`; no body gives none. Raises GatherError."""
    if not body:
        return None
    try:
        return Reason.model_validate_json(body).reason
    except ValidationError as error:
        raise no_reason() from error


async def reload(api: App, reason: str) -> None:
    """`activate` without an answer: on SIGHUP, or for a changed folder."""
    with suppress(EngineError):
        await _activate(api, Context(caller=Caller(via=Via.PROCESS, principal=user_of(os.getuid()))), lambda: reason)


async def _activate(api: App, by: Context, reason: Callable[[], str | None]) -> Activated:
    """Activate, and log how that ended."""
    try:
        activated = await api.engine.activate(by, reason())
    except EngineError as error:
        api.log.event("policy_refused", Level.WARNING, code=error.code, detail=error.one_line())
        raise
    revisions, removed_codes = activated.revisions, activated.removed_codes
    level = Level.WARNING if removed_codes else Level.INFO
    api.log.event(
        "policy_activated", level, rules=revisions.rules, values=revisions.values, removed_codes=removed_codes
    )
    log_lowered(api.log, api.engine)
    return activated


def log_lowered(log: OperationalLog, engine: AsyncEngine) -> None:
    """Log every refusal that the served policy has lowered, and every waiver, at its start and at each change."""
    policy = engine.policy
    if policy is None:
        return
    now = engine.now()
    for one in policy.lowered:
        fields = {"point": one.point, "code": one.code, "until": one.until}
        event, people = "refusal_lowered" if one.ended(now) is None else "level_ended", {"owner": printable(one.owner)}
        log.event(event, Level.WARNING, people, **fields, detail=printable(one.summary(now), 1_500))
    for waiver in policy.waivers:
        fields = {"point": waiver.point, "code": waiver.code, "waiver": waiver.id, "until": waiver.until}
        idle, people = policy.idle(waiver, now), {"owner": waiver.owner, "approver": waiver.approver}
        event = "waiver_applies" if idle is None else "waiver_does_nothing"
        people = {name: printable(text) for name, text in people.items()}
        log.event(event, Level.WARNING, people, **fields, detail=printable(waiver.summary(idle), 1_500))

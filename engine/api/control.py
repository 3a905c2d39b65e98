"""What only the control socket takes: activating a changed policy; and what is told of the one in force."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from pydantic import ValidationError

from engine.api.decide import context_of
from engine.api.messages import Response
from engine.api.oplog import Level
from engine.api.problems import problem
from engine.errors import EngineError, GatherError, PolicyError
from engine.files import shown
from engine.flow import Context
from engine.model import Caller, Model, Via
from engine.points.administration import Reason as ReasonText
from engine.record.redaction import redact_text
from engine.users import user_of

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange
    from engine.engine import Activated


class Reason(Model):
    """Why the policy is changed."""

    reason: ReasonText | None = None


async def activate(api: Api, exchange: Exchange) -> Response:
    """Switch to the policy as it stands in its folders now; 409 with every problem when it is refused."""
    try:
        activated = await api.engine.activate(context_of(exchange), _reason(exchange.body))
    except PolicyError as error:
        api.log.event("policy_refused", Level.WARNING, code=error.code, detail=error.one_line())
        problems = [
            {"where": str(one.where), "message": redact_text(one.message), "remedy": one.remedy}
            for one in error.problems
        ]
        return problem(error, exchange, problems=problems)
    except EngineError as error:
        api.log.event("policy_refused", Level.WARNING, code=error.code, detail=error.one_line())
        raise
    _tell(api, activated)
    document = activated.revisions.model_dump(mode="json")
    document |= {"previous": activated.previous.model_dump(mode="json"), "gone": activated.gone}
    return Response(200, json.dumps(document).encode("ascii"))


def _reason(body: bytes) -> str | None:
    """The reason in the body `{"reason": "…"}`; no body gives none. Raises GatherError."""
    if not body:
        return None
    try:
        return Reason.model_validate_json(body).reason
    except ValidationError as error:
        raise GatherError(
            "the body is not an object with a reason", remedy='send {"reason": "…"}', code="engine.request_invalid"
        ) from error


async def reload(api: Api, reason: str) -> None:
    """`activate` without anybody who waits for the answer: SIGHUP, or a changed folder."""
    by = Context(caller=Caller(via=Via.PROCESS, principal=user_of(os.getuid())))
    try:
        activated = await api.engine.activate(by, reason)
    except EngineError as error:
        api.log.event("policy_refused", Level.WARNING, code=error.code, detail=error.one_line())
    else:
        _tell(api, activated)


def _tell(api: Api, activated: Activated) -> None:
    revisions, gone = activated.revisions, activated.gone
    level = Level.WARNING if gone else Level.INFO
    api.log.event("policy_activated", level, rules=revisions.rules, values=revisions.values, gone=gone)
    tell_lowered(api)


def tell_lowered(api: Api) -> None:
    """Every refusal that the policy being served has lowered, at its start and at each change."""
    for one in () if api.engine.policy is None else api.engine.policy.lowered:
        fields = {"point": one.point, "code": one.code, "owner": one.owner, "until": one.until}
        api.log.event("refusal_lowered", Level.WARNING, **fields, detail=shown(str(one), 1_500))

"""What only the control socket takes: activating a changed policy; and what is told of the one in force."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.api.messages import Response
from engine.api.oplog import Level
from engine.api.problems import problem
from engine.errors import EngineError, PolicyError
from engine.files import shown
from engine.record.redaction import redact_text

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange
    from engine.engine import Activated


async def activate(api: Api, exchange: Exchange) -> Response:
    """Switch to the policy as it stands in its folders now; 409 with every problem when it is refused."""
    try:
        activated = await api.engine.activate()
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


async def reload(api: Api) -> None:
    """`activate` without anybody who waits for the answer: SIGHUP, or a changed folder."""
    try:
        activated = await api.engine.activate()
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

"""Administrative acts over HTTP: approvals by a token that may approve, all acts by the control socket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.api.answers import AdministrationAnswer
from engine.api.decide import request_of
from engine.api.messages import Exchange, Response
from engine.api.problems import decided
from engine.documents.canonical import RawJson
from engine.errors import GatherError

if TYPE_CHECKING:
    from engine.api.app import App


async def act(api: App, exchange: Exchange) -> Response:
    """One act as the body states it."""
    return await _respond(api, exchange, await request_of(api, exchange))


async def resolve(api: App, exchange: Exchange) -> Response:
    """Grant or refuse the approval of the path; the body is `{"reason": "…"}`, or `{}`."""
    id_, verb = exchange.head.path.split("/")[-2:]
    request: Any = await request_of(api, exchange)
    if isinstance(request, RawJson):
        stated = json.loads(request.data)
        if isinstance(stated, dict) and stated.keys() <= {"reason"}:
            request = {"act": f"{verb}_approval", "id": id_, **stated}
        else:
            request = no_reason()
    return await _respond(api, exchange, request)


def no_reason() -> GatherError:
    """The refusal of a body that is no `{"reason": "…"}`."""
    return GatherError(
        "the body is not an object with a reason", remedy='send {"reason": "…"}', code="engine.request_invalid"
    )


async def _respond(api: App, exchange: Exchange, request: Any) -> Response:
    """The decision, and under `done` what the act made or changed; a deny is an answer (200)."""
    async with api.load.turn(exchange.account):
        administered = await api.engine.administer(request, exchange.context)
    answer = administered.answer
    return decided(answer, exchange, AdministrationAnswer(decision=answer.decision, done=administered.done))

"""`POST /v1/decide/{point}`: one decision. A deny is an answer (200); a problem is a broken request or engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.api.body import read_json
from engine.api.messages import Response
from engine.api.problems import problem
from engine.canonical import RawJson
from engine.errors import EngineError
from engine.flow import Context
from engine.model import Mode

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange
    from engine.flow import Answer


async def decide(api: Api, exchange: Exchange) -> Response:
    """Decide one request, whatever it is: what cannot be read is a recorded deny too."""
    point = exchange.operation.point or ""
    mode = mode_of(exchange)
    if exchange.refusal is not None and not exchange.identified:
        return respond(await api.refuse(exchange, point, exchange.refusal), exchange)
    await api.load.enter(exchange.account)
    try:
        answer = await _ask(api, exchange, point, mode)
    finally:
        api.load.leave(exchange.account)
    return respond(answer, exchange)


def respond(answer: Answer, exchange: Exchange) -> Response:
    """The decision as it is, or the problem that stands behind it."""
    decision = answer.decision
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision)
    return Response(
        200,
        decision.model_dump_json().encode("utf-8"),
        outcome=decision.outcome.value,
        codes=tuple(finding.code for finding in decision.findings),
        decision_id=decision.decision_id,
    )


async def _ask(api: Api, exchange: Exchange, point: str, mode: Mode | EngineError) -> Answer:
    engine, context = api.engine, context_of(exchange)
    if isinstance(mode, EngineError):
        exchange.refuse(mode)
        mode = Mode.ENFORCE
    request: Any = exchange.refusal
    if request is None and exchange.upload is not None:
        try:
            await exchange.upload.write()
            return await engine.decide_upload(exchange.upload.path, context, mode)
        except EngineError as error:
            request = error
    if request is None:
        request = await asked_of(api, exchange)
    if mode is Mode.CHECK:
        return await engine.check(point, request, context)
    return await engine.decide(point, request, context=context)


async def asked_of(api: Api, exchange: Exchange) -> RawJson | EngineError:
    """What the body asks, or why that cannot be read."""
    if exchange.refusal is not None:
        return exchange.refusal
    try:
        return await read_json(exchange.body, api.limits)
    except EngineError as error:
        return error


def context_of(exchange: Exchange) -> Context:
    """What belongs to the request besides its body."""
    return Context(
        caller=exchange.caller,
        run=exchange.run,
        approval=exchange.approval,
        idempotency_key=exchange.idempotency_key,
        request_id=exchange.request_id,
        trace=exchange.trace.trace_id,
    )


def mode_of(exchange: Exchange) -> Mode | EngineError:
    """The mode of the query; `enforce` where none is given."""
    query = exchange.head.query
    if not query or query == "mode=enforce":
        return Mode.ENFORCE
    if query == "mode=check":
        return Mode.CHECK
    from engine.api.app import QueryError

    return QueryError("mode", "is neither `check` nor `enforce`")

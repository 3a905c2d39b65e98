"""`POST /v1/decide/{point}/batch`, in the shape of EOPA's batch API: many requests of one point, one question to OPA.

200 when all were decided (also when none was asked), 500 when the engine could decide none, else 207 with a
status for each item. An item that was not decided has the problem in place of the decision, with the deny that
was recorded for it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.api.body import InvalidBodyError, parse_json, within
from engine.api.decide import context_of, mode_of, respond
from engine.api.headers import HeaderError
from engine.api.messages import Response
from engine.api.problems import fields_of, problem, status_of
from engine.canonical import canonical
from engine.errors import EngineError
from engine.model import Mode
from engine.record.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.api.app import Api
    from engine.api.limits import ApiLimits
    from engine.api.messages import Exchange
    from engine.flow import Answer, Context

_KEYS = {"inputs", "common_input"}
_ID_CHARACTERS = 256
_KEY_CHARACTERS = 255
_OK, _MIXED, _OUR_FAULT = 200, 207, 500
_AT_ONCE = 32
"""Items with an idempotency key of their own that are decided side by side."""


async def decide_batch(api: Api, exchange: Exchange) -> Response:
    """Decide every request of a batch. A batch that cannot be read at all is one recorded deny."""
    point = exchange.operation.point or ""
    if exchange.refusal is not None and not exchange.identified:
        return respond(await api.refuse(exchange, point, exchange.refusal), exchange)
    await api.batches.enter(exchange.account)
    try:
        mode = mode_of(exchange)
        refusal = exchange.refusal or (mode if isinstance(mode, EngineError) else None)
        context = context_of(exchange)
        try:
            body = exchange.body
            requests = {} if refusal is not None else await within(body, lambda: _requests(body, api))
            keys = item_keys(context.idempotency_key, requests)
        except EngineError as error:
            refusal, requests, keys = error, {}, []
        if refusal is not None or isinstance(mode, EngineError):
            answer = await api.engine.decide(point, refusal, context=context)
            return problem(answer.fault or refusal or EngineError("refused", remedy=""), exchange, answer.decision)
        answers = await _decide(api, point, requests, context, keys, mode)
    finally:
        api.batches.leave(exchange.account)
    return _respond(exchange, dict(zip(requests, answers, strict=True)))


def item_keys(key: str | None, ids: Iterable[str | int]) -> list[str]:
    """The idempotency key of each item of a request that has one; none without. Raises HeaderError."""
    if key is None:
        return []
    keys = [f"{key}/{id_}" for id_ in ids]
    if any(len(one) > _KEY_CHARACTERS for one in keys):
        raise HeaderError(
            "idempotency-key",
            "is too long together with the id of an item",
            remedy=f"send a key that is at most {_KEY_CHARACTERS} characters with `/` and the id",
        )
    return keys


async def decide_each(
    api: Api, point: str, requests: Iterable[Any], context: Context, keys: Iterable[str]
) -> list[Answer]:
    """Decide each request under its own idempotency key."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(request: Any, key: str) -> Answer:
        async with turns:
            return await api.engine.decide(point, request, context=replace(context, idempotency_key=key))

    return await asyncio.gather(*(one(request, key) for request, key in zip(requests, keys, strict=True)))


async def _decide(
    api: Api, point: str, requests: Mapping[str, Any], context: Context, keys: list[str], mode: Mode
) -> list[Answer]:
    if not requests:
        return []
    if keys and mode is Mode.ENFORCE:
        return await decide_each(api, point, requests.values(), context, keys)
    return await api.engine.decide_many(point, list(requests.values()), context, mode)


def _requests(body: bytes, api: Api) -> dict[str, Any]:
    """The requests by id, each with the common input below it."""
    value = parse_json(body, api.limits, batch=True)
    if not isinstance(value, dict) or not isinstance(value.get("inputs"), dict):
        raise BatchError("inputs", "must be an object of requests by id")
    if unknown := sorted(value.keys() - _KEYS):
        raise BatchError(unknown[0][:40], "is unknown")
    inputs, common = value["inputs"], value.get("common_input", {})
    if not isinstance(common, dict):
        raise BatchError("common_input", "must be an object")
    if len(inputs) > api.limits.batch_items:
        raise BatchError("inputs", f"has {len(inputs)} requests, and a batch takes at most {api.limits.batch_items}")
    if any(len(key) > _ID_CHARACTERS for key in inputs):
        raise BatchError("inputs", f"has an id longer than {_ID_CHARACTERS} characters")
    if shared_too_much(common, len(inputs), api.limits):
        raise BatchError("common_input", "is too large for so many requests")
    return {key: _merged(common, item) for key, item in inputs.items()}


def shared_too_much(shared: dict[str, Any], times: int, limits: ApiLimits) -> bool:
    """Whether what all items of a batch share is more than a batch may be once each item has it."""
    return len(canonical(shared)) * times > limits.batch_bytes


def _merged(common: Any, item: Any) -> Any:
    """`item` with what it lacks from `common`, object by object; where both speak, the item wins."""
    if not isinstance(common, dict) or not isinstance(item, dict) or not common:
        return item
    below = {key: _merged(common[key], value) if key in common else value for key, value in item.items()}
    return {**common, **below}


def _respond(exchange: Exchange, answers: dict[str, Answer]) -> Response:
    statuses = [_OK if answer.fault is None else status_of(answer.fault)[0] for answer in answers.values()]
    failed = any(one != _OK for one in statuses)
    status = _OUR_FAULT if failed and min(statuses) >= _OUR_FAULT else _MIXED if failed else _OK
    parts = [f"{json.dumps(key)}:{_item(answer, exchange, mixed=status == _MIXED)}" for key, answer in answers.items()]
    text = f'{{"batch_decision_id":{json.dumps(redact_text(exchange.request_id))},"responses":{{{",".join(parts)}}}}}'
    codes = tuple(sorted({finding.code for answer in answers.values() for finding in answer.decision.findings}))
    return Response(status, text.encode("utf-8"), outcome="batch", codes=codes)


def _item(answer: Answer, exchange: Exchange, *, mixed: bool) -> str:
    decision = answer.decision.model_dump_json()
    fault = answer.fault
    if fault is None:
        return f'{decision[:-1]},"http_status_code":"200"}}' if mixed else decision
    document = json.loads(problem(fault, exchange, answer.decision).body)
    item = {"code": fault.code, "message": document["detail"], "remedy": document["remedy"]}
    item |= {"errors": fields_of(fault)} if fields_of(fault) else {}
    item |= {"decision": document["decision"]}
    item |= {"http_status_code": str(status_of(fault)[0])} if mixed else {}
    return json.dumps(item, ensure_ascii=False)


class BatchError(InvalidBodyError):
    """A body that is not a valid batch."""

    code = "engine.batch_invalid"

    def __init__(self, field: str, what: str) -> None:
        super().__init__(
            f"the batch field `{field}` {what}",
            remedy='send {"inputs": {"id": request}, "common_input": {}}',
            fields=((field, what),),
        )

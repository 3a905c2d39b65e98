"""`POST /v1/decide/{point}`: one decision. A deny returns 200, an invalid request or engine failure a problem.

`…/batch` has the shape of EOPA's batch API: many requests of one point, one question to OPA. 200 when all were
decided, 500 when the engine could decide none, else 207 with a status for each item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.api.answers import BatchAnswer, DecidedItem, FailedItem
from engine.api.body import InvalidBodyError, parse_json, read_json, within
from engine.api.headers import HeaderError
from engine.api.limits import ApiLimits
from engine.api.messages import Exchange, Response
from engine.api.problems import decided, describe, status_of
from engine.documents.canonical import RawJson, canonical
from engine.errors import EngineError
from engine.flow import Answer, Context
from engine.model import Mode
from engine.secrets.redaction import redact_text

if TYPE_CHECKING:
    from engine.api.app import App


async def decide(api: App, exchange: Exchange) -> Response:
    """Decide one request; an unreadable one becomes a recorded deny too."""
    async with api.load.turn(exchange.account):
        return decided(await _ask(api, exchange, exchange.operation.point or ""), exchange)


async def _ask(api: App, exchange: Exchange, point: str) -> Answer:
    engine, context = api.engine, exchange.context
    request: Any = exchange.refusal
    if request is None and exchange.upload is not None:
        try:
            await exchange.upload.write()
            return await engine.decide_upload(exchange.upload.path, context, exchange.mode)
        except EngineError as error:
            request = error
    if request is None:
        request = await request_of(api, exchange)
    if exchange.mode is Mode.CHECK:
        return await engine.check(point, request, context)
    return await engine.decide(point, request, context=context)


async def request_of(api: App, exchange: Exchange) -> RawJson | EngineError:
    """The request in the body, or the error from reading it."""
    if exchange.refusal is not None:
        return exchange.refusal
    try:
        return await read_json(exchange.body, api.limits)
    except EngineError as error:
        return error


_KEYS = {"inputs", "common_input"}
_ID_CHARACTERS = 256
_KEY_CHARACTERS = 255
_OK, _MIXED, _OUR_FAULT = 200, 207, 500
_AT_ONCE = 32
"""Items with an idempotency key of their own that are decided side by side."""


async def decide_batch(api: App, exchange: Exchange) -> Response:
    """Decide every request of a batch. A batch that cannot be read at all is one recorded deny."""
    point = exchange.operation.point or ""
    async with api.batches.turn(exchange.account):
        body, context = exchange.body, exchange.context
        try:
            if exchange.refusal is not None:
                raise exchange.refusal
            requests = await within(body, lambda: _requests(body, api))
            keys = item_keys(context.idempotency_key, requests)
        except EngineError as error:
            return decided(await api.engine.decide(point, error, context=context), exchange)
        mode = exchange.mode
        own = keys if mode is Mode.ENFORCE else []
        answers = await decide_each(api, point, list(requests.values()), context, own, mode)
    return _respond_each(exchange, dict(zip(requests, answers, strict=True)))


def item_keys(key: str | None, ids: Iterable[str | int]) -> list[str]:
    """The idempotency key of each item of a request that has one; none without. Raises HeaderError."""
    if key is None:
        return []
    keys = [f"{key}/{id_}" for id_ in ids]
    if any(len(one) > _KEY_CHARACTERS for one in keys):
        raise HeaderError(
            "idempotency-key",
            "is too long when combined with the id of an item",
            remedy=f"use a key of at most {_KEY_CHARACTERS} characters, counting `/` and the id",
        )
    return keys


async def decide_each(
    api: App, point: str, requests: list[Any], context: Context, keys: list[str], mode: Mode = Mode.ENFORCE
) -> list[Answer]:
    """Decide each request under its own idempotency key; all at once without keys."""
    if not keys:
        return await api.engine.decide_many(point, requests, context, mode)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(request: Any, key: str) -> Answer:
        async with turns:
            return await api.engine.decide(point, request, context=replace(context, idempotency_key=key))

    return await asyncio.gather(*(one(request, key) for request, key in zip(requests, keys, strict=True)))


def _requests(body: bytes, api: App) -> dict[str, Any]:
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
    """`item` completed from `common`, object by object; the item wins."""
    if not isinstance(common, dict) or not isinstance(item, dict) or not common:
        return item
    below = {key: _merged(common[key], value) if key in common else value for key, value in item.items()}
    return {**common, **below}


def _respond_each(exchange: Exchange, answers: dict[str, Answer]) -> Response:
    statuses = [_OK if answer.fault is None else status_of(answer.fault)[0] for answer in answers.values()]
    failed = any(one != _OK for one in statuses)
    status = _OUR_FAULT if failed and min(statuses) >= _OUR_FAULT else _MIXED if failed else _OK
    responses = {key: _item(answer, exchange, mixed=status == _MIXED) for key, answer in answers.items()}
    document = BatchAnswer(batch_decision_id=redact_text(exchange.request_id), responses=responses)
    codes = tuple(sorted({finding.code for answer in answers.values() for finding in answer.decision.findings}))
    return Response(status, document.model_dump_json().encode("utf-8"), outcome="batch", codes=codes)


def _item(answer: Answer, exchange: Exchange, *, mixed: bool) -> DecidedItem | FailedItem:
    if answer.fault is None:
        return DecidedItem(**dict(answer.decision), http_status_code="200" if mixed else None)
    found = describe(answer.fault, exchange, answer.decision)
    return FailedItem(
        code=found.code,
        message=found.detail,
        remedy=found.remedy,
        errors=found.errors,
        decision=found.decision,
        http_status_code=str(found.status) if mixed else None,
    )


class BatchError(InvalidBodyError):
    """A body that is not a valid batch."""

    code = "engine.batch_invalid"

    def __init__(self, field: str, what: str) -> None:
        super().__init__(
            f"the batch field `{field}` {what}",
            remedy='send {"inputs": {"id": request}, "common_input": {}}; where it is too large, send several batches',
            fields=((field, what),),
        )

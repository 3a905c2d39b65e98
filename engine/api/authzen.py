"""OpenID AuthZEN Authorization API 1.0: the same decisions for callers that speak the standard.

`action.name` is the decision point; `resource.properties.request`, else `context.request`, is its request.
`subject` is who asks: where the engine knows that by itself, another subject is refused; where it does not
(a shared token, a caller on this machine), the subject is a claim that nothing is built on.
Fields that the standard does not name are ignored, as it demands. Confirm is a `false` with an access request.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.api.batch import decide_each, item_keys, shared_too_much
from engine.api.body import InvalidBodyError, parse_json, within
from engine.api.decide import context_of
from engine.api.messages import Response
from engine.api.problems import problem, status_of
from engine.errors import EngineError, GatherError
from engine.model import Outcome
from engine.record.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.api.app import Api
    from engine.api.messages import Exchange
    from engine.flow import Answer

_DEFAULTS = ("subject", "action", "resource", "context")
_EXECUTE_ALL = "execute_all"
_STOPS = {"deny_on_first_deny": False, "permit_on_first_permit": True}
"""The semantics that end a list, and the decision that ends it."""


async def evaluation(api: Api, exchange: Exchange) -> Response:
    """One access evaluation."""
    await api.load.enter(exchange.account)
    try:
        return await _alone(api, exchange, await _body(api, exchange))
    finally:
        api.load.leave(exchange.account)


async def evaluations(api: Api, exchange: Exchange) -> Response:
    """Many evaluations with one set of defaults, whole keys of which an evaluation replaces."""
    await api.batches.enter(exchange.account)
    try:
        return await _evaluations(api, exchange, await _body(api, exchange, batch=True))
    finally:
        api.batches.leave(exchange.account)


async def _evaluations(api: Api, exchange: Exchange, value: dict[str, Any]) -> Response:
    listed = value.get("evaluations")
    if listed is None or listed == []:
        return await _alone(api, exchange, value)
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise AuthZenError("evaluations", "must be a list of objects")
    if len(listed) > api.limits.batch_items:
        raise AuthZenError("evaluations", f"has {len(listed)} items, and at most {api.limits.batch_items} are taken")
    semantic = _semantic(value)
    defaults = {key: value[key] for key in _DEFAULTS if key in value}
    if shared_too_much(defaults, len(listed), api.limits):
        raise AuthZenError("evaluations", "repeat defaults that are too large together")
    asked = [_try_asked({**defaults, **item}, exchange) for item in listed]
    decided = await _decide_all(api, exchange, asked, semantic)
    return Response(200, json.dumps({"evaluations": decided}, ensure_ascii=False).encode("utf-8"), outcome="batch")


async def metadata(_api: Api, exchange: Exchange) -> Response:
    """Where the endpoints are, below the address that was asked."""
    host = exchange.head.headers.get(b"host", b"localhost").decode("latin-1")
    safe = "".join(character for character in host if character.isalnum() or character in ".:-[]")
    base = f"{'https' if exchange.peer.tls else 'http'}://{safe}"
    document = {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{base}/access/v1/evaluations",
    }
    return Response(200, json.dumps(document).encode("ascii"))


async def _alone(api: Api, exchange: Exchange, value: dict[str, Any]) -> Response:
    point, request = _asked(value, exchange)
    return _single(await api.engine.decide(point, request, context=context_of(exchange)), exchange)


async def _decide_all(
    api: Api, exchange: Exchange, asked: Sequence[tuple[str, Any] | EngineError], semantic: str
) -> list[dict[str, Any]]:
    context = context_of(exchange)
    keys = item_keys(context.idempotency_key, range(len(asked)))
    if semantic == _EXECUTE_ALL:
        points: dict[str, list[int]] = {}
        for index, one in enumerate(asked):
            if not isinstance(one, EngineError):
                points.setdefault(one[0], []).append(index)
        found: dict[int, dict[str, Any]] = {}
        for point, indexes in points.items():
            requests = [one[1] for one in (asked[index] for index in indexes) if not isinstance(one, EngineError)]
            if keys:
                answers = await decide_each(api, point, requests, context, [keys[index] for index in indexes])
            else:
                answers = await api.engine.decide_many(point, requests, context)
            found |= {index: _told(answer) for index, answer in zip(indexes, answers, strict=True)}
        return [_refused(one) if isinstance(one, EngineError) else found[index] for index, one in enumerate(asked)]
    told: list[dict[str, Any]] = []
    for index, one in enumerate(asked):
        if isinstance(one, EngineError):
            told.append(_refused(one))
        else:
            own = replace(context, idempotency_key=keys[index]) if keys else context
            told.append(_told(await api.engine.decide(one[0], one[1], context=own)))
        if told[-1]["decision"] is _STOPS[semantic]:
            break
    return told


async def _body(api: Api, exchange: Exchange, *, batch: bool = False) -> dict[str, Any]:
    body = exchange.body
    value = await within(body, lambda: parse_json(body, api.limits, batch=batch))
    if not isinstance(value, dict):
        raise AuthZenError("body", "must be an object")
    return value


def _semantic(value: Mapping[str, Any]) -> str:
    options = value.get("options", {})
    if not isinstance(options, dict):
        raise AuthZenError("options", "must be an object")
    semantic = options.get("evaluations_semantic", _EXECUTE_ALL)
    if semantic != _EXECUTE_ALL and (not isinstance(semantic, str) or semantic not in _STOPS):
        raise AuthZenError("options.evaluations_semantic", f"must be {_EXECUTE_ALL}, {' or '.join(_STOPS)}")
    return str(semantic)


def _try_asked(value: Mapping[str, Any], exchange: Exchange) -> tuple[str, Any] | EngineError:
    try:
        return _asked(value, exchange)
    except EngineError as error:
        return error


def _asked(value: Mapping[str, Any], exchange: Exchange) -> tuple[str, Any]:
    """The point and its request. Raises EngineError; who is not the subject is a recorded deny instead."""
    from engine.points.registry import POINTS

    subject = _entity(value, "subject", ("type", "id"))
    action = _entity(value, "action", ("name",))
    resource = _entity(value, "resource", ("type", "id"))
    context = value.get("context", {})
    if not isinstance(context, dict):
        raise AuthZenError("context", "must be an object")
    point = action["name"]
    if point not in POINTS:
        raise AuthZenError("action.name", "is no decision point")
    properties = resource.get("properties", {})
    if not isinstance(properties, dict):
        raise AuthZenError("resource.properties", "must be an object")
    request = properties.get("request", context.get("request"))
    if request is None:
        raise AuthZenError("resource.properties.request", "is missing")
    principal = exchange.caller.principal
    if principal is not None and principal not in {subject["id"], f"{subject['type']}:{subject['id']}"}:
        return point, GatherError(
            "the subject is not who asks",
            remedy="ask for the principal of your own credentials",
            code="engine.subject_mismatch",
        )
    return point, request


def _entity(value: Mapping[str, Any], name: str, strings: tuple[str, ...]) -> dict[str, Any]:
    entity = value.get(name)
    if not isinstance(entity, dict):
        raise AuthZenError(name, "must be an object")
    for key in strings:
        if not isinstance(entity.get(key), str) or not entity[key]:
            raise AuthZenError(f"{name}.{key}", "must be a text that is not empty")
    return entity


def _single(answer: Answer, exchange: Exchange) -> Response:
    decision = answer.decision
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision)
    codes = tuple(finding.code for finding in decision.findings)
    body = json.dumps(_told(answer), ensure_ascii=False).encode("utf-8")
    return Response(200, body, outcome=decision.outcome.value, codes=codes, decision_id=decision.decision_id)


def _told(answer: Answer) -> dict[str, Any]:
    """One decision in the words of the standard."""
    decision = answer.decision
    if answer.fault is not None:
        told = _refused(answer.fault)
        told["context"]["decision_id"] = decision.decision_id
        return told
    context: dict[str, Any] = {
        "decision_id": decision.decision_id,
        "outcome": decision.outcome.value,
        "reasons": [finding.code for finding in decision.findings],
        "findings": [finding.model_dump(mode="json") for finding in decision.findings],
    }
    if decision.policy is not None:
        context["policy"] = decision.policy.model_dump(mode="json")
    if decision.limits is not None:
        properties = decision.limits.model_dump(mode="json")
        context["obligations"] = [{"id": f"{decision.point}.limits", "type": "limits", "properties": properties}]
    if decision.outcome is Outcome.CONFIRM and decision.approval is not None:
        context["access_request"] = {"id": decision.approval.id, "expires_at": decision.approval.expires_at}
    return {"decision": decision.outcome is Outcome.ALLOW, "context": context}


def _refused(error: EngineError) -> dict[str, Any]:
    status, _ = status_of(error)
    what = {"status": status, "code": error.code, "message": redact_text(error.message)}
    return {"decision": False, "context": {"error": what, "reasons": [error.code]}}


class AuthZenError(InvalidBodyError):
    """A body that is not as AuthZEN 1.0 wants it."""

    code = "engine.authzen_invalid"

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"`{field}` {what}", remedy="see OpenID AuthZEN 1.0, section 6", fields=((field, what),))

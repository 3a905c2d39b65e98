"""OpenID AuthZEN Authorization API 1.0: the same decisions for callers that use the standard.

`action.name` is the decision point; `resource.properties.request`, else `context.request`, is its request. Other
actions ask what the policy maps them to, by the type of the resource (`authzen` in policy/operations.yaml).
`subject` is the caller. If the engine can identify the caller, another subject is refused; if it cannot
(a shared token, a caller on this machine), the subject is an unverified claim that is not used.
Unknown fields are ignored, as the standard requires. Confirm is a `false` with an access request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from engine.api.answers import EvaluationAnswer, EvaluationsAnswer
from engine.api.bodies import Evaluation, Evaluations
from engine.api.body import InvalidBodyError, parse_json, within
from engine.api.decide import decide_each, item_keys, shared_too_much
from engine.api.mapping import Rows, filled, rows_of
from engine.api.messages import Exchange, Response
from engine.api.problems import decided, status_of
from engine.errors import EngineError, GatherError
from engine.flow import Answer, Context
from engine.model import Model, Outcome
from engine.points.registry import POINTS
from engine.secrets.redaction import redact_text

if TYPE_CHECKING:
    from engine.api.app import App

_ModelT = TypeVar("_ModelT", bound=Model)

_DEFAULTS = ("subject", "action", "resource", "context")
_MUST = {
    "evaluations_semantic": "must be execute_all, deny_on_first_deny or permit_on_first_permit",
    **dict.fromkeys(("type", "id", "name"), "must be a non-empty string"),
}
"""What fields must be that need not be objects."""

_STOPS = {"deny_on_first_deny": False, "permit_on_first_permit": True}
"""The semantics that end a list, and the decision that ends it."""


async def evaluation(api: App, exchange: Exchange) -> Response:
    """One access evaluation."""
    async with api.load.turn(exchange.account):
        return await _alone(api, exchange, await _body(api, exchange))


async def evaluations(api: App, exchange: Exchange) -> Response:
    """Many evaluations with one set of defaults; an evaluation replaces whole keys of them."""
    async with api.batches.turn(exchange.account):
        return await _evaluations(api, exchange, await _body(api, exchange, batch=True))


async def _evaluations(api: App, exchange: Exchange, value: dict[str, Any]) -> Response:
    listed = value.get("evaluations")
    if listed is None or listed == []:
        return await _alone(api, exchange, value)
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise AuthZenError("evaluations", "must be a list of objects")
    if len(listed) > api.limits.batch_items:
        raise AuthZenError("evaluations", f"has {len(listed)} items, but at most {api.limits.batch_items} are accepted")
    semantic = _checked(Evaluations, {"options": value.get("options", {})}).options.evaluations_semantic
    defaults = {key: value[key] for key in _DEFAULTS if key in value}
    if shared_too_much(defaults, len(listed), api.limits):
        raise AuthZenError("evaluations", "have defaults that are too large for so many evaluations")
    actions = rows_of(api, "authzen")
    requests = [_try_requested({**defaults, **item}, exchange, actions) for item in listed]
    found = await _decide_all(api, exchange, requests, semantic)
    document = EvaluationsAnswer(evaluations=tuple(found))
    return Response(200, document.model_dump_json().encode("utf-8"), outcome="batch")


async def metadata(_api: App, exchange: Exchange) -> Response:
    """The URLs of the endpoints, below the requested address; a proxy may have taken off its TLS."""
    tls = exchange.peer.tls or exchange.head.headers.get(b"x-forwarded-proto") == b"https"
    host = exchange.head.headers.get(b"host", b"localhost").decode("latin-1")
    safe = "".join(character for character in host if character.isalnum() or character in ".:-[]")
    base = f"{'https' if tls else 'http'}://{safe}"
    document = {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{base}/access/v1/evaluations",
    }
    return Response.of(document)


async def _alone(api: App, exchange: Exchange, value: dict[str, Any]) -> Response:
    point, request = _requested(value, exchange, rows_of(api, "authzen"))
    answer = await api.engine.decide(point, request, context=exchange.context)
    return decided(answer, exchange, _evaluated(answer))


async def _decide_all(
    api: App, exchange: Exchange, requests: Sequence[tuple[str, Any]], semantic: str
) -> list[EvaluationAnswer]:
    context = exchange.context
    keys = item_keys(context.idempotency_key, range(len(requests)))
    if semantic in _STOPS:
        return await _decide_until(api, context, requests, keys, last=_STOPS[semantic])
    points: dict[str, list[int]] = {}
    for index, (point, _) in enumerate(requests):
        points.setdefault(point, []).append(index)
    found = {index: _refused(requests[index][1]) for index in points.pop("", ())}
    for point, indexes in points.items():
        own = [keys[index] for index in indexes] if keys else []
        answers = await decide_each(api, point, [requests[index][1] for index in indexes], context, own)
        found |= {index: _evaluated(answer) for index, answer in zip(indexes, answers, strict=True)}
    return [found[index] for index in range(len(requests))]


async def _decide_until(
    api: App, context: Context, requests: Sequence[tuple[str, Any]], keys: Sequence[str], *, last: bool
) -> list[EvaluationAnswer]:
    """Decide one after the other; the first with the decision `last` ends the list."""
    evaluated: list[EvaluationAnswer] = []
    for index, (point, request) in enumerate(requests):
        if point:
            own = replace(context, idempotency_key=keys[index]) if keys else context
            evaluated.append(_evaluated(await api.engine.decide(point, request, context=own)))
        else:
            evaluated.append(_refused(request))
        if evaluated[-1].decision is last:
            break
    return evaluated


async def _body(api: App, exchange: Exchange, *, batch: bool = False) -> dict[str, Any]:
    body = exchange.body
    value = await within(body, lambda: parse_json(body, api.limits, batch=batch))
    if not isinstance(value, dict):
        raise AuthZenError("body", "must be an object")
    return value


def _try_requested(value: Mapping[str, Any], exchange: Exchange, actions: Rows) -> tuple[str, Any]:
    """`_requested`, or no point and the error."""
    try:
        return _requested(value, exchange, actions)
    except EngineError as error:
        return "", error


def _requested(value: Mapping[str, Any], exchange: Exchange, actions: Rows) -> tuple[str, Any]:
    """The point and its request. Raises EngineError; another caller than the subject is a recorded deny instead."""
    evaluation = _checked(Evaluation, value)
    subject = evaluation.subject
    if not isinstance(evaluation.resource.properties, dict):
        raise AuthZenError("resource.properties", "must be an object")
    point, request = _stated(evaluation) if evaluation.action.name in POINTS else _mapped(evaluation, actions)
    principal = exchange.caller.principal
    if principal is not None and principal not in {subject.id, f"{subject.type}:{subject.id}"}:
        return point, GatherError(
            "the subject is not the caller",
            remedy="use the principal of your own credentials",
            code="engine.subject_mismatch",
        )
    return point, request


def _stated(evaluation: Evaluation) -> tuple[str, Any]:
    """The point that the action names, and its request. Raises AuthZenError."""
    request = evaluation.resource.properties.get("request", evaluation.context.get("request"))
    if request is None:
        raise AuthZenError("resource.properties.request", "is missing")
    return evaluation.action.name, request


def _mapped(evaluation: Evaluation, actions: Rows) -> tuple[str, Any]:
    """The point and request to which the policy maps this action. Raises AuthZenError."""
    for row in actions:
        if row["resource"] == evaluation.resource.type and evaluation.action.name in row["actions"]:
            return row["point"], filled(row["request"], evaluation.model_dump())
    raise AuthZenError("action.name", "is not a decision point, and policy/operations.yaml has no row for it")


def _checked(model: type[_ModelT], value: Any) -> _ModelT:
    """The value as a model. Raises AuthZenError for its first field that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        field = [str(name) for name in error.errors(include_input=False, include_url=False)[0]["loc"]]
        raise AuthZenError(".".join(field), _MUST.get(field[-1], "must be an object")) from error


def _evaluated(answer: Answer) -> EvaluationAnswer:
    """One decision in the form of the standard."""
    decision = answer.decision
    if answer.fault is not None:
        return _refused(answer.fault, decision_id=decision.decision_id)
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
    return EvaluationAnswer(decision=decision.outcome is Outcome.ALLOW, context=context)


def _refused(error: EngineError, **more: str) -> EvaluationAnswer:
    status, _ = status_of(error)
    what = {"status": status, "code": error.code, "message": redact_text(error.message)}
    return EvaluationAnswer(decision=False, context={"error": what, "reasons": [error.code], **more})


class AuthZenError(InvalidBodyError):
    """A body that is not valid AuthZEN 1.0."""

    code = "engine.authzen_invalid"

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"`{field}` {what}", remedy="see OpenID AuthZEN 1.0, section 6", fields=((field, what),))

"""RFC 9457 problems: one table from a code to its status and title."""

from __future__ import annotations

import json
from typing import Any

from engine.api.messages import PROBLEM, Exchange, Response
from engine.errors import EngineError, Exit
from engine.model import Decision
from engine.record.redaction import redact_text

TYPE = "urn:admission-engine:problem:"

_BROKEN_REQUEST = "The request cannot be read"
_BROKEN_ENGINE = "The engine cannot decide"
_BUSY = "The engine is busy"

PROBLEMS: dict[str, tuple[int, str]] = {
    "engine.request_invalid": (422, "The request does not fit"),
    "engine.input_unreadable": (400, _BROKEN_REQUEST),
    "engine.json_invalid": (400, _BROKEN_REQUEST),
    "engine.header_invalid": (400, _BROKEN_REQUEST),
    "engine.query_invalid": (400, _BROKEN_REQUEST),
    "engine.batch_invalid": (400, _BROKEN_REQUEST),
    "engine.authzen_invalid": (400, _BROKEN_REQUEST),
    "engine.http_invalid": (400, _BROKEN_REQUEST),
    "engine.body_timeout": (408, "The request took too long"),
    "engine.head_timeout": (408, "The request took too long"),
    "engine.body_too_large": (413, "The request is too large"),
    "engine.media_type": (415, "This kind of body is not taken"),
    "engine.head_too_large": (431, "The headers are too large"),
    "engine.not_found": (404, "There is nothing here"),
    "engine.method_not_allowed": (405, "This method is not taken"),
    "engine.id_taken": (409, "The id is taken"),
    "engine.approval_closed": (409, "The approval is closed"),
    "engine.approval_unknown": (404, "There is no such approval"),
    "engine.point_unknown": (404, "There is no such decision point"),
    "engine.host_unknown": (421, "This host is not served here"),
    "engine.origin_foreign": (403, "Requests of other sites are refused"),
    "engine.forwarded": (403, "Forwarded requests need a token"),
    "engine.subject_mismatch": (403, "The subject is not who asks"),
    "engine.control_only": (403, "Only the control socket takes this"),
    "unauthorized": (401, "Credentials are missing or wrong"),
    "engine.too_many_failures": (429, "Too many wrong credentials"),
    "engine.idempotency_conflict": (422, "The idempotency key was used for another request"),
    "engine.idempotency_stale": (409, "The policy has changed since the first request with this key"),
    "engine.idempotency_pending": (409, "The first request with this key is still under way"),
    "engine.run_pending": (409, "A run with this id is under way"),
    "engine.run_unknown": (404, "There is no such run"),
    "engine.artifacts_unavailable": (503, _BROKEN_ENGINE),
    "engine.policy_invalid": (409, "The policy was refused"),
    "engine.policy_rejected": (409, "The policy was refused"),
    "engine.overloaded": (503, _BUSY),
    "engine.stopping": (503, "The engine is stopping"),
    "engine.upload_unavailable": (503, _BUSY),
    "policy_unavailable": (503, _BROKEN_ENGINE),
    "policy_stale": (503, _BROKEN_ENGINE),
    "engine.record_unavailable": (503, _BROKEN_ENGINE),
    "engine.record_locked": (503, _BROKEN_ENGINE),
    "engine.record_broken": (503, _BROKEN_ENGINE),
    "engine.record_rolled_back": (503, _BROKEN_ENGINE),
    "engine.state_unavailable": (503, _BROKEN_ENGINE),
    "engine.opa_error": (500, _BROKEN_ENGINE),
    "engine.answer_malformed": (500, _BROKEN_ENGINE),
    "engine.decision_undefined": (500, _BROKEN_ENGINE),
    "engine.limit_unenforceable": (500, _BROKEN_ENGINE),
    "engine.internal": (500, _BROKEN_ENGINE),
}

_RETRY = (b"retry-after", b"1")
_HEADERS: dict[int, tuple[tuple[bytes, bytes], ...]] = {
    401: ((b"www-authenticate", b'Bearer realm="admission-engine"'),),
    429: (_RETRY,),
    503: (_RETRY,),
}


def status_of(error: EngineError) -> tuple[int, str]:
    """Status and title of an error; a code that the table lacks goes by what kind of error it is."""
    known = PROBLEMS.get(error.code)
    if known is not None:
        return known
    return (400, _BROKEN_REQUEST) if error.exit is Exit.UNREADABLE else (500, _BROKEN_ENGINE)


def problem(
    error: EngineError,
    exchange: Exchange | None,
    decision: Decision | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    **more: Any,
) -> Response:
    """The answer for an error; `decision` is the deny that was recorded for it, null where none was asked."""
    status, title = status_of(error)
    document: dict[str, Any] = {
        "type": TYPE + error.code,
        "title": title,
        "status": status,
        "detail": redact_text(error.message),
        "code": error.code,
        "remedy": redact_text(error.remedy),
        "instance": None if exchange is None else f"urn:request:{redact_text(exchange.request_id)}",
        "decision": None if decision is None else _without_secrets(decision),
    }
    if fields := fields_of(error):
        document["errors"] = fields
    document |= more
    return Response(
        status,
        json.dumps(document, ensure_ascii=False).encode("utf-8"),
        PROBLEM,
        _HEADERS.get(status, ()) + headers,
        outcome=None if decision is None else decision.outcome.value,
        codes=(error.code,),
        decision_id=None if decision is None else decision.decision_id,
    )


def bare_problem(status: int, code: str, message: str) -> Response:
    """The answer to what never became a request."""
    document = {"type": TYPE + code, "title": PROBLEMS[code][1], "status": status, "detail": message, "code": code}
    return Response(
        status,
        json.dumps({**document, "instance": None, "decision": None}).encode("ascii"),
        PROBLEM,
        _HEADERS.get(status, ()),
        codes=(code,),
    )


def _without_secrets(decision: Decision) -> dict[str, Any]:
    """A deny for a fault: its message may name what the caller sent, such as an unknown field."""
    document = decision.model_dump(mode="json")
    for finding in document["findings"]:
        finding["message"] = redact_text(finding["message"])
    return document


def fields_of(error: EngineError) -> list[dict[str, str]]:
    """Which fields an error is about, as far as it says so."""
    fields = getattr(error, "fields", None)
    if fields:
        return [{"field": redact_text(str(name)), "problem": redact_text(str(what))} for name, what in fields]
    if error.where is not None and error.where.field is not None:
        return [{"field": redact_text(error.where.field), "problem": redact_text(error.message)}]
    return []

"""RFC 9457 problems: one table from a code to its status and title."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from engine.api.answers import FieldProblem, Problem
from engine.api.messages import PROBLEM, Exchange, Response
from engine.errors import EngineError, Exit
from engine.flow import Answer
from engine.model import Decision, Model
from engine.secrets.redaction import redact_text

TYPE = "urn:admission-engine:problem:"

_BROKEN_REQUEST = "The request cannot be read"
_BROKEN_ENGINE = "The engine cannot decide"
_BUSY = "The engine is busy"
_NO_ANSWER = "The runner gave no answer"

PROBLEMS: dict[str, tuple[int, str]] = {
    "engine.request_invalid": (422, "The request is invalid"),
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
    "engine.media_type": (415, "The media type is not supported"),
    "engine.head_too_large": (431, "The headers are too large"),
    "engine.not_found": (404, "Nothing is served at this path"),
    "engine.method_not_allowed": (405, "The method is not supported"),
    "engine.fetch_disabled": (403, "This server fetches nothing"),
    "engine.build_disabled": (403, "This server builds nothing"),
    "engine.environment_exists": (409, "The environment exists already"),
    "engine.environment_not_built": (422, "The environment cannot be built of this material"),
    "engine.id_taken": (409, "The id is taken"),
    "engine.approval_closed": (409, "The approval is closed"),
    "engine.decision_unknown": (404, "There is no such decision"),
    "engine.request_ambiguous": (403, "The request repeats a header that decides what it asks"),
    "engine.request_unmapped": (403, "The policy has no row for this request"),
    "engine.not_permitted": (403, "The policy does not permit this"),
    "engine.approval_unknown": (404, "There is no such approval"),
    "engine.point_unknown": (404, "There is no such decision point"),
    "engine.host_unknown": (421, "This host is not served here"),
    "engine.origin_foreign": (403, "Requests of other sites are refused"),
    "engine.forwarded": (403, "Forwarded requests need a token"),
    "engine.subject_mismatch": (403, "The subject is not the caller"),
    "engine.control_only": (403, "Only the control socket takes this"),
    "unauthorized": (401, "Credentials are missing or wrong"),
    "engine.too_many_failures": (429, "Too many wrong credentials"),
    "engine.idempotency_conflict": (422, "The idempotency key was used for another request"),
    "engine.idempotency_stale": (409, "The policy has changed since the first request with this key"),
    "engine.idempotency_pending": (409, "The first request with this key is still in progress"),
    "engine.run_pending": (409, "A run with this id is in progress"),
    "engine.run_unknown": (404, "There is no such run"),
    "MaxAgentsExceededError": (409, "The maximum number of agents is active"),
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
    "engine.runner_credentials": (500, _BROKEN_ENGINE),
    "engine.runner_hung_up": (502, _NO_ANSWER),
    "engine.runner_tls": (502, _NO_ANSWER),
    "engine.runner_unauthorized": (502, _NO_ANSWER),
    "engine.runner_unreachable": (502, _NO_ANSWER),
    "engine.runner_answer": (502, _NO_ANSWER),
    "engine.runner_late": (504, _NO_ANSWER),
}

_RETRY = (b"retry-after", b"1")
_HEADERS: dict[int, tuple[tuple[bytes, bytes], ...]] = {
    401: ((b"www-authenticate", b'Bearer realm="admission-engine"'),),
    429: (_RETRY,),
    503: (_RETRY,),
}


def status_of(error: EngineError) -> tuple[int, str]:
    """Status and title of an error; a code that is not in the table goes by the kind of error."""
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
    """The answer for an error; `decision` is the deny that was recorded for it, null if none was requested."""
    return respond(describe(error, exchange, decision, **more), headers)


def describe(error: EngineError, exchange: Exchange | None, decision: Decision | None = None, **more: Any) -> Problem:
    """The document of that answer."""
    status, title = status_of(error)
    own = str if exchange is None else exchange.own_files
    return Problem(
        type=TYPE + error.code,
        title=title,
        status=status,
        detail=redact_text(own(error.without_folders())),
        code=error.code,
        remedy=redact_text(own(error.remedy)),
        instance=None if exchange is None else f"urn:request:{quote(redact_text(exchange.request_id), safe=':')}",
        decision=None if decision is None else _for_caller(decision, error, own),
        errors=fields_of(error) or None,
        **more,
    )


def decided(answer: Answer, exchange: Exchange, document: Model | None = None) -> Response:
    """The decision, alone or in this document; or the problem behind it."""
    decision = answer.decision
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision)
    return Response.of(decision if document is None else document, decision=decision)


def respond(document: Problem, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """The answer with this problem."""
    return Response.of(
        document,
        document.status,
        PROBLEM,
        decision=document.decision,
        codes=(document.code,),
        headers=_HEADERS.get(document.status, ()) + headers,
    )


def bare_problem(status: int, code: str, message: str) -> Response:
    """The answer to a request that could not be parsed."""
    title = PROBLEMS[code][1]
    return respond(
        Problem(type=TYPE + code, title=title, status=status, detail=message, code=code, instance=None, decision=None)
    )


def _for_caller(decision: Decision, error: EngineError, own: Callable[[str], str]) -> Decision:
    """A deny for a fault, whose message may name what the caller sent, such as an unknown field, or a file here."""
    shown = {error.one_line(): error.without_folders()}
    rules = {} if error.where is None else {str(error.where): str(error.where.without_folders)}
    findings = tuple(
        finding.model_copy(
            update={
                "requirement": redact_text(own(shown.get(finding.requirement, finding.requirement))),
                "subject": finding.subject and rules.get(finding.subject, finding.subject),
                "remedy": own(finding.remedy),
            }
        )
        for finding in decision.findings
    )
    return decision.model_copy(update={"findings": findings})


def fields_of(error: EngineError) -> tuple[FieldProblem, ...]:
    """The fields that an error names, if any."""
    fields = getattr(error, "fields", None)
    if not fields and error.where is not None and error.where.field is not None:
        fields = ((error.where.field, error.message),)
    return tuple(
        FieldProblem(field=redact_text(str(name)), problem=redact_text(str(what))) for name, what in fields or ()
    )


def not_permitted(decision: Decision, exchange: Exchange, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """403 with this deny or confirm, where the answer is something else than a decision."""
    error = EngineError(
        "the policy does not permit this", remedy="see the findings of the decision", code="engine.not_permitted"
    )
    return problem(error, exchange, decision, headers)

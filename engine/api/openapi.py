"""The OpenAPI 3.1 document, made from the models: what a point asks and answers is written in one place only."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from engine import __version__
from engine.api.limits import ApiLimits
from engine.api.uploads import ARCHIVES
from engine.code.request import CodeRunRequest
from engine.model import Decision
from engine.points import Point
from engine.points.registry import POINTS

_REF = "#/components/schemas/"
_TEXT = {"type": "string"}
_PROBLEM_STATUSES = {
    "400": "The request cannot be read",
    "401": "Credentials are missing or wrong",
    "403": "Not for this caller",
    "404": "There is nothing here",
    "408": "The request took too long",
    "409": "Not in this state",
    "413": "The body is too large",
    "415": "This kind of body is not taken",
    "421": "This host is not served here",
    "422": "The request does not fit the point",
    "429": "Too many wrong credentials",
    "431": "The headers are too large",
    "500": "The engine cannot decide; the deny is in the body",
    "503": "The engine cannot decide or is busy; the deny is in the body where one was asked",
}


def document() -> dict[str, Any]:
    """Paths, schemas and security schemes of everything that is served."""
    schemas = _schemas()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Admission engine: decision API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "May this happen, and within what limits? A deny is an answer (200); "
            "4xx and 5xx are broken requests and a broken engine, with the recorded deny in `decision`.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"runnerToken": []}, {"mutualTls": []}],
        "paths": {**_points(), **_run(), **_code(), **_authzen(), **_administration(), **_operations()},
        "components": {
            "schemas": schemas,
            "parameters": _parameters(),
            "headers": {
                "X-Request-ID": {"schema": _TEXT, "description": "The request's own id, or a new one"},
                "traceparent": {"schema": _TEXT, "description": "W3C trace context with the span of this answer"},
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "runnerToken": {"type": "apiKey", "in": "header", "name": "X-Agenta-Runner-Token"},
                "mutualTls": {"type": "mutualTLS"},
            },
        },
    }


def _schemas() -> dict[str, Any]:
    models = [(point.request, "validation") for point in POINTS.values()]
    models += [(point.limits, "serialization") for point in POINTS.values()]
    names, definitions = models_json_schema(
        [*models, (Decision, "serialization"), (CodeRunRequest, "validation")],  # type: ignore[list-item]
        ref_template=_REF + "{model}",
    )
    schemas: dict[str, Any] = dict(definitions["$defs"])
    generic = schemas["Decision"]
    for point in POINTS.values():
        schemas[_name(point, "Request")] = names[(point.request, "validation")]
        schemas[_name(point, "Decision")] = _decision(generic, point, names[(point.limits, "serialization")])
        schemas[_name(point, "Batch")] = _batch(point)
        schemas[_name(point, "BatchAnswer")] = _batch_answer(point)
    schemas["Problem"] = _problem()
    schemas["administration.Answer"] = {
        "type": "object",
        "description": "The decision on the act, and what it made or changed; null where it took no effect",
        "required": ["decision", "done"],
        "properties": {
            "decision": {"$ref": _REF + "administration.Decision"},
            "done": {"type": ["object", "null"]},
        },
    }
    schemas["run.Answer"] = {
        "type": "object",
        "description": "The runner's own answer; or why there is none, and the decision where that was the reason",
        "properties": {"ok": {"type": "boolean"}, "error": _TEXT, "replayed": {"const": True}},
    }
    return schemas | _code_schemas() | _authzen_schemas()


def _name(point: Point, what: str) -> str:
    return f"{point.name}.{what}"


def _decision(generic: dict[str, Any], point: Point, limits: dict[str, Any]) -> dict[str, Any]:
    """The decision of one point: what is generic, with the limits that this point has."""
    properties = dict(generic["properties"])
    properties["limits"] = {"anyOf": [limits, {"type": "null"}], "description": "There exactly when it is allowed"}
    properties["point"] = {"const": point.name}
    return {**generic, "title": _name(point, "Decision"), "properties": properties}


def _batch(point: Point) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["inputs"],
        "additionalProperties": False,
        "properties": {
            "inputs": {
                "type": "object",
                "maxProperties": ApiLimits().batch_items,
                "description": "Requests by an id of the caller's; with the common input each must be a whole request",
                "additionalProperties": {"type": "object"},
            },
            "common_input": {"type": "object", "description": "Merged below every request; the request wins"},
        },
        "title": _name(point, "Batch"),
    }


def _batch_answer(point: Point) -> dict[str, Any]:
    failed = {
        "type": "object",
        "required": ["code", "message", "decision"],
        "properties": {
            "code": _TEXT,
            "message": _TEXT,
            "remedy": _TEXT,
            "decision": {"$ref": _REF + _name(point, "Decision")},
        },
    }
    decided = {
        "type": "object",
        "required": ["decision_id", "point", "mode", "outcome", "findings", "limits", "policy", "input_digest"],
    }
    return {
        "type": "object",
        "required": ["batch_decision_id", "responses"],
        "properties": {
            "batch_decision_id": _TEXT,
            "responses": {"type": "object", "additionalProperties": {"anyOf": [decided, failed]}},
        },
        "title": _name(point, "BatchAnswer"),
    }


def _problem() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "RFC 9457 problem details",
        "required": ["type", "title", "status", "detail", "code", "decision"],
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
            "code": _TEXT,
            "remedy": _TEXT,
            "instance": {"type": ["string", "null"]},
            "decision": {
                "description": "The deny that was recorded; null where no decision was asked. False in AuthZEN",
                "anyOf": [{"$ref": _REF + "Decision"}, {"type": "null"}, {"const": False}],
            },
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["field", "problem"],
                    "properties": {"field": _TEXT, "problem": _TEXT},
                },
            },
        },
    }


def _parameters() -> dict[str, Any]:
    ident = {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"}
    return {
        "mode": {
            "name": "mode",
            "in": "query",
            "description": "`check` is a dry run: recorded as such, and no enforcement",
            "schema": {"enum": ["enforce", "check"], "default": "enforce"},
        },
        "request_id": {"name": "X-Request-ID", "in": "header", "schema": ident},
        "run_id": {"name": "X-Run-ID", "in": "header", "schema": ident},
        "approval": {
            "name": "X-Approval",
            "in": "header",
            "description": "The id of a granted approval for exactly this request",
            "schema": ident,
        },
        "idempotency_key": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same key with the same body gives the first decision again",
            "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
        },
    }


def _points() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for point in POINTS.values():
        content: dict[str, Any] = {"application/json": {"schema": {"$ref": _REF + _name(point, "Request")}}}
        if point.name == "source":
            content |= {kind.decode("ascii"): {"schema": {"type": "string", "format": "binary"}} for kind in ARCHIVES}
        paths[f"/v1/decide/{point.name}"] = {
            "post": _operation(
                f"decide_{point.name}",
                "points",
                f"Decide at point {point.name}",
                _answers(_name(point, "Decision")),
                content,
                ("mode", "request_id", "run_id", "approval", "idempotency_key"),
            )
        }
        answers = _answers(_name(point, "BatchAnswer"))
        some = {"application/json": {"schema": {"$ref": _REF + _name(point, "BatchAnswer")}}}
        answers["207"] = {"description": "Some items were not decided; each has its own status", "content": some}
        answers["500"] = {
            "description": "The engine could decide none",
            "content": {**some, **answers["500"]["content"]},
        }
        paths[f"/v1/decide/{point.name}/batch"] = {
            "post": _operation(
                f"decide_{point.name}_batch",
                "points",
                f"Decide up to {ApiLimits().batch_items} requests at point {point.name}",
                answers,
                {"application/json": {"schema": {"$ref": _REF + _name(point, "Batch")}}},
                ("mode", "request_id", "run_id"),
            )
        }
        paths[f"/v1/schemas/{point.name}"] = {
            "get": _operation(
                f"schema_{point.name}",
                "points",
                f"JSON Schema of the requests of point {point.name}",
                _answers(None, "application/schema+json"),
            )
        }
    return paths


def _operation(
    name: str,
    tag: str,
    summary: str,
    answers: dict[str, Any],
    content: dict[str, Any] | None = None,
    parameters: tuple[str, ...] = ("request_id",),
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "parameters": [{"$ref": f"#/components/parameters/{one}"} for one in parameters],
        "responses": answers,
    }
    if content is not None:
        found["requestBody"] = {"required": True, "content": content}
    return found


def _answers(schema: str | None, media_type: str = "application/json") -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-ID", "traceparent")}
    good = {"schema": {"type": "object"} if schema is None else {"$ref": _REF + schema}}
    answers: dict[str, Any] = {
        "200": {"description": "The answer", "headers": headers, "content": {media_type: good}},
    }
    for status, words in _PROBLEM_STATUSES.items():
        content = {"application/problem+json": {"schema": {"$ref": _REF + "Problem"}}}
        answers[status] = {"description": words, "headers": headers, "content": content}
    return answers


def _administration() -> dict[str, Any]:
    def operation(name: str, summary: str, body: dict[str, Any]) -> dict[str, Any]:
        content = {"application/json": {"schema": body}}
        return _operation(name, "administration", summary, _answers("administration.Answer"), content)

    whole = {"$ref": _REF + "administration.Request"}
    paths = {"/v1/administration": {"post": operation("administer", "Take an administrative act", whole)}}
    id_ = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"}}
    reason = {"reason": {"type": ["string", "null"], "minLength": 1, "maxLength": 1_000}}
    for verb in ("grant", "refuse"):
        body = {"type": "object", "additionalProperties": False, "properties": reason}
        made = operation(f"approval_{verb}", f"{verb.capitalize()} a request for approval", body)
        made["parameters"] = [id_, *made["parameters"]]
        paths[f"/v1/approvals/{{id}}/{verb}"] = {"post": made}
    return paths


def _operations() -> dict[str, Any]:
    text = _answers(None)
    text["200"]["content"] = {"text/plain": {"schema": _TEXT}}
    ready = _answers(None)
    ready["503"]["content"] = {"application/json": {"schema": {"type": "object"}}}
    revisions = _answers("Revisions")
    page, own = _answers(None), _answers(None)
    page["200"]["content"] = {"text/html": {"schema": _TEXT}}
    return {
        "/openapi.json": {"get": _operation("openapi", "operations", "This document", own)},
        "/docs": {"get": _operation("docs", "operations", "This document for people", page)},
        "/health": {"get": _operation("health", "operations", "Whether the process lives", _answers(None))},
        "/ready": {"get": _operation("ready", "operations", "Whether it can allow anything", ready)},
        "/metrics": {"get": _operation("metrics", "operations", "Prometheus metrics", text)},
        "/v1/policy/activate": {
            "post": _operation("activate", "operations", "Switch to the changed policy; control socket only", revisions)
        },
    }


def _run() -> dict[str, Any]:
    answers = _answers("run.Answer")
    for status, words in {"502": "The runner gave no answer", "504": "The runner took too long"}.items():
        answers[status] = {"description": words, "content": answers["200"]["content"]}
    for status in ("500", "503"):
        answers[status]["content"] = answers[status]["content"] | answers["200"]["content"]
    content = {"application/json": {"schema": {"$ref": _REF + "runner_request.Request"}}}
    parameters = ("request_id", "run_id", "approval", "idempotency_key")
    summary = "Decide a run and, on an allow, take it to its runner; the answer is the runner's"
    return {"/run": {"post": _operation("run", "runner", summary, answers, content, parameters)}}


def _code() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": _REF + "CodeRunRequest"}}}
    parameters = ("request_id", "run_id", "idempotency_key")
    phase, cancelled = _answers("code.Phase"), _answers("code.Phase")
    cancelled["202"] = cancelled.pop("200")
    run_id = {"name": "run_id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
    under_way = {
        "get": _operation("code_run_phase", "code", "The phase of a run of one's own that is under way", phase),
        "delete": _operation("code_run_cancel", "code", "Cancel it: its sandbox is killed", cancelled),
    }
    for operation in under_way.values():
        operation["parameters"] = [run_id, *operation["parameters"]]
    summary = "Decide on generated code, run it in a sandbox, check its output; a run that stopped is an answer"
    answers = _answers("code.Run")
    return {
        "/v1/code/run": {"post": _operation("code_run", "code", summary, answers, content, parameters)},
        "/v1/code/runs/{run_id}": under_way,
    }


def _code_schemas() -> dict[str, Any]:
    steps = {"type": "array", "items": {"type": "object", "required": ["step"]}}
    head = {"run_id": {"type": "string", "format": "uuid"}, "stop_reason": _TEXT, "trace": steps, "history": steps}
    more = {
        "decisions": {"type": "object", "additionalProperties": _TEXT},
        "findings": {"type": "array", "items": {"type": "object"}},
        "artifacts_not_kept": {
            "type": "array",
            "items": {"type": "object", "required": ["name", "reason"], "additionalProperties": _TEXT},
        },
    }
    stopped = {
        "type": "object",
        "required": ["run_id", "status", "stop_reason", "phase", "trace", "history"],
        "properties": {
            **head,
            **more,
            "status": {"const": "stopped"},
            "phase": {"enum": ["plan", "policy_check", "execute"]},
            "approval": {"type": "object"},
        },
    }
    ok = {
        "type": "object",
        "required": ["run_id", "status", "stop_reason", "outcome", "answer", "aggregate", "execution", "trace"],
        "properties": {
            **head,
            **more,
            "status": {"const": "ok"},
            "outcome": {"const": "code_execution_success"},
            "answer": _TEXT,
            "proposed_action": {"type": "object"},
            "aggregate": {"type": "object"},
            "execution": {"type": "object"},
            "stored": {"type": "object"},
            "artifacts": {"type": "array", "items": {"type": "object"}},
        },
    }
    phase = {
        "type": "object",
        "required": ["run_id", "status", "phase"],
        "properties": {"run_id": _TEXT, "status": {"enum": ["running", "cancelling"]}, "phase": _TEXT},
    }
    return {"code.Run": {"anyOf": [ok, stopped]}, "code.Phase": phase}


def _authzen() -> dict[str, Any]:
    def operation(name: str, summary: str) -> dict[str, Any]:
        schema = {"application/json": {"schema": {"$ref": f"{_REF}authzen.{name}"}}}
        answers = _answers(f"authzen.{name}Answer")
        return {"post": _operation(f"authzen_{name.lower()}", "AuthZEN 1.0", summary, answers, schema)}

    return {
        "/access/v1/evaluation": operation("Evaluation", "One access evaluation"),
        "/access/v1/evaluations": operation("Evaluations", "Many access evaluations"),
        "/.well-known/authzen-configuration": {
            "get": _operation("authzen_metadata", "AuthZEN 1.0", "Where the endpoints are", _answers(None))
        },
    }


def _authzen_schemas() -> dict[str, Any]:
    entity = {
        "type": "object",
        "required": ["type", "id"],
        "properties": {
            "type": {"type": "string", "minLength": 1},
            "id": {"type": "string", "minLength": 1},
            "properties": {"type": "object"},
        },
    }
    fields = {
        "subject": entity,
        "action": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"enum": sorted(POINTS)}, "properties": {"type": "object"}},
        },
        "resource": entity,
        "context": {"type": "object"},
    }
    answer = {
        "type": "object",
        "required": ["decision"],
        "properties": {"decision": {"type": "boolean"}, "context": {"type": "object"}},
    }
    semantics = ["execute_all", "deny_on_first_deny", "permit_on_first_permit"]
    many = {
        "evaluations": {"type": "array", "items": {"type": "object", "properties": fields}},
        "options": {"type": "object", "properties": {"evaluations_semantic": {"enum": semantics}}},
    }
    listed = {
        "type": "object",
        "properties": {"evaluations": {"type": "array", "items": answer}},
        "anyOf": [{"required": ["evaluations"]}, {"required": ["decision"]}],
    }
    return {
        "authzen.Evaluation": {
            "type": "object",
            "required": ["subject", "action", "resource"],
            "properties": fields,
        },
        "authzen.EvaluationAnswer": answer,
        "authzen.Evaluations": {"type": "object", "properties": {**fields, **many}},
        "authzen.EvaluationsAnswer": listed,
    }

"""The OpenAPI 3.1 document, generated from the routes and from the models of requests, limits and answers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pydantic.json_schema import models_json_schema

from engine.api import answers, bodies
from engine.api.limits import ApiLimits
from engine.api.messages import Body, Operation, Routes
from engine.api.problems import PROBLEMS
from engine.api.uploads import ARCHIVES
from engine.code.request import CodeRunRequest
from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.run_result import WireRunResult
from engine.model import Decision, Model
from engine.points.registry import POINTS
from engine.version import __version__

_REF = "#/components/schemas/"
_TEXT = {"type": "string"}
_PROBLEMS = {
    str(code): "; ".join(dict.fromkeys(title for status, title in PROBLEMS.values() if status == code))
    for code in sorted({status for status, _ in PROBLEMS.values()} - {405, 502, 504})
}
"""What any operation may answer: the titles of problems by their status."""


class _Text(NamedTuple):
    """The description of an operation; `{}` is replaced by its point.

    `answer` and `request` are models, None for the decision and the request of the point; an answer is one of them.
    """

    tag: str
    summary: str
    answer: tuple[type[Model] | None, ...] = ()
    request: type[Model] | None = None
    media_type: str = "application/json"


_MORE = {
    "decide_batch": {
        "207": "Some items were not decided, or every one is invalid; each has its own status",
        "500": "The engine could decide no item",
    },
    "ready": {"503": _PROBLEMS["503"]},
    "run": {code: _PROBLEMS[code] for code in ("500", "503")}
    | {"502": "The runner gave no answer", "504": "The runner took too long"},
}
"""Further statuses with which the answer comes."""

_MANY = f"Decide up to {ApiLimits().batch_items} requests at point {{}}"
_FORWARD = "Decide a run; if allowed, forward it to its runner and return the runner's answer"
_PROGRAM = "Decide on generated code, run it in a sandbox, check its output; a stopped run returns 200"
_FETCH = "Fetch material over HTTPS into a new source bundle below the server's folder for it"
_BUILD = "Build the environment of a source bundle below the server's folder for it"
_ACT = answers.AdministrationAnswer
_CODE = (answers.FinishedRun, answers.StoppedRun)
_EVALUATIONS = (answers.EvaluationsAnswer, answers.EvaluationAnswer)

_OPERATIONS = {
    "decide": _Text("points", "Decide at point {}", (None,)),
    "decide_batch": _Text("points", _MANY, (answers.BatchAnswer,), bodies.Batch),
    "schema": _Text("points", "JSON Schema of the requests of point {}", media_type="application/schema+json"),
    "run": _Text("runner", _FORWARD, (answers.RunAnswer,)),
    "agent_run": _Text("runner", "Run an agent here", (WireRunResult, answers.RunAnswer)),
    "run_result": _Text("runner", "JSON Schema of the result of a run", media_type="application/schema+json"),
    "agent_tool_call": _Text("runner", "Call a tool of a run in progress", (answers.ToolAnswer,), bodies.ToolCall),
    "capabilities": _Text("runner", "What this runner can hold", (answers.Capabilities,)),
    "inspect": _Text("runner", "Schemas of the served revision, and its harnesses", (answers.Inspection,)),
    "code_run": _Text("code", _PROGRAM, _CODE, CodeRunRequest),
    "code_runs": _Text(
        "code", "The caller's runs: those in progress, and those that have ended", (answers.CodeRunPage,)
    ),
    "code_run_state": _Text(
        "code", "Phase or kept result of a run of the caller", (answers.CodePhase, answers.KeptCodeRun)
    ),
    "code_run_cancel": _Text("code", "Cancel one of the caller's runs: its sandbox is killed", (answers.CodePhase,)),
    "fetch": _Text("sources", _FETCH, (answers.FetchAnswer,), bodies.Fetch),
    "build": _Text("sources", _BUILD, (answers.BuildAnswer,), bodies.Build),
    "authzen_evaluation": _Text("AuthZEN 1.0", "One access evaluation", _EVALUATIONS[1:], bodies.Evaluation),
    "authzen_evaluations": _Text("AuthZEN 1.0", "Many access evaluations", _EVALUATIONS, bodies.Evaluations),
    "authzen_metadata": _Text("AuthZEN 1.0", "URLs of the endpoints"),
    "decisions": _Text("record", "List recorded decisions, newest first", (answers.DecisionPage,)),
    "decision": _Text("record", "One recorded decision with its input", (answers.RecordedDecision,)),
    **{
        f"envoy_{method}": _Text(
            "Envoy", f"Decide a {method.upper()} request held by Envoy (200: it may pass)", (Decision,)
        )
        for method in ("get", "post", "put", "patch", "delete", "options")
    },
    "administer": _Text("administration", "Perform an administrative act", (_ACT,)),
    "approval_grant": _Text("administration", "Grant a request for approval", (_ACT,), bodies.Reason),
    "approval_refuse": _Text("administration", "Refuse a request for approval", (_ACT,), bodies.Reason),
    "openapi": _Text("operations", "This document"),
    "docs": _Text("operations", "This API as an HTML page", media_type="text/html"),
    "health": _Text("operations", "Liveness", (answers.Health, answers.HealthDetails)),
    "ready": _Text("operations", "Readiness: OPA, record and state", (answers.Ready,)),
    "metrics": _Text("operations", "Prometheus metrics", media_type="text/plain"),
    "activate": _Text("operations", "Reload the policy; control socket only", (answers.ActivatedPolicy,)),
}

_PATH_PARAMETERS = {
    "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "run_id": {"type": "string", "format": "uuid"},
    "path": {"type": "string"},
}


def document(routes: Routes) -> dict[str, Any]:
    """Paths, schemas and security schemes of everything that is served."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Admission engine: decision API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "May this happen, and within what limits? A deny is a normal answer (200). "
            "Invalid requests (4xx) and engine failures (5xx) carry the recorded deny in `decision`.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"runnerToken": []}, {"mutualTls": []}],
        "paths": {
            path: {method.lower(): _operation(path, one) for method, one in methods.items()}
            for path, methods in routes.items()
            if not path.startswith("/docs/")
        },
        "components": {
            "schemas": _schemas(),
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


def _operation(path: str, operation: Operation) -> dict[str, Any]:
    text = _OPERATIONS[operation.name]
    point = operation.point or path.rpartition("/")[2]
    parameters = ["request_id"] if operation.point is None else ["request_id", "run_id", "approval", "idempotency_key"]
    parameters = [*sorted(operation.query or ()), *parameters]
    id_ = operation.name.replace("decide", f"decide_{point}").replace("schema", f"schema_{point}")
    found: dict[str, Any] = {
        "operationId": id_,
        "tags": [text.tag],
        "summary": text.summary.format(point),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in parameters],
        "responses": _responses(operation.name, text, point),
    }
    for name in re.findall(r"{(\w+)}", path):
        found["parameters"].append({"name": name, "in": "path", "required": True, "schema": _PATH_PARAMETERS[name]})
    if operation.body is not Body.NONE:
        content: dict[str, Any] = {
            "application/json": {"schema": _schema(point, text.request or POINTS[point].request)}
        }
        if operation.body is Body.SOURCE:
            content |= {kind.decode("ascii"): {"schema": {"type": "string", "format": "binary"}} for kind in ARCHIVES}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _responses(name: str, text: _Text, point: str) -> dict[str, Any]:
    headers = {one: {"$ref": f"#/components/headers/{one}"} for one in ("X-Request-ID", "traceparent")}
    problem = (answers.Problem, answers.RunFailure) if name in {"run", "agent_run"} else (answers.Problem,)
    content = {"application/problem+json": {"schema": _schema(point, *problem)}}
    found: dict[str, Any] = {code: {"description": words, "content": content} for code, words in _PROBLEMS.items()}
    if text.answer:
        schema = _schema(point, *text.answer)
    else:
        schema = _TEXT if text.media_type.startswith("text/") else {"type": "object"}
    for code, words in {"202" if name == "code_run_cancel" else "200": "The answer", **_MORE.get(name, {})}.items():
        others = found.get(code, {}).get("content", {})
        found[code] = {"description": words, "content": {text.media_type: {"schema": schema}, **others}}
    return {code: {**one, "headers": headers} for code, one in found.items()}


def _schema(point: str, *models: type[Model] | None) -> dict[str, Any]:
    """One of these models; None is the decision of the point."""
    found = [{"$ref": _REF + (_decision(point) if one is None else one.__name__)} for one in models]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _decision(point: str) -> str:
    """The name of a schema, as generators of clients name classes: the same as its title, and no other has it."""
    return f"{point.title().replace('_', '')}Decision"


def _schemas() -> dict[str, Any]:
    texts, points = _OPERATIONS.values(), POINTS.values()
    answer_models = [one for text in texts for one in text.answer] + [point.limits for point in points]
    taken = [text.request for text in texts] + [point.request for point in points]
    models: list[Any] = [
        (one, "serialization") for one in (Decision, answers.Problem, answers.RunFailure, *answer_models)
    ]
    models = [one for one in (*models, *((model, "validation") for model in taken)) if one[0] is not None]
    names, definitions = models_json_schema(models, ref_template=_REF + "{model}")
    schemas: dict[str, Any] = dict(definitions["$defs"])
    generic = schemas["Decision"]
    schemas["Limits"]["additionalProperties"] = True  # those of every point
    for point in points:
        choice = [names[(point.limits, "serialization")], {"type": "null"}]
        own = {"anyOf": choice, "description": "Present only if the outcome is allow"}
        properties = {**generic["properties"], "point": {"const": point.name}, "limits": own}
        schemas[_decision(point.name)] = {**generic, "title": _decision(point.name), "properties": properties}
    return schemas


def _parameters() -> dict[str, Any]:
    ident = {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"}
    key = {"type": "string", "pattern": "^[!-~]{1,255}$"}
    printable = {"type": "string", "pattern": "^[ -~]{1,255}$"}
    modes = {"enum": ["enforce", "check"], "default": "enforce"}
    hang_up = "What becomes of the run if the client hangs up"
    approval = "The id of a granted approval for exactly this request"
    same = "A repeated key with the same body returns the first decision"
    check = "`check` is a dry run: recorded, not enforced"
    gone = {"enum": ["continue", "cancel"], "default": "continue"}
    number = {"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER}
    before = "`next` of the previous page"
    return {
        **_filters(),
        "mode": _of_query("mode", check, modes),
        "on_disconnect": _of_query("on_disconnect", hang_up, gone),
        "before": _of_query("before", before, number),
        "request_id": {"name": "X-Request-ID", "in": "header", "schema": printable},
        "run_id": {"name": "X-Run-ID", "in": "header", "schema": ident},
        "approval": {"name": "X-Approval", "in": "header", "description": approval, "schema": ident},
        "idempotency_key": {"name": "Idempotency-Key", "in": "header", "description": same, "schema": key},
    }


def _filters() -> dict[str, Any]:
    """The parameters of the query with which decisions are selected: the fields of the request at their point."""
    fields = POINTS["record_read"].request.model_json_schema()["properties"]
    texts = {
        "whose": "`own` (default): the caller's own; `all`: everyone's, as policy/callers.yaml permits",
        "point": "The decision point",
        "outcome": "The outcome",
        "since": "Start time in UTC, included",
        "until": "End time in UTC, not included",
        "limit": "Maximum number of rows in a page (default: 100; fewer may be permitted)",
        "cursor": "`next` of the previous page",
    }
    return {name: _of_query(name, text, _stated(fields[name])) for name, text in texts.items()}


def _of_query(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _stated(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter, which is never null; absent is enough."""
    found = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    return {word: value for word, value in found.items() if word != "title"}

"""The table of everything that is served: path, method, access, body and handler."""

from __future__ import annotations

from admission_adapters.runner.access import RunnerAccess
from admission_adapters.runner.run import ForwardLimits
from engine.api import administration, authzen, code_run, control, decide, decisions, docs, envoy, health
from engine.api.authzen import AuthZenError
from engine.api.making import MOST_BUILDS, MOST_FETCHES, Making, build, fetch
from engine.api.messages import ANYTHING_BELOW, Access, Body, Operation, Routes
from engine.api.run import ForwardedRuns, Runs
from engine.api.runner import AgentRuns
from engine.points.registry import POINTS
from engine.runner.run import RunnerSettings


def routes(forward: ForwardLimits | None = None, access: RunnerAccess | None = None) -> Routes:
    """All operations by path and method; `forward` has the limits of a runner, `access` what it is shown."""
    mode = frozenset({"mode"})
    table: dict[str, dict[str, Operation]] = {}
    for point in (point.name for point in POINTS.values()):  # loads them all before the first request
        body = Body.SOURCE if point == "source" else Body.JSON
        table[f"/v1/decide/{point}"] = {"POST": Operation("decide", decide.decide, Access.CALLER, body, point, mode)}
        table[f"/v1/decide/{point}/batch"] = {
            "POST": Operation("decide_batch", decide.decide_batch, Access.CALLER, Body.BATCH, point, mode)
        }
        table[f"/v1/schemas/{point}"] = {"GET": Operation("schema", docs.schema, Access.OPEN)}
    table |= {
        "/access/v1/evaluation": {
            "POST": Operation("authzen_evaluation", authzen.evaluation, body=Body.JSON, media_code=AuthZenError.code),
        },
        "/access/v1/evaluations": {
            "POST": Operation(
                "authzen_evaluations", authzen.evaluations, body=Body.BATCH, media_code=AuthZenError.code
            ),
        },
        "/.well-known/authzen-configuration": {"GET": Operation("authzen_metadata", authzen.metadata, Access.OPEN)},
        "/v1/schemas/run_result": {"GET": Operation("run_result", docs.schema, Access.OPEN)},
        "/health": {"GET": Operation("health", health.health, Access.OPEN)},
        "/ready": {"GET": Operation("ready", health.ready, Access.OPEN)},
        "/metrics": {"GET": Operation("metrics", health.metrics, Access.LOCAL)},
        "/run": {"POST": _run("run", ForwardedRuns(forward, access))},
        "/v1/code/run": {
            "POST": Operation(
                "code_run", code_run.run, body=Body.JSON, point="code_action", query=frozenset({code_run.HANG_UP})
            )
        },
        "/v1/code/runs": {"GET": Operation("code_runs", code_run.page, query=code_run.PAGE)},
        "/v1/code/runs/{run_id}": {
            "GET": Operation("code_run_state", code_run.show),
            "DELETE": Operation("code_run_cancel", code_run.cancel),
        },
        "/v1/fetch": {"POST": Operation("fetch", Making(fetch, MOST_FETCHES).make, body=Body.JSON, point="network")},
        "/v1/build": {"POST": Operation("build", Making(build, MOST_BUILDS).make, body=Body.JSON, point="source")},
        "/v1/decisions": {"GET": Operation("decisions", decisions.page, query=decisions.FILTERS)},
        "/v1/decisions/{id}": {"GET": Operation("decision", decisions.one, query=frozenset({"whose", "cursor"}))},
        "/v1/administration": {
            "POST": Operation("administer", administration.act, body=Body.JSON, point="administration")
        },
        **{
            f"/v1/approvals/{{id}}/{verb}": {
                "POST": Operation(f"approval_{verb}", administration.resolve, body=Body.JSON, point="administration")
            }
            for verb in ("grant", "refuse")
        },
        f"{ANYTHING_BELOW}{{path}}": {
            method: Operation(f"envoy_{method.lower()}", envoy.check, query=None)
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
        },
        "/v1/policy/activate": {"POST": Operation("activate", control.activate, Access.CONTROL)},
    }
    return _described(table)


def runner_routes(settings: RunnerSettings) -> Routes:
    """All operations of a runner by path and method."""
    runs, shared = AgentRuns(settings), routes()
    kept = {path: {**shared[path]} for path in shared if path in _OPERATING or path.startswith("/v1/approvals/")}
    return _described(
        kept
        | {
            "/run": {"POST": _run("agent_run", runs)},
            "/capabilities": {"GET": Operation("capabilities", runs.capabilities)},
            "/inspect": {"GET": Operation("inspect", runs.inspect)},
            "/tools/call": {"POST": Operation("agent_tool_call", runs.call, body=Body.JSON)},
        }
    )


def _run(name: str, runs: Runs) -> Operation:
    return Operation(name, runs.run, body=Body.JSON, point="runner_request", refuses=True)


_OPERATING = (
    *("/health", "/ready", "/metrics", "/v1/administration", "/v1/policy/activate"),
    *("/v1/schemas/runner_request", "/v1/schemas/run_result"),
)


def _described(table: dict[str, dict[str, Operation]]) -> Routes:
    """The table, with its description."""
    description = docs.Description(table)
    table["/openapi.json"] = {"GET": Operation("openapi", description.openapi, Access.OPEN)}
    table["/docs"] = {"GET": Operation("docs", description.page, Access.OPEN)}
    for name in docs.ASSETS:
        table[f"/docs/{name}"] = {"GET": Operation("docs", docs.asset, Access.OPEN)}
    return table

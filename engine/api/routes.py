"""The one table of what is served: path, method, who may, what body, and which handler answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.runner import ForwardLimits
    from engine.api.app import Api
    from engine.api.messages import Exchange, Response

Handler = Callable[["Api", "Exchange"], Awaitable["Response"]]


class Access(Enum):
    """Who gets an answer. What a caller may do there is policy, not this."""

    OPEN = "open"  # anybody; who shows credentials is told more
    CALLER = "caller"  # whoever can be told, by token, certificate, socket, or being on this machine
    LOCAL = "machine"  # anybody on this machine, elsewhere as CALLER
    CONTROL = "control"  # the user at the control socket


class Body(Enum):
    """What body an operation takes."""

    NONE = "none"
    JSON = "json"
    BATCH = "batch"
    SOURCE = "source"  # JSON, or an archive


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `point` is the decision asked, so that refusals are recorded as its denies."""

    name: str
    handler: Handler
    access: Access = Access.CALLER
    body: Body = Body.NONE
    point: str | None = None
    query: frozenset[str] = frozenset()


Routes = Mapping[str, Mapping[str, Operation]]
"""By path. `{run_id}` at its end stands for any last part, `{id}` for any part before the last."""


def methods_of(table: Routes, path: str) -> Mapping[str, Operation] | None:
    """What a path takes; None where nothing is served."""
    found = table.get(path)
    if found is None and len(parts := path.split("/")) > 2 and parts[-1]:  # noqa: PLR2004
        found = table.get("/".join([*parts[:-1], "{run_id}"]))
        if found is None and parts[-2]:
            found = table.get("/".join([*parts[:-2], "{id}", parts[-1]]))
    return found


def routes(forward: ForwardLimits | None = None) -> Routes:
    """Everything that is served, by path and method; `forward` bounds what a runner may take and send."""
    from engine.api import administration, authzen, batch, code_run, control, decide, docs, health, metrics
    from engine.api.run import Runs
    from engine.points.registry import POINTS

    mode = frozenset({"mode"})
    table: dict[str, dict[str, Operation]] = {
        "/access/v1/evaluation": {
            "POST": Operation("authzen_evaluation", authzen.evaluation, body=Body.JSON),
        },
        "/access/v1/evaluations": {
            "POST": Operation("authzen_evaluations", authzen.evaluations, body=Body.BATCH),
        },
        "/.well-known/authzen-configuration": {"GET": Operation("authzen_metadata", authzen.metadata, Access.OPEN)},
        "/health": {"GET": Operation("health", health.health, Access.OPEN)},
        "/ready": {"GET": Operation("ready", health.ready, Access.OPEN)},
        "/metrics": {"GET": Operation("metrics", metrics.metrics, Access.LOCAL)},
        "/openapi.json": {"GET": Operation("openapi", docs.openapi, Access.OPEN)},
        "/docs": {"GET": Operation("docs", docs.page, Access.OPEN)},
        "/run": {"POST": Operation("run", Runs(forward).run, body=Body.JSON, point="runner_request")},
        "/v1/code/run": {"POST": Operation("code_run", code_run.run, body=Body.JSON, point="code_action")},
        "/v1/code/runs/{run_id}": {
            "GET": Operation("code_run_phase", code_run.show),
            "DELETE": Operation("code_run_cancel", code_run.cancel),
        },
        "/v1/administration": {
            "POST": Operation("administer", administration.act, body=Body.JSON, point="administration")
        },
        **{
            f"/v1/approvals/{{id}}/{verb}": {
                "POST": Operation(f"approval_{verb}", administration.resolve, body=Body.JSON, point="administration")
            }
            for verb in ("grant", "refuse")
        },
        "/v1/policy/activate": {"POST": Operation("activate", control.activate, Access.CONTROL)},
    }
    for name in docs.ASSETS:
        table[f"/docs/{name}"] = {"GET": Operation("docs", docs.asset, Access.OPEN)}
    for point in (point.name for point in POINTS.values()):  # loads them all before the first request
        body = Body.SOURCE if point == "source" else Body.JSON
        table[f"/v1/decide/{point}"] = {"POST": Operation("decide", decide.decide, Access.CALLER, body, point, mode)}
        table[f"/v1/decide/{point}/batch"] = {
            "POST": Operation("decide_batch", batch.decide_batch, Access.CALLER, Body.BATCH, point, mode)
        }
        table[f"/v1/schemas/{point}"] = {"GET": Operation("schema", docs.schema, Access.OPEN)}
    return table

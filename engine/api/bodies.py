"""Bodies of requests that belong to no point, as models; the OpenAPI document is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from engine.api.limits import ApiLimits
from engine.facts.archives.source_bundle import Id
from engine.model import Digest, Line, Model
from engine.points import administration
from engine.points.registry import POINTS

Object = Annotated[dict[str, Any], Field(default_factory=dict)]


class Reason(Model):
    """Why the policy is changed, or an approval is granted or refused."""

    reason: administration.Reason | None = None


class Batch(Model):
    """Requests of one point, each by an id of the caller's."""

    inputs: Annotated[
        dict[str, dict[str, Any]],
        Field(max_length=ApiLimits().batch_items, description="Each is a request, complete with the common input"),
    ]
    common_input: Annotated[Object, Field(description="Merged into every request; fields of the request win")]


class Fetch(Model):
    """What to fetch into the new folder `into`, as `engine fetch` takes it. Naming `hosts` enables the fetch.

    `license` is the SPDX label of the content, `alias` the public name of its origin (default: `into`),
    `max_requests` the budget of the run.
    """

    urls: Annotated[tuple[Annotated[str, Field(max_length=8_192)], ...], Field(min_length=1, max_length=1_000)]
    into: Id
    license: Line | None = None
    hosts: Annotated[tuple[Line, ...], Field(max_length=1_000, default_factory=tuple)]
    alias: Id | None = None
    max_requests: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class Build(Model):
    """What to build in the new folder `into`, as `engine build` takes it.

    `path` names a source bundle below the server's `--root`; any other than that of `digest` is refused.
    """

    path: Line
    into: Id
    digest: Digest | None = None


class AuthZen(Model):
    """Base of the models of AuthZEN 1.0, section 6: fields that the standard does not name are ignored."""

    model_config = ConfigDict(extra="ignore")


Name = Annotated[str, Field(min_length=1)]
Properties = Annotated[Any, Field(default_factory=dict, json_schema_extra={"type": "object"})]


class Entity(AuthZen):
    """The subject, which is the caller; or the resource, whose `properties.request` is the request to the point."""

    type: Name
    id: Name
    properties: Properties


class Action(AuthZen):
    """`name` is a decision point, or an action that the policy maps to one (`authzen` in policy/operations.yaml)."""

    name: Annotated[Name, Field(json_schema_extra={"examples": sorted(POINTS)})]
    properties: Properties


class Evaluation(AuthZen):
    """One access evaluation."""

    subject: Entity
    action: Action
    resource: Entity
    context: Object


class Options(AuthZen):
    """When a list ends before its end."""

    evaluations_semantic: Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"] = "execute_all"


class Evaluations(AuthZen):
    """Many access evaluations; what one of them leaves out, it has from the fields beside the list."""

    evaluations: tuple[dict[str, Any], ...] = ()
    options: Options = Options()


class ToolCall(Model):
    """A call of a tool of a run in progress."""

    run_id: Line
    name: Line
    arguments: Object

"""Point `runner_request`: whether a run may start on an agent runner, and its boundaries.

Two independent layers: the boundaries of the sandbox, which only a proof of
this engine establishes, and the permission of each tool call. No message, secret or command gets into
the input: names, kinds, counts, and one digest of all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from engine.documents.files import counted
from engine.facts.net.urls import UrlFacts, origin_facts, url_facts
from engine.facts.run_request import McpServer, ModelRef, PlacedAgent, WireRunRequest, agent_of, callback_of
from engine.model import SEALED, Boundary, Digest, Limits, Model, Named
from engine.points import GatherContext, Gathered, Point


class UriFacts(Model):
    """The runner address of the configuration; null and blanks state none."""

    stated: bool
    canonical: bool | None = None
    origin: str | None = None


class ModelFacts(Model):
    """The model that is to be used, and the connection that reaches it. Blank parts are not stated."""

    stated: bool
    id: str | None = None
    provider_stated: bool
    provider: str | None = None
    mode_stated: bool
    mode: str | None = None
    slug_stated: bool


class AgentFacts(Model):
    """The agent and where it runs, with legacy keys moved here; `…_stated` is true if an optional key was stated.

    Of `harness_kwargs` only the names.
    """

    harness_stated: bool
    harness: str | None = None
    harness_kwargs: tuple[Named, ...]
    sandbox_stated: bool
    sandbox: str | None = None
    permission_policy_stated: bool
    permission_policy: str | None = None
    uri: UriFacts
    model: ModelFacts


class PermissionFacts(Model):
    """The declared boundaries; `enforcement` is `undeclared` if there are none."""

    network: Literal["restricted", "unrestricted"]
    filesystem_stated: bool
    filesystem: str | None = None
    enforcement: Literal["strict", "best_effort", "undeclared"]


class ToolFacts(Model):
    """A custom tool. `code`: it is or contains code to run, whatever its kind."""

    id: str
    kind: str
    code: bool


class ServerFacts(Model):
    """An MCP server. `starts_process`: it names a command; `secrets` is the number of entries in `env`."""

    id: str
    transport: str
    starts_process: bool
    secrets: int
    url: UrlFacts | None = None


class Attached(Model):
    """Anything that has to be delivered to the harness: a tool, or an MCP server.

    `occurrences`: how often it is named.
    """

    id: str
    occurrences: int
    kind: Literal["tool", "mcp_server"]
    transport: str | None = None
    starts_process: bool | None = None


class EndpointFacts(Model):
    """Where the runner would post to."""

    id: str
    canonical: bool
    origin: str | None = None


class SecretFacts(Model):
    """A secret of the run by its place. `sealed`: only the runner's private key opens it."""

    id: str
    sealed: bool


class RunnerInput(Model):
    """The facts of a run for OPA.

    `boundaries` are those that backends were shown to enforce, never claims; none are looked up if none is declared.
    """

    agent: AgentFacts
    sandbox_permission: PermissionFacts
    tools: tuple[ToolFacts, ...]
    mcp_servers: tuple[ServerFacts, ...]
    attached: tuple[Attached, ...]
    endpoints: tuple[EndpointFacts, ...]
    secrets: tuple[SecretFacts, ...]
    messages: int
    content: Digest
    boundaries: tuple[Boundary, ...]


class SandboxLimit(Model):
    """Where the run takes place, and its boundaries."""

    backend: str
    network: Literal["restricted", "unrestricted"]
    filesystem: str
    proven: tuple[str, ...]


class ToolLimit(Model):
    """A tool that may be offered; each of its calls is permitted under `permission`."""

    name: str
    kind: str
    permission: str


class ServerLimit(Model):
    """An MCP server that may be connected to at exactly this host and port; `stdio` servers are started here."""

    name: str
    transport: str
    host: str | None = None
    port: int | None = None
    permission: str

    @model_validator(mode="after")
    def _placed(self) -> Self:
        started = self.transport == "stdio"
        if (self.host is None, self.port is None) != (started, started):
            raise ValueError("host and port are stated unless the transport is stdio")
        return self


class CallLimit(Model):
    """The tool policy and the profile under which each call of a tool is decided."""

    policy: str
    profile: str


class RunnerLimits(Limits):
    """What a run may use; what is not named here is not there. `model` is empty for the harness's own."""

    harness: str
    harness_kwargs: tuple[str, ...]
    model: str
    sandbox: SandboxLimit
    permission_policy: str
    calls: CallLimit
    tools: tuple[ToolLimit, ...]
    mcp_servers: tuple[ServerLimit, ...]
    endpoints: tuple[str, ...]

    def boundaries(self) -> frozenset[str]:
        """The boundaries that the backend must be shown to enforce."""
        return frozenset(self.sandbox.proven)


def gather(request: WireRunRequest, context: GatherContext) -> Gathered:
    """Bring the request into its one form, and leave all content out of the input."""
    agent, content = agent_of(request)
    gathered = RunnerInput(
        agent=_agent(agent),
        sandbox_permission=_permission(request),
        tools=tuple(
            ToolFacts(id=tool.name, kind=tool.kind, code=tool.kind == "code" or "code" in tool.model_fields_set)
            for tool in request.tools
        ),
        mcp_servers=tuple(_server(server) for server in request.mcp_servers),
        attached=tuple(_attached(request)),
        endpoints=tuple(_endpoints(request, context.callbacks)),
        secrets=tuple(_secrets(request)),
        messages=len(request.messages),
        content=content,
        boundaries=context.boundaries() if "sandbox_permission" in request.model_fields_set else (),
    )
    return Gathered(
        gathered, f"run of {agent.harness or 'the default harness'}, {counted(len(request.messages), 'message')}"
    )


def _agent(agent: PlacedAgent) -> AgentFacts:
    uri = (agent.uri or "").strip()
    found = origin_facts(uri)
    return AgentFacts(
        harness_stated=bool(agent.harness),
        harness=agent.harness or None,
        harness_kwargs=tuple(Named(id=name) for name in sorted(agent.harness_kwargs)),
        sandbox_stated=bool(agent.sandbox),
        sandbox=agent.sandbox or None,
        permission_policy_stated=bool(agent.permission_policy),
        permission_policy=agent.permission_policy or None,
        uri=UriFacts(stated=True, canonical=found.canonical, origin=found.origin) if uri else UriFacts(stated=False),
        model=_model(agent.model),
    )


def _model(stated: ModelRef | None) -> ModelFacts:
    model = stated or ModelRef(model="")
    return ModelFacts(
        stated=bool(model.model or model.provider),
        id=model.model or None,
        provider_stated=bool(model.provider),
        provider=model.provider or None,
        mode_stated=bool(model.mode),
        mode=model.mode or None,
        slug_stated=bool(model.slug),
    )


def _permission(request: WireRunRequest) -> PermissionFacts:
    if "sandbox_permission" not in request.model_fields_set:
        return PermissionFacts(network="unrestricted", filesystem_stated=False, enforcement="undeclared")
    permission = request.sandbox_permission
    return PermissionFacts(
        network=permission.network,
        filesystem_stated=bool(permission.filesystem),
        filesystem=permission.filesystem or None,
        enforcement=permission.enforcement,
    )


def _server(server: McpServer) -> ServerFacts:
    return ServerFacts(
        id=server.name,
        transport=server.transport,
        starts_process=_starts_process(server),
        secrets=len(server.env),
        url=url_facts(server.url) if server.url else None,
    )


def _starts_process(server: McpServer) -> bool:
    return "command" in server.model_fields_set


def _attached(request: WireRunRequest) -> Iterator[Attached]:
    servers, tools = (Counter(one.name for one in many) for many in (request.mcp_servers, request.tools))
    for server in request.mcp_servers:
        yield Attached(
            id=f"mcp_servers/{server.name}",
            occurrences=servers[server.name],
            kind="mcp_server",
            transport=server.transport,
            starts_process=_starts_process(server),
        )
    for tool in request.tools:
        yield Attached(id=f"tools/{tool.name}", occurrences=tools[tool.name], kind="tool")


def _endpoints(request: WireRunRequest, callbacks: str | None) -> list[EndpointFacts]:
    stated = {"tool_callback": callback_of(request, callbacks), "trace": request.trace}
    found = [(name, origin_facts(one.endpoint)) for name, one in stated.items() if one is not None]
    return [EndpointFacts(id=name, canonical=facts.canonical, origin=facts.origin) for name, facts in found]


def _secrets(request: WireRunRequest) -> list[SecretFacts]:
    """Every secret by place and position: its name may be content."""
    named = [("secrets", request.secrets), *((f"mcp_servers/{one.name}", one.env) for one in request.mcp_servers)]
    found = [
        (f"{place}/#{index}", values[name]) for place, values in named for index, name in enumerate(sorted(values))
    ]
    for place, endpoint in (("tool_callback", request.tool_callback), ("trace", request.trace)):
        if endpoint is not None and endpoint.authorization.get_secret_value():
            found.append((place, endpoint.authorization))
    return [
        SecretFacts(id=place, sealed=re.fullmatch(SEALED, secret.get_secret_value()) is not None)
        for place, secret in found
    ]


POINT = Point("runner_request", WireRunRequest, RunnerInput, RunnerLimits, gather, secret=True)

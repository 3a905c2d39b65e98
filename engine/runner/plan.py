"""The plan of an admitted run: what its permit names, with the parts of the request that are no facts for a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import WorkError
from engine.facts.run_request import Endpoint, McpServer, Tool, WireRunRequest, callback_of
from engine.points.runner_request import CallLimit, RunnerLimits
from engine.runner.invariants import demand

_AGAIN = "request a decision on exactly this run"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run. `task` is what its harness gets: no secret, no address, no server. `profile` is that of a run here."""

    harness: str
    command: tuple[str, ...]
    profile: str | None
    declared: tuple[str, ...]
    calls: CallLimit
    custom_tools: str
    tools: tuple[Tool, ...]
    servers: tuple[McpServer, ...]
    callback: Endpoint | None
    task: Mapping[str, Any]

    def with_tools(self, tools: Sequence[Tool]) -> RunPlan:
        """The plan with the tools of its MCP servers, too. Raises InvariantError for a name that is taken."""
        every = (*self.tools, *tools)
        demand(len({tool.name for tool in every}) == len(every), "an MCP server has a tool of the run", "leave one out")
        return replace(self, tools=every, task={**self.task, "tools": [definition(tool) for tool in every]})

    @property
    def relayed(self) -> bool:
        """Whether the harness takes its tools from the relay."""
        return self.custom_tools == "mcp" and bool(self.tools)

    @property
    def names(self) -> list[str]:
        """The declared tools."""
        return [tool.name for tool in self.tools]


def definition(tool: Tool) -> dict[str, Any]:
    """The description of a tool for a model."""
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}


def planned(
    request: WireRunRequest,
    limits: RunnerLimits,
    harness: Mapping[str, Any],
    backend: Mapping[str, Any],
    callbacks: str | None = None,
) -> RunPlan:
    """The plan; `harness` and `backend` are their rows in policy/runners.yaml, `callbacks` the default origin.

    Raises InvariantError if the permit is not one for this request, and WorkError for what this runner cannot do.
    """
    names = [tool.name for tool in request.tools]
    demand([tool.name for tool in limits.tools] == names, "the permit names other tools than the run", _AGAIN)
    demand(len({*names}) == len(names), "a tool is declared twice", "give every tool of the run its own name")
    kwargs = sorted(request.agent.harness_kwargs)
    demand(list(limits.harness_kwargs) == kwargs, "the permit names other arguments of the harness", _AGAIN)
    servers = [server.name for server in limits.mcp_servers]
    demand([server.name for server in request.mcp_servers] == servers, "the permit names other MCP servers", _AGAIN)
    sandbox, remote = limits.sandbox, backend.get("host") == "remote"
    if not backend.get("platform" if remote else "profile"):
        raise _cannot(
            f"this runner cannot run on the backend `{sandbox.backend}`",
            "state its platform or profile in policy/runners.yaml",
        )
    if remote and (names or servers):
        raise _cannot(
            f"the tool `{[*names, *servers][0]}` cannot be called from the backend `{sandbox.backend}`",
            "leave it out, or run on a backend of this machine",
        )
    if not harness.get("command"):
        raise _cannot(
            f"the harness `{limits.harness}` is not installed here",
            "state its command in policy/runners.yaml, and its program in policy/sandbox.yaml",
        )
    callback = callback_of(request, callbacks)
    if any(tool.kind != "client" for tool in request.tools) and callback is None:
        raise _cannot(
            "the tools of the run have no tool_callback to be called at",
            "state tool_callback in the run, or set AGENTA_HOST",
        )
    if (client := next((tool.name for tool in request.tools if tool.kind == "client"), None)) is not None:
        raise _cannot(f"the tool `{client}` is called by the client, which no run here can wait for", "leave it out")
    if (far := next((server.name for server in request.mcp_servers if server.transport == "http"), None)) is not None:
        raise _cannot(
            f"the MCP server `{far}` cannot be reached from the sandbox, which has no network", "leave it out"
        )
    return RunPlan(
        limits.harness,
        tuple(harness["command"]),
        None if remote else backend["profile"],
        ("filesystem",) if "filesystem" in request.sandbox_permission.model_fields_set else (),
        limits.calls,
        harness["custom_tools"],
        request.tools,
        request.mcp_servers,
        callback,
        {
            "messages": [message.model_dump(mode="json") for message in request.messages],
            "tools": [definition(tool) for tool in request.tools],
            "model": limits.model,
            "harness_kwargs": request.agent.harness_kwargs,
        },
    )


def _cannot(message: str, remedy: str) -> WorkError:
    return WorkError(message, remedy=remedy, code="engine.run_unsupported")

"""One MCP server behind the gate of this engine, for the proxy that pumps its messages.

mcp: delivery ─> the server ─> mcp: list, tool_visibility ─> each call: tool_call, tool_result

A tool that may not be used is left out with its codes, and the others stay: a definition that changes after its review
is refused until it was reviewed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from admission_adapters.runner.mcp_delivery import Delivered, deliver
from admission_adapters.shim.pump import Audit
from admission_adapters.shim.upstream import SandboxedTalk
from admission_adapters.tools.executor import ToolPlaces
from admission_adapters.tools.held import HeldResults
from admission_adapters.tools.path import CallContext, Question, ToolPath
from admission_adapters.tools.registry import UncuratedToolRegistry
from admission_adapters.tools.result import ToolResult, codes_of
from engine.administration.act import administer
from engine.drive import run as drive
from engine.errors import WorkError
from engine.facts.run_request import McpServer
from engine.facts.tools.definitions import UnreadableDefinitionError, definition_of
from engine.facts.tools.mcp_names import local_name
from engine.flow import Answer, Context
from engine.model import Caller, Level, Outcome, Via
from engine.points.mcp import McpLimits
from engine.runner.asking import Decisions
from engine.runner.servers import Servers
from engine.steps import run

_MOST = 1_000
"""Tools of a server; what lists more is refused."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The tools of a server that may be seen and called, by their names there, and why each other one may not."""

    visible_tools: tuple[str, ...] = ()
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """How a server is reached: in the sandbox of this profile, or at a URL with secrets as headers."""

    sandbox: str | None = None
    url: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)


class ProxiedServer:
    """The decisions on one server; threads may share it."""

    def __init__(
        self, decisions: Decisions, name: str, place: Place, calls: CallContext, approver: str | None = None
    ) -> None:
        """`approver` is the principal of the person at the client; None if no person there may approve."""
        self._decisions, self._place, self._calls, self._approver = decisions, place, calls, approver
        transport = "http" if place.url else "stdio"
        self._server = McpServer.model_validate(
            {"name": name, "transport": transport, "url": place.url, "env": place.secrets}
        )
        self._held = HeldResults()
        self._definitions: dict[str, dict[str, Any]] = {}
        self.methods: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    @property
    def asks(self) -> bool:
        """Whether the person at the client may approve."""
        return self._approver is not None

    def started(self, servers: Servers, talk: SandboxedTalk) -> None:
        """Start it in the sandbox. Raises StoppedError or WorkError."""
        self._take(servers.begin(self._server, talk))

    def delivered(self, log: Callable[[str], None]) -> Delivered:
        """Its address and headers, for a server over HTTP. Raises StoppedError or WorkError."""
        request = {"phase": "delivery", "servers": [self._server_facts(url=self._server.url)]}
        permit, _ = self._decisions.demand("mcp", request)
        self._take(permit.demand("mcp", permit.input_digest, McpLimits))
        _, found = deliver(permit, permit.input_digest, [self._server], log)
        if len(found) != 1:
            raise WorkError(
                "the MCP server cannot be reached from here",
                remedy="see its row in policy/mcp.yaml",
                code="engine.mcp_server_failed",
            )
        return found[0]

    def audit(self, definitions: list[Any]) -> Audit:
        """Decide on what it lists: as a whole, then without what was refused for itself. Raises WorkError."""
        found, unreadable = _readable(definitions)
        refused: dict[str, tuple[str, ...]] = dict.fromkeys(unreadable, ("definitions_unreadable",))
        left = dict(found)
        while True:
            answer = self._list(list(left.values()))
            if answer.decision.outcome is Outcome.ALLOW and answer.fault is None:
                break
            wrong = self._subjects(answer, left)
            if answer.fault is not None or not wrong:
                raise WorkError(
                    f"the list of tools is refused: {', '.join(codes_of(answer.decision))}",
                    remedy="see `engine tools audit`",
                    code="engine.mcp_server_failed",
                )
            refused |= wrong
            left = {name: one for name, one in left.items() if name not in wrong}
        by_local = {local_name(self._server.name, name): name for name in left}
        self._definitions = {local: {**left[name], "name": local} for local, name in by_local.items()}
        listed = run(self._path(_registry(self._definitions, _never)).listed(), self._decide)
        visible = {str(one.get("name")) for one in listed.definitions}
        hidden = {name: listed.codes or ("tool_hidden",) for local, name in by_local.items() if local not in visible}
        self._definitions = {local: one for local, one in self._definitions.items() if local in visible}
        return Audited(tuple(name for local, name in by_local.items() if local in visible), {**refused, **hidden})

    def call(self, name: str, arguments: Any, send: Callable[[], Any], approval: str | None) -> ToolResult:
        """Decide on a call, make it with `send`, decide on its result."""
        local = local_name(self._server.name, name)
        path = self._path(_registry({local: self._definitions.get(local, {})}, lambda **_: send()))
        return run(path.call({"name": local, "arguments": arguments}, approval), self._decide)

    def grant(self, approval: str) -> bool:
        """Grant an approval as the person at the client, if the policy lets that person."""
        services = self._decisions.services
        request = {"act": "grant_approval", "id": approval, "reason": "approved at the MCP client"}
        by = Context(caller=Caller(via=Via.PROCESS, principal=self._approver))
        return drive(administer(request, services, by)).done is not None

    def waiting(self, approval: str) -> str:
        """The result that waits for this approval, for the person; empty if it is a call that waits."""
        return self._held.text(approval)

    def _take(self, limits: McpLimits) -> None:
        self.methods = frozenset(limits.client_methods), frozenset(limits.server_methods)

    def _server_facts(self, **more: Any) -> dict[str, Any]:
        server = self._server
        return {"name": server.name, "transport": server.transport, "env": dict.fromkeys(server.env, ""), **more}

    def _list(self, definitions: list[dict[str, Any]]) -> Answer:
        request = {"phase": "list", "servers": [self._server_facts(definitions={"tools": definitions})]}
        if self._place.sandbox is not None:
            request["relay"] = self._place.sandbox
        return self._decisions.decide("mcp", request)

    def _subjects(self, answer: Answer, left: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """The tools that findings refuse, with their codes; nothing if a finding is about something else."""
        names = {local_name(self._server.name, name): name for name in left}
        wrong: dict[str, list[str]] = {}
        for finding in answer.decision.findings:
            name = names.get((finding.subject or "").removeprefix("tools/"))
            if finding.level is not Level.WARN and name is None:
                return {}
            if finding.level is not Level.WARN and name is not None:
                wrong.setdefault(name, []).append(finding.code)
        return {name: tuple(dict.fromkeys(codes)) for name, codes in wrong.items()}

    def _path(self, registry: UncuratedToolRegistry) -> ToolPath:
        return ToolPath(registry, self._decisions.context, self._calls, "safe", ToolPlaces(), self._held)

    def _decide(self, question: Question) -> Answer:
        return self._decisions.decide(question.point, question.request, question.executor, question.context)


def _readable(definitions: list[Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The definitions by name; names of those that cannot be read, or that are listed twice. Raises WorkError."""
    if len(definitions) > _MOST:
        raise WorkError(f"the MCP server lists more than {_MOST} tools", remedy="use a smaller server")
    found: dict[str, dict[str, Any]] = {}
    twice: list[str] = []
    for one in definitions:
        try:
            name = definition_of(one).name
            json.dumps(one, allow_nan=False)
        except (UnreadableDefinitionError, ValueError, RecursionError):
            twice.append(str(one.get("name"))[:128] if isinstance(one, dict) else "unnamed")
            continue
        if name in found:
            twice.append(name)
        found[name] = one
    return {name: one for name, one in found.items() if name not in twice}, twice


def _registry(definitions: Mapping[str, dict[str, Any]], call: Callable[..., Any]) -> UncuratedToolRegistry:
    """The tools of the server: what runs is its own process, admitted at point `mcp`."""
    registry = UncuratedToolRegistry()
    for local, definition in definitions.items():
        registry.add(local, call, definition)
    return registry


def _never(**_: Any) -> Any:
    raise WorkError("this list is for reading only", remedy="call through the proxy")
